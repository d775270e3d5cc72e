//! Runs side by side: what they measured, what else differs, and what may not be
//! concluded.
//!
//! The unit of replication is the run, never the sample: a kernel that was
//! booted once has been seen once, however many million samples that boot gave.
//! So one pair of runs gets ratios and caveats; intervals need replicates.

mod boards;
mod caveats;
mod cost;
mod cost_mean;
mod differences;
mod durations;
mod episodes;
pub mod exact;
mod groups;
mod margin;
mod matched;
mod matching;
mod replicates;
mod result;
mod row;
mod settings;
mod spread;
mod trade;

pub use boards::board_names;
pub use cost::{Against, CostRow, CostSpread, MatchedCost, ToFirst};
pub use cost_mean::{CostMean, TurnedCost};
pub use differences::{Bearing, Difference};
pub use episodes::EpisodeRates;
pub(crate) use groups::by_kernel;
pub use groups::{ComparedSide, KernelRuns, are_replicates, side_noun};
pub use margin::{FEWEST_REPLICATES, Margin, MarginCell, Standing, not_worse};
pub use matched::{CHANGES, MatchedCell};
pub use matching::Unmatched;
pub use replicates::{CONFIDENCE, Estimate, Measure, Method, Replicates};
pub use result::{Comparison, RunLabel};
pub use row::{Ratios, Row};
pub use settings::{SETTINGS, Setting};
pub use spread::{Span, Spread};
pub use trade::Trade;

use crate::indices;
use crate::run::LoadedRun;
use crate::schema::Run;
use crate::text::clean;
use crate::weakened::Weakened;
use matching::match_cells;

/// Compares runs. The first one is what the others are divided by.
#[must_use]
pub fn compare(runs: &[LoadedRun]) -> Comparison {
    let records: Vec<&Run> = runs.iter().map(|loaded| &loaded.run).collect();
    let (matched, unmatched) = match_cells(&records);
    let sides: Vec<_> = runs.iter().map(|loaded| loaded.side.as_ref()).collect();
    let (groups, repeated) = groups::by_side(&records, &sides);
    let cells: Vec<_> =
        matched.iter().filter_map(|found| matched::matched(found, &groups)).collect();
    let one_boot = records.iter().any(|run| run.board.is_warm());
    let costs = matched.iter().filter_map(|found| cost::matched(found, &groups, one_boot));
    let costs: Vec<_> = costs.collect();
    let differences = differences::between(&records, &matched);
    let (replicates, notes) = replicates::estimate(&records, &groups, &matched);
    let mut said = caveats::simulated(&records);
    said.extend(durations::unmatched(runs));
    said.extend(notes);
    said.extend(repeated);
    said.extend(caveats::split(&records, &groups));
    said.extend(boards::by_name_only(&records));
    said.extend(caveats::beside_kernels(&records, &groups));
    said.extend(caveats::confounded(&differences));
    said.extend(caveats::not_idle(&records));
    said.extend(caveats::unequal_samples(&cells));
    said.extend(caveats::missing(&cells, &costs));
    said.extend(caveats::troubles(runs));
    let cost_means = cost_mean::of(&costs, &groups, runs.len());
    let trade = trade::of(&records, &groups, &cells, &cost_means);
    Comparison {
        runs: runs
            .iter()
            .zip(board_names(&records))
            .map(|(run, board)| label(run, board))
            .collect(),
        groups,
        cells,
        costs,
        cost_means,
        indices: records.iter().map(|run| indices::of_run(run)).collect(),
        trade,
        unmatched,
        differences,
        replicates,
        caveats: said,
    }
}

/// Why these runs may not be compared: some are of virtual boards that booted, others of boards
/// that went on from a kept state.
#[must_use]
pub fn warm_against_cold(runs: &[LoadedRun]) -> Option<String> {
    let virtual_ones = || runs.iter().map(|loaded| &loaded.run).filter(|r| r.board.lab.is_some());
    let warm = virtual_ones().find(|run| run.board.is_warm())?;
    let cold = virtual_ones().find(|run| !run.board.is_warm())?;
    Some(format!(
        "{} is of a warm board (--warm), {} of one that booted: their latencies differ for that \
         reason alone, and are not compared",
        clean(&warm.run_id),
        clean(&cold.run_id)
    ))
}

/// Compares runs whose cells may differ in how long they were measured: extremes, which depend on
/// that, are left out, and the first caveats say so.
#[must_use]
pub fn compare_any_duration(runs: &[LoadedRun]) -> Comparison {
    let records = runs.iter().map(|loaded| LoadedRun { cells: Vec::new(), ..loaded.clone() });
    let mut records: Vec<_> = records.collect();
    let said = durations::any_duration(&mut records);
    let mut comparison = compare(&records);
    comparison.caveats.splice(0..0, said);
    comparison
}

fn label(loaded: &LoadedRun, board: String) -> RunLabel {
    let run = &loaded.run;
    let mut weakened = Weakened::of(&[run]);
    if run.board.lab.is_some() {
        weakened.virtual_machine = 0;
    }
    RunLabel {
        label: loaded.label.clone(),
        run_id: run.run_id.clone(),
        board,
        kernel: run.kernel.release.clone(),
        preemption: run.kernel.preemption,
        state: run.state,
        origin: run.origin,
        outcome: run.verdict.outcome,
        max_ns: groups::max_ns(run),
        cells_measured: run.cells.iter().filter(|cell| cell.is_measured()).count(),
        cells_simulated: run.cells.iter().filter(|cell| cell.is_simulated()).count(),
        weakened,
    }
}

#[cfg(test)]
pub(crate) mod tests;
