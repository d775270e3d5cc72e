//! What operations cost, in several runs.

use serde::Serialize;

use super::groups::KernelRuns;
use super::matching::Match;
use super::replicates::Tests;
use super::row::ratio;
use super::spread::Span;
use crate::key;
use crate::schema::{Better, CellState, Cost, CostEnd, CostSection, Unit};
use crate::stats::{Known, hodges_lehmann, ratio_interval};

/// One cost as several runs measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatchedCost {
    /// What the cells were matched by.
    pub key: String,
    /// Name of the metric.
    pub metric: String,
    /// The part of the table of costs that it stands in.
    pub section: CostSection,
    /// Its name there; without one it is called by its key.
    pub column: Option<String>,
    /// The load.
    pub load: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Which way is better.
    pub better: Better,
    /// One row for each run that has the cell, in their order.
    pub rows: Vec<CostRow>,
    /// The same by kernel, one for each of [`super::Comparison::groups`].
    pub spreads: Vec<CostSpread>,
}

/// What one run measured. Values are absent as in [`Cost`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostRow {
    /// Index of the run.
    pub run: usize,
    /// Index of the cell in the run.
    pub cell: usize,
    /// How the cell stands.
    pub state: CellState,
    /// Why it was not measured, if it was not.
    pub reason: Option<String>,
    /// How the repetitions ended.
    pub end: Option<CostEnd>,
    /// Median of the repetitions.
    pub value: Option<f64>,
    /// Lower end of the interval of the median.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Instructions that the value stands for.
    pub instructions: Option<f64>,
    /// How it stands to the first row.
    #[serde(flatten)]
    pub to_first: ToFirst,
}

/// What the runs of one kernel measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostSpread {
    /// The kernel: an index into [`super::Comparison::groups`].
    pub group: usize,
    /// How many of its runs have a value.
    pub runs: usize,
    /// The values of those runs; absent without one.
    pub value: Option<Span<f64>>,
    /// Instructions that they stand for; absent if one of them lacks them.
    pub instructions: Option<Span<f64>>,
    /// How they stand to those of the first kernel: the median of the ratios of all pairs of runs,
    /// with the interval that latencies have; of one run each, that of the two rows.
    #[serde(flatten)]
    pub to_first: ToFirst,
}

/// How a cost stands to that of the first run or kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ToFirst {
    /// The value, divided by that of the first; absent for the first itself, for another unit,
    /// and unless both are above zero.
    pub ratio: Option<f64>,
    /// The interval of the ratio, 95 %, two-sided.
    pub ratio_interval: Option<[f64; 2]>,
    /// What the interval shows; absent without one.
    pub against_first: Option<Against>,
}

impl CostRow {
    /// Whether there is a result: a value, or that it is below what can be measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.value.is_some() || self.end == Some(CostEnd::NotMeasurable)
    }
}

impl MatchedCost {
    /// What it is called in tables, without its load.
    #[must_use]
    pub fn name(&self) -> &str {
        self.column.as_deref().unwrap_or_else(|| key::subject(&self.key))
    }

    /// A ratio turned so that more than 1 is worse.
    #[must_use]
    pub fn turned(&self, ratio: f64) -> f64 {
        if self.better == Better::More { 1.0 / ratio } else { ratio }
    }
}

impl ToFirst {
    fn of(better: Better, ratio: Option<f64>, interval: Option<[f64; 2]>) -> Self {
        let ratio_interval = interval.filter(|_| ratio.is_some());
        let against_first = ratio_interval.map(|ends| Against::of(better, ends));
        Self { ratio, ratio_interval, against_first }
    }
}

/// How one cost stands to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// The interval of the ratio excludes 1, and this one is better.
    Better,
    /// The interval excludes 1, and this one is worse.
    Worse,
    /// The interval includes 1: nothing is shown.
    Alike,
}

impl Against {
    fn of(better: Better, [low, high]: [f64; 2]) -> Self {
        if low <= 1.0 && 1.0 <= high {
            Self::Alike
        } else if (high < 1.0) == (better == Better::Less) {
            Self::Better
        } else {
            Self::Worse
        }
    }
}

