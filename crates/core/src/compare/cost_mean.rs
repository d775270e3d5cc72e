//! What a kernel costs altogether: the geometric mean of the ratios of its costs.

use serde::Serialize;

use super::cost::{Against, MatchedCost};
use super::groups::{self, KernelRuns};
use crate::schema::CostSection;

/// How many of the worst and of the best costs are named.
const NAMED: usize = 3;

/// The ratios of a kernel, or of a run, to the first one under one load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostMean {
    /// The kernel: an index into [`super::Comparison::groups`]; absent if runs are shown.
    pub group: Option<usize>,
    /// The run; absent if kernels are shown.
    pub run: Option<usize>,
    /// The load under which the costs were measured.
    pub load: String,
    /// How many costs have a ratio.
    pub costs: usize,
    /// Geometric mean of their ratios, each turned so that more than 1 is worse.
    pub ratio: f64,
    /// The worst of them, at most three, the worst first.
    pub worst: Vec<TurnedCost>,
    /// The best, at most three, the best first; none that is among the worst.
    pub best: Vec<TurnedCost>,
    /// For how many the interval shows that they are worse.
    pub shown_worse: usize,
    /// For how many it shows that they are better.
    pub shown_better: usize,
}

/// A cost and its ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnedCost {
    /// What it is called in tables.
    pub name: String,
    /// The ratio, turned so that more than 1 is worse.
    pub ratio: f64,
}

/// One for each load and each kernel but the first, or each run but the first.
pub(super) fn of(costs: &[MatchedCost], groups: &[KernelRuns], runs: usize) -> Vec<CostMean> {
    let by_kernel = groups::are_shown(groups, runs);
    let sides = if by_kernel { groups.len() } else { runs };
    let mut loads: Vec<&str> = Vec::new();
    for cost in costs.iter().filter(|cost| counts(cost)) {
        if !loads.contains(&cost.load.as_str()) {
            loads.push(&cost.load);
        }
    }
    let sides = loads.iter().flat_map(|load| (1..sides).map(move |side| (*load, side)));
    sides.filter_map(|(load, side)| of_side(costs, load, side, by_kernel)).collect()
}

/// What describes the machine is no cost of the kernel, and a sweep over sizes of memory would
/// outweigh all else.
fn counts(cost: &MatchedCost) -> bool {
    !matches!(cost.section, CostSection::Basics | CostSection::MemoryLatencies)
}

