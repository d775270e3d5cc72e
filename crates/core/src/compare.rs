//! Runs side by side: what they measured, in what else they differ, and what
//! may not be concluded.
//!
//! The unit of replication is the run, never the sample: a kernel that was
//! booted once has been seen once, however many million samples that boot gave.
//! So one pair of runs gets ratios and caveats; intervals need replicates.

mod differences;
pub mod exact;
mod groups;
mod replicates;
mod spread;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

pub use differences::{Difference, Role};
pub use groups::Side;
pub use replicates::{CONFIDENCE, Estimate, Quantity, Replicates};
pub use spread::{Span, Spread};

use crate::run::LoadedRun;
use crate::schema::{Cell, CellState, Outcome, Run, RunState};
use crate::units::grouped;

/// Two or more runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs, in the order given; `run` elsewhere is an index into them.
    pub runs: Vec<RunLabel>,
    /// The runs by kernel, in the order of their first runs.
    pub groups: Vec<Side>,
    /// The cells that at least two runs have, in the order of the first run.
    pub cells: Vec<MatchedCell>,
    /// The cells that only one run has.
    pub unmatched: Vec<Unmatched>,
    /// In what the runs differ beside their results.
    pub differences: Vec<Difference>,
    /// Estimates over replicates, where the first kernel and another one have
    /// several runs.
    pub replicates: Option<Replicates>,
    /// What may not be concluded, one sentence each, the most important first.
    pub caveats: Vec<String>,
}

impl Comparison {
    /// Whether the runs are to be read by kernel, as replicates, and not one by one.
    #[must_use]
    pub fn is_replicated(&self) -> bool {
        self.runs.len() > 2 && self.groups.iter().any(|group| group.runs.len() > 1)
    }
}

/// Which run a column stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunLabel {
    /// Its unique name.
    pub run_id: String,
    /// Name of the board.
    pub board: String,
    /// `uname -r`.
    pub kernel: String,
    /// Preemption model.
    pub preemption: String,
    /// Whether the run ended, and how.
    pub state: RunState,
    /// Its outcome.
    pub outcome: Outcome,
}

/// One cell as several runs measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatchedCell {
    /// What the cells were matched by; a number follows where a plan holds the
    /// same cell several times.
    pub key: String,
    /// One row for each run that has the cell, in their order.
    pub rows: Vec<Row>,
    /// The same by kernel, one for each of [`Comparison::groups`].
    pub spreads: Vec<Spread>,
}

/// What one run measured in a cell. Latencies are in ns and absent as in
/// [`crate::schema::Stats`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Index of the run.
    pub run: usize,
    /// Index of the cell in the run.
    pub cell: usize,
    /// How the cell stands.
    pub state: CellState,
    /// Its outcome.
    pub outcome: Outcome,
    /// Largest sample.
    pub max_ns: Option<i64>,
    /// 99.9 % quantile.
    pub p999_ns: Option<i64>,
    /// 99 % quantile.
    pub p99_ns: Option<i64>,
    /// Mean.
    pub avg_ns: Option<f64>,
    /// Smallest sample.
    pub min_ns: Option<i64>,
    /// Latencies measured.
    pub samples: u64,
    /// Releases that passed unserved.
    pub missed: u64,
    /// The same, divided by the cell's first row.
    pub ratio: Ratios,
}

/// A row divided by the first row of its cell; absent where one of the two is
/// absent or not above zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Ratios {
    /// Of the largest samples.
    pub max: Option<f64>,
    /// Of the 99.9 % quantiles.
    pub p999: Option<f64>,
    /// Of the 99 % quantiles.
    pub p99: Option<f64>,
    /// Of the means.
    pub avg: Option<f64>,
    /// Of the smallest samples.
    pub min: Option<f64>,
}

/// A cell that only one run has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// Its key.
    pub key: String,
    /// Index of the run.
    pub run: usize,
}

/// Compares runs. The first one is what the others are divided by.
#[must_use]
pub fn compare(runs: &[LoadedRun]) -> Comparison {
    let records: Vec<&Run> = runs.iter().map(|loaded| &loaded.run).collect();
    let (matched, unmatched) = match_cells(&records);
    let (groups, repeated) = groups::by_kernel(&records);
    let cells: Vec<_> = matched.iter().map(|found| matched_cell(found, &groups)).collect();
    let differences = differences::between(&records, &matched);
    let (replicates, notes) = replicates::estimate(&records, &groups, &matched);
    let mut caveats = notes;
    caveats.extend(repeated);
    caveats.extend(confounded(&differences));
    caveats.extend(unequal_samples(&cells));
    caveats.extend(troubles(runs));
    Comparison {
        runs: records.iter().map(|run| label(run)).collect(),
        groups,
        cells,
        unmatched,
        differences,
        replicates,
        caveats,
    }
}

fn label(run: &Run) -> RunLabel {
    RunLabel {
        run_id: run.run_id.clone(),
        board: run.board.name.clone(),
        kernel: run.kernel.release.clone(),
        preemption: run.kernel.preemption.clone(),
        state: run.state,
        outcome: run.verdict.outcome,
    }
}