/// The rows of a cell; none for latencies. The runs of a kernel are replicates unless all are of
/// one boot.
pub(super) fn matched(
    found: &Match<'_>,
    groups: &[KernelRuns],
    one_boot: bool,
) -> Option<MatchedCost> {
    let (_, _, cell) = found.cells.first()?;
    let first = cell.cost()?;
    let rows = found.cells.iter().enumerate().filter_map(|(number, (run, index, cell))| {
        let cost = cell.cost()?;
        let base = Some(first).filter(|first| number > 0 && first.unit == cost.unit);
        let ratio = base.and_then(|base| ratio(cost.value, base.value));
        let interval = base.and_then(|base| ratio_interval(known(cost)?, known(base)?));
        Some(CostRow {
            run: *run,
            cell: *index,
            state: cell.state,
            reason: cell.reason.clone(),
            end: cost.end,
            value: cost.value,
            low: cost.low,
            high: cost.high,
            instructions: cost.instructions,
            to_first: ToFirst::of(first.better, ratio, interval),
        })
    });
    let spreads = spreads(found, first, groups, one_boot);
    Some(MatchedCost {
        key: found.key.clone(),
        metric: first.metric.clone(),
        section: first.section,
        column: first.column.clone(),
        load: cell.load.clone(),
        unit: first.unit,
        better: first.better,
        rows: rows.collect(),
        spreads,
    })
}

fn known(cost: &Cost) -> Option<Known> {
    Some([cost.low?, cost.value?, cost.high?])
}

fn spreads(
    found: &Match<'_>,
    first: &Cost,
    groups: &[KernelRuns],
    one_boot: bool,
) -> Vec<CostSpread> {
    let of_group = |group: &KernelRuns| {
        let mine = found.cells.iter().filter(|(run, ..)| group.runs.contains(run));
        let costs = mine.filter_map(|(.., cell)| cell.cost());
        let costs = costs.filter(|cost| cost.unit == first.unit && cost.value.is_some());
        costs.collect::<Vec<_>>()
    };
    let base = groups.first().map(of_group).unwrap_or_default();
    let spread = |(number, group): (usize, &KernelRuns)| {
        let mine = of_group(group);
        let (ratio, interval) = match (&base[..], &mine[..]) {
            _ if number == 0 => (None, None),
            ([base], [mine]) => (
                ratio(mine.value, base.value),
                known(mine).zip(known(base)).and_then(|(mine, base)| ratio_interval(mine, base)),
            ),
            _ => over_runs(&base, &mine, one_boot),
        };
        CostSpread {
            group: number,
            runs: mine.len(),
            value: Span::of(mine.iter().map(|cost| cost.value), |value| value),
            instructions: Span::of(mine.iter().map(|cost| cost.instructions), |count| count),
            to_first: ToFirst::of(first.better, ratio, interval),
        }
    };
    groups.iter().enumerate().map(spread).collect()
}

