//! How late a kernel is at worst, beside what it costs.

use serde::Serialize;

use super::cost_mean::CostMean;
use super::groups::KernelRuns;
use super::matched::MatchedCell;
use crate::key::NO_LOAD;
use crate::schema::Run;

/// A kernel between its latency and its cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trade {
    /// The kernel: an index into [`super::Comparison::groups`].
    pub group: usize,
    /// The largest latency of its runs in the cells that every kernel has measured, ns.
    pub max_ns: i64,
    /// The cell that it is from.
    pub key: String,
    /// How many runs have that cell.
    pub runs: usize,
    /// Geometric mean of its costs' ratios to the first kernel, as [`CostMean::ratio`]; 1 for the
    /// first.
    pub cost: f64,
    /// How many costs that is of.
    pub costs: usize,
    /// The load under which the costs were measured.
    pub load: String,
}

/// One for each kernel that has both; none unless several have. Costs without a load are
/// preferred.
pub(super) fn of(
    runs: &[&Run],
    groups: &[KernelRuns],
    cells: &[MatchedCell],
    means: &[CostMean],
) -> Vec<Trade> {
    let load = means.iter().map(|mean| &mean.load).min_by_key(|load| *load != NO_LOAD);
    let Some(load) = load else { return Vec::new() };
    let measured: Vec<&MatchedCell> =
        cells.iter().filter(|cell| is_latency(runs, cell) && of_all(cell, groups)).collect();
    let mean = |group: usize| {
        let mean = means.iter().find(|mean| mean.group == Some(group) && mean.load == *load);
        mean.map(|mean| (mean.ratio, mean.costs))
    };
    let trade = |group: usize| {
        let worst = measured.iter().filter_map(|cell| {
            let spread = cell.spreads.get(group)?;
            Some((spread.max_ns?.highest, cell.key.as_str(), spread.runs))
        });
        // Of equal ones the first.
        let (max_ns, key, runs) = worst.rev().max_by_key(|(max, ..)| *max)?;
        let (cost, costs) = if group == 0 { (1.0, mean(1)?.1) } else { mean(group)? };
        Some(Trade { group, max_ns, key: key.to_owned(), runs, cost, costs, load: load.clone() })
    };
    let trades: Vec<_> = (0..groups.len()).filter_map(trade).collect();
    if trades.len() > 1 { trades } else { Vec::new() }
}

/// Whether a cell has latencies that were measured: periods and pulses are none, and neither is
/// what was made up.
fn is_latency(runs: &[&Run], cell: &MatchedCell) -> bool {
    let mut found = cell.rows.iter().filter_map(|row| runs.get(row.run)?.cells.get(row.cell));
    found.all(|cell| {
        !cell.is_simulated() && cell.latency().is_some_and(|latency| latency.ideal.is_none())
    })
}

/// A maximum over more cells is larger for that reason alone.
fn of_all(cell: &MatchedCell, groups: &[KernelRuns]) -> bool {
    cell.spreads.len() == groups.len() && cell.spreads.iter().all(|spread| spread.max_ns.is_some())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cell, compared, cost_of, run};
    use super::*;
    use crate::schema::{Better, Ideal, Unit, What};

    fn with(preemption: &str, idle_us: i64, loaded_us: i64, cost_us: f64) -> Run {
        let ends = [cost_us * 0.99, cost_us, cost_us * 1.01];
        let cells = vec![
            cell("wakeup @ none @ 1s", idle_us / 2, idle_us),
            cell("wakeup @ fork @ 1s", loaded_us / 2, loaded_us),
            cost_of("pipe", Unit::Us, Better::Less, ends),
        ];
        run(preemption, preemption, cells)
    }

    #[test]
    fn a_kernel_has_its_worst_cell_and_its_mean() {
        let trade = compared(vec![with("none", 30, 500, 10.0), with("rt", 40, 35, 12.0)]).trade;
        let found: Vec<_> =
            trade.iter().map(|t| (t.group, t.max_ns / 1_000, t.key.as_str(), t.costs)).collect();
        assert_eq!(found, [(0, 500, "wakeup @ fork @ 1s", 1), (1, 40, "wakeup @ none @ 1s", 1)]);
        assert!(trade[0].cost == 1.0 && (trade[1].cost - 1.2).abs() < 1e-12, "{trade:?}");
    }

    #[test]
    fn only_cells_of_every_kernel_count() {
        let mut rt = with("rt", 40, 35, 12.0);
        rt.cells.remove(1);
        let runs = vec![with("none", 30, 500, 10.0), with("full", 35, 400, 11.0), rt];
        let trade = compared(runs).trade;
        assert_eq!(trade.iter().map(|t| t.max_ns / 1_000).collect::<Vec<_>>(), [30, 35, 40]);
    }

    #[test]
    fn without_latencies_or_costs_of_two_kernels_there_is_none() {
        let mut runs = vec![with("none", 30, 500, 10.0), with("rt", 40, 35, 12.0)];
        let mut others = runs.clone();
        runs.iter_mut().for_each(|run| run.cells.truncate(2));
        assert_eq!(compared(runs).trade, []);
        let same = vec![with("rt", 40, 35, 12.0), with("rt", 40, 35, 12.0)];
        assert_eq!(compared(same).trade, []);
        for run in &mut others {
            for cell in &mut run.cells {
                if let What::Latency(latency) = &mut cell.what {
                    latency.ideal = Some(Ideal::Pulse { width_ns: 50_000 });
                }
            }
        }
        assert_eq!(compared(others).trade, []);
    }
}