fn of_side(costs: &[MatchedCost], load: &str, side: usize, by_kernel: bool) -> Option<CostMean> {
    let mut ratios = Vec::new();
    let (mut shown_worse, mut shown_better) = (0, 0);
    for cost in costs.iter().filter(|cost| cost.load == load && counts(cost)) {
        let to_first = if by_kernel {
            cost.spreads.iter().find(|spread| spread.group == side).map(|spread| spread.to_first)
        } else {
            cost.rows.iter().find(|row| row.run == side).map(|row| row.to_first)
        };
        let Some((to_first, ratio)) = to_first.and_then(|to| Some((to, to.ratio?))) else {
            continue;
        };
        shown_worse += usize::from(to_first.against_first == Some(Against::Worse));
        shown_better += usize::from(to_first.against_first == Some(Against::Better));
        ratios.push(TurnedCost { name: cost.name().to_owned(), ratio: cost.turned(ratio) });
    }
    ratios.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let count = u32::try_from(ratios.len()).ok().filter(|count| *count > 0)?;
    let logs: f64 = ratios.iter().map(|cost| cost.ratio.ln()).sum();
    let (worst, rest) = ratios.split_at(NAMED.min(ratios.len()));
    Some(CostMean {
        group: by_kernel.then_some(side),
        run: (!by_kernel).then_some(side),
        load: load.to_owned(),
        costs: ratios.len(),
        ratio: (logs / f64::from(count)).exp(),
        worst: worst.to_vec(),
        best: rest.iter().rev().take(NAMED).cloned().collect(),
        shown_worse,
        shown_better,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{compared, cost_of, run};
    use super::*;
    use crate::schema::{Better, Cell, Unit, What};

    fn cell(column: &str, value: f64) -> Cell {
        let ends = [value * 0.99, value, value * 1.01];
        match column.starts_with("bw") {
            true => cost_of(column, Unit::MegabytesPerSecond, Better::More, ends),
            false => cost_of(column, Unit::Us, Better::Less, ends),
        }
    }

    fn pair(ratios: &[(&str, f64)]) -> Vec<CostMean> {
        let base = ratios.iter().map(|(column, _)| cell(column, 100.0)).collect();
        let other = ratios.iter().map(|(column, ratio)| cell(column, 100.0 * ratio)).collect();
        compared(vec![run("a", "none", base), run("b", "rt", other)]).cost_means
    }

    fn names(costs: &[TurnedCost]) -> Vec<&str> {
        costs.iter().map(|cost| cost.name.as_str()).collect()
    }

    #[test]
    fn the_mean_of_known_ratios_is_right() {
        // A bandwidth of an eighth is eight times worse: 2 * 8 * 1 * 1/2 * 1/8 * 4 * 1 = 4.
        let ratios = [
            ("pipe", 2.0),
            ("bw pipe", 0.125),
            ("stat", 1.0),
            ("fork proc", 0.5),
            ("bw TCP", 8.0),
            ("TCP conn", 4.0),
            ("UDP", 1.0),
        ];
        let means = pair(&ratios);
        let [mean] = &means[..] else { panic!("{means:?}") };
        assert!((mean.ratio - 4_f64.powf(1.0 / 7.0)).abs() < 1e-12, "{mean:?}");
        assert_eq!((mean.group, mean.run, mean.costs), (Some(1), None, 7));
        assert_eq!(names(&mean.worst), ["bw pipe", "TCP conn", "pipe"]);
        assert_eq!(names(&mean.best), ["bw TCP", "fork proc", "UDP"]);
        assert!((mean.worst[0].ratio - 8.0).abs() < 1e-12);
        assert_eq!((mean.shown_worse, mean.shown_better), (3, 2));
    }

    #[test]
    fn of_few_costs_none_is_both_worst_and_best() {
        let means = pair(&[("pipe", 2.0), ("stat", 1.0)]);
        assert_eq!((names(&means[0].worst), names(&means[0].best)), (vec!["pipe", "stat"], vec![]));
        let means = pair(&[("a", 4.0), ("b", 3.0), ("c", 2.0), ("d", 1.0)]);
        assert_eq!((means[0].worst.len(), names(&means[0].best)), (3, vec!["d"]));
    }

    #[test]
    fn the_clock_rate_is_no_cost_of_a_kernel() {
        let mut cells = [cell("clock", 2_000.0), cell("clock", 1_000.0)];
        for cell in &mut cells {
            let What::Cost(cost) = &mut cell.what else { panic!("a cost") };
            cost.section = CostSection::Basics;
        }
        let [a, b] = cells;
        let comparison = compared(vec![run("a", "none", vec![a]), run("b", "rt", vec![b])]);
        assert_eq!((comparison.costs.len(), comparison.cost_means), (1, Vec::new()));
    }

    #[test]
    fn loads_and_runs_of_one_kernel_stand_for_themselves() {
        let cells = |factor: f64| {
            let mut loaded = cell("stat", 30.0 * factor);
            (loaded.load, loaded.key) = ("fork".to_owned(), "stat @ fork @ 1s".to_owned());
            vec![cell("stat", 10.0 * factor), loaded]
        };
        let runs = vec![run("a", "rt", cells(1.0)), run("b", "rt", cells(1.5))];
        let means = compared(runs).cost_means;
        let found: Vec<_> = means.iter().map(|m| (m.run, m.group, m.load.as_str())).collect();
        assert_eq!(found, [(Some(1), None, "none"), (Some(1), None, "fork")]);
        assert!(means.iter().all(|mean| (mean.ratio - 1.5).abs() < 1e-12));
    }
}