/// The ratio of two kernels with runs as replicates, as for latencies.
fn over_runs(base: &[&Cost], mine: &[&Cost], one_boot: bool) -> (Option<f64>, Option<[f64; 2]>) {
    let logs = |costs: &[&Cost]| -> Option<Vec<f64>> {
        let values = costs.iter().map(|cost| cost.value.filter(|value| *value > 0.0));
        values.map(|value| value.map(f64::ln)).collect()
    };
    let (Some(base), Some(mine)) = (logs(base), logs(mine)) else { return (None, None) };
    let shifts = Tests::default().shifts(&base, &mine).filter(|_| !one_boot);
    let interval = shifts.and_then(|shifts| Some(shifts.interval(0.05)?.map(f64::exp)));
    (hodges_lehmann(&base, &mine).map(f64::exp), interval)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, compared, cost, run};
    use super::*;

    fn against_first(base: [f64; 3], other: [f64; 3], better: Better) -> CostRow {
        let side = |id, preemption, [low, value, high]: [f64; 3]| {
            let mut cell = cost("lat.syscall @ none @ 1s", low, value, high);
            if let crate::schema::What::Cost(cost) = &mut cell.what {
                cost.better = better;
            }
            run(id, preemption, vec![cell])
        };
        let comparison = compared(vec![side("a", "none", base), side("b", "rt", other)]);
        assert!(comparison.cells.is_empty() && comparison.unmatched.is_empty());
        comparison.costs[0].rows[1].clone()
    }

    #[test]
    fn costs_differ_only_if_the_interval_of_their_ratio_excludes_1() {
        // Of 10 % each, 14 % together.
        let base = [90.0, 100.0, 110.0];
        for (other, less, more) in [
            ([104.0, 115.0, 127.0], Against::Worse, Against::Better),
            ([100.0, 112.0, 124.0], Against::Alike, Against::Alike),
            ([80.0, 88.0, 97.0], Against::Alike, Against::Alike),
            ([78.0, 85.0, 93.0], Against::Better, Against::Worse),
        ] {
            let row = against_first(base, other, Better::Less).to_first;
            assert_eq!((row.against_first, row.ratio), (Some(less), Some(other[1] / 100.0)));
            let [low, high] = row.ratio_interval.unwrap();
            assert!(low < other[1] / 100.0 && other[1] / 100.0 < high);
            let row = against_first(base, other, Better::More).to_first;
            assert_eq!(row.against_first, Some(more));
        }
    }

    /// Runs of two kernels in turn, each so much slower than 100 with an interval of 1 %.
    fn replicated(values: &[(&str, f64)]) -> MatchedCost {
        let runs = values.iter().enumerate().map(|(number, (preemption, value))| {
            let cell = cost("lat.syscall @ none @ 1s", value * 0.99, *value, value * 1.01);
            run(&number.to_string(), preemption, vec![cell])
        });
        compared(runs.collect()).costs.remove(0)
    }

    #[test]
    fn replicates_count_by_runs_and_not_by_repetitions() {
        let [three, four] = [3, 4].map(|count| {
            let none = (0..count).map(|i| ("none", 100.0 + f64::from(i)));
            let rt = (0..count).map(|i| ("rt", 110.0 + f64::from(i)));
            replicated(&none.chain(rt).collect::<Vec<_>>())
        });
        let [base, rt] = &four.spreads[..] else { panic!("two kernels") };
        assert_eq!((base.runs, base.to_first), (4, ToFirst::default()));
        assert_eq!(rt.value, Some(Span { lowest: 110.0, median: 111.5, highest: 113.0 }));
        assert_eq!(rt.to_first.against_first, Some(Against::Worse));
        // With four of each the rank sum test rejects nothing but what is beyond all pairs.
        let [low, high] = rt.to_first.ratio_interval.unwrap();
        assert!((low - 110.0 / 103.0).abs() < 1e-9 && (high - 1.13).abs() < 1e-9, "{low} {high}");
        let few = &three.spreads[1].to_first;
        assert_eq!(
            (few.ratio.is_some(), few.ratio_interval, few.against_first),
            (true, None, None)
        );
    }

    #[test]
    fn one_run_of_each_kernel_has_the_interval_of_its_rows() {
        let pair = replicated(&[("none", 100.0), ("rt", 110.0)]);
        assert_eq!(pair.spreads[1].to_first, pair.rows[1].to_first);
        assert_eq!(pair.rows[1].to_first.against_first, Some(Against::Worse));
    }

    #[test]
    fn without_an_interval_nothing_is_said() {
        let mut cells = [cost("c", 1.0, 2.0, 3.0), cost("c", 4.0, 5.0, 6.0)];
        let crate::schema::What::Cost(second) = &mut cells[1].what else { panic!("a cost") };
        second.low = None;
        let [a, b] = cells;
        let comparison = compared(vec![run("a", "none", vec![a]), run("b", "rt", vec![b])]);
        let rows = &comparison.costs[0].rows;
        assert_eq!((rows[1].to_first.ratio, rows[1].to_first.against_first), (Some(2.5), None));
        assert_eq!(rows[0].to_first, ToFirst::default());
    }

    #[test]
    fn a_cost_and_a_probe_of_one_key_are_not_mixed() {
        let a = run("a", "none", vec![cost("x", 1.0, 2.0, 3.0)]);
        let b = run("b", "rt", vec![cell("x", 1, 2)]);
        let comparison = compared(vec![a, b]);
        assert!(comparison.cells.is_empty() && comparison.costs.is_empty());
        assert_eq!(comparison.unmatched.len(), 2);
    }

    #[test]
    fn costs_that_a_run_lacks_are_said_once() {
        let keys = ["x", "y", "z"];
        let cells = || keys.map(|key| cost(key, 1.0, 2.0, 3.0)).to_vec();
        let mut lacking = cells();
        for cell in &mut lacking[1..] {
            let crate::schema::What::Cost(cost_of) = &mut cell.what else { panic!("a cost") };
            cost_of.value = None;
        }
        let comparison = compared(vec![run("a", "none", cells()), run("b", "rt", lacking)]);
        let said = comparison.caveats.iter().filter(|said| said.contains("not measured"));
        assert_eq!(said.collect::<Vec<_>>(), ["not measured in every run: y, z"]);
    }
}