/// A key and the cells that have it: the run, the cell's index in it, the cell.
struct Match<'a> {
    key: String,
    cells: Vec<(usize, usize, &'a Cell)>,
}

fn match_cells<'a>(runs: &[&'a Run]) -> (Vec<Match<'a>>, Vec<Unmatched>) {
    let mut order: Vec<Match<'a>> = Vec::new();
    let mut place = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for (index, cell) in run.cells.iter().enumerate() {
            let nth = seen.entry(&cell.key).or_insert(0);
            *nth += 1;
            let at = *place.entry((cell.key.as_str(), *nth)).or_insert_with(|| {
                let key = match *nth {
                    1 => cell.key.clone(),
                    nth => format!("{} ({nth})", cell.key),
                };
                order.push(Match { key, cells: Vec::new() });
                order.len() - 1
            });
            order[at].cells.push((number, index, cell));
        }
    }
    let (matched, single): (Vec<_>, Vec<_>) = order.into_iter().partition(|m| m.cells.len() > 1);
    let unmatched = single.into_iter().flat_map(|m| {
        let key = m.key;
        m.cells.into_iter().map(move |(run, ..)| Unmatched { key: key.clone(), run })
    });
    (matched, unmatched.collect())
}

fn matched_cell(found: &Match<'_>, groups: &[Side]) -> MatchedCell {
    let first = &found.cells[0].2.stats;
    let rows = found.cells.iter().map(|(run, index, cell)| {
        let stats = &cell.stats;
        Row {
            run: *run,
            cell: *index,
            state: cell.state,
            outcome: cell.verdict.outcome,
            max_ns: stats.max_ns,
            p999_ns: stats.p999_ns,
            p99_ns: stats.p99_ns,
            avg_ns: stats.avg_ns,
            min_ns: stats.min_ns,
            samples: stats.samples,
            missed: stats.missed,
            ratio: Ratios {
                max: ratio(real(stats.max_ns), real(first.max_ns)),
                p999: ratio(real(stats.p999_ns), real(first.p999_ns)),
                p99: ratio(real(stats.p99_ns), real(first.p99_ns)),
                avg: ratio(stats.avg_ns, first.avg_ns),
                min: ratio(real(stats.min_ns), real(first.min_ns)),
            },
        }
    });
    let rows: Vec<Row> = rows.collect();
    let spreads = spread::of_rows(&rows, groups);
    MatchedCell { key: found.key.clone(), rows, spreads }
}

#[allow(clippy::cast_precision_loss, reason = "a ratio of latencies needs no 16th digit")]
fn real(ns: Option<i64>) -> Option<f64> {
    ns.map(|ns| ns as f64)
}

fn ratio(value: Option<f64>, base: Option<f64>) -> Option<f64> {
    let (value, base) = (value?, base?);
    (value > 0.0 && base > 0.0).then(|| value / base)
}

fn confounded(differences: &[Difference]) -> Option<String> {
    let mut what: Vec<&str> = Vec::new();
    for difference in differences.iter().filter(|d| d.role == Role::Confounder) {
        if !what.contains(&difference.what.as_str()) {
            what.push(&difference.what);
        }
    }
    (!what.is_empty()).then(|| {
        format!(
            "the runs differ in more than their kernels ({}): a difference of the results need \
             not come from the kernels",
            what.join(", ")
        )
    })
}

/// By how much sample counts may differ before it is said, as a share.
const SAMPLES_APART: f64 = 0.01;

fn unequal_samples(cells: &[MatchedCell]) -> Vec<String> {
    let mut found = Vec::new();
    for cell in cells {
        let counts = cell.rows.iter().map(|row| row.samples).filter(|samples| *samples > 0);
        if cell.rows.iter().any(|row| row.samples == 0) {
            found.push(format!("{}: not measured in every run", cell.key));
        }
        let (low, high) = (counts.clone().min(), counts.max());
        let (Some(low), Some(high)) = (low, high) else {
            continue;
        };
        #[allow(clippy::cast_precision_loss, reason = "a share of counts")]
        if (high - low) as f64 > SAMPLES_APART * high as f64 {
            found.push(format!(
                "{}: {} to {} samples: the more samples, the larger the maximum, by chance alone",
                cell.key,
                grouped(low),
                grouped(high)
            ));
        }
    }
    found
}

fn troubles(runs: &[LoadedRun]) -> Vec<String> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for loaded in runs {
        let id = &loaded.run.run_id;
        if !known.insert(id) {
            found.push(format!("{id} is given more than once"));
        }
        let how = match loaded.run.state {
            RunState::Complete => None,
            RunState::Running => Some("was cut short"),
            RunState::Interrupted => Some("was interrupted"),
            RunState::Failed => Some("ended by an error"),
        };
        found.extend(how.map(|how| format!("{id} {how}: its cells hold what was measured")));
        found.extend(loaded.damage.iter().map(|what| format!("{id}: {what}")));
    }
    found
}

#[cfg(test)]
mod tests;
