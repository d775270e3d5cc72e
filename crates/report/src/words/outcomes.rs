//! How outcomes are called, and what every verdict says besides.

use std::collections::BTreeMap;

use punctual_core::compare::{Comparison, KernelRuns, RunLabel};
use punctual_core::schema::{Cell, Origin, Outcome, Run, Thread};
use punctual_core::verdict::Pooled;
use punctual_core::weakened::Weakened;

/// The label of what is made up.
pub const SIMULATED: &str = "SIMULATED";

/// The label of a run that made up some of its cells.
pub const SIMULATED_IN_PART: &str = "in part SIMULATED";

const NOT_REAL_TIME: &str = "not real-time";

/// The label of what was measured in a virtual machine.
pub const VIRTUAL_MACHINE: &str = "virtual machine";

const DRIFT: &str = "drift";

/// The outcome of something that was measured, or not, as it is printed. Without a deadline
/// nothing was judged.
#[must_use]
pub fn outcome(outcome: Outcome, is_measured: bool) -> &'static str {
    match outcome {
        Outcome::None if is_measured => "MEASURED",
        Outcome::None => "NOT MEASURED",
        Outcome::Pass => "PASS",
        Outcome::Skipped => "SKIPPED",
        Outcome::Inconclusive => "INCONCLUSIVE",
        Outcome::Break => "BREAK",
        Outcome::Fail => "FAIL",
    }
}

/// The outcome of a run as it is printed.
#[must_use]
pub fn run_outcome(run: &Run) -> &'static str {
    outcome(run.verdict.outcome, run.cells.iter().any(Cell::is_measured))
}

/// The outcome of a run that is compared, as it is printed.
#[must_use]
pub fn compared_outcome(run: &RunLabel) -> &'static str {
    outcome(run.outcome, run.cells_measured > 0)
}

/// The outcome of a cell as it is printed.
#[must_use]
pub fn cell_outcome(cell: &Cell) -> &'static str {
    outcome(cell.verdict.outcome, cell.is_measured())
}

/// The outcome of a thread as it is printed.
#[must_use]
pub fn thread_outcome(thread: &Thread) -> &'static str {
    outcome(thread.verdict.outcome, thread.stats.samples > 0)
}

/// How many runs of a kernel ended how, the worst first: `3 FAIL`, `5 PASS`.
#[must_use]
pub fn outcomes(comparison: &Comparison, group: &KernelRuns) -> Vec<(Outcome, String)> {
    let mut counts: BTreeMap<(Outcome, &str), usize> = BTreeMap::new();
    for run in group.runs.iter().filter_map(|run| comparison.runs.get(*run)) {
        *counts.entry((run.outcome, compared_outcome(run))).or_default() += 1;
    }
    let all = group.runs.len();
    let text = |((of, name), count): ((Outcome, &str), usize)| match of {
        Outcome::None if count == all => (of, name.to_owned()),
        _ => (of, format!("{count} {name}")),
    };
    counts.into_iter().rev().map(text).collect()
}

/// Whether a run was made up.
#[must_use]
pub fn simulated_run(run: &Run) -> Option<&'static str> {
    share(run.origin, run.cells.iter().any(Cell::is_simulated))
}

/// What weakens a run that is compared. That its board is a virtual one of the lab its name says.
#[must_use]
pub fn compared_labels(run: &RunLabel) -> Vec<&'static str> {
    weakened(run.weakened, 1)
}

/// What weakens the runs of a side: what weakens one of them weakens all.
#[must_use]
pub fn side_labels(comparison: &Comparison, group: &KernelRuns) -> Vec<&'static str> {
    let runs = group.runs.iter().filter_map(|run| comparison.runs.get(*run));
    let all = runs.fold(Weakened::default(), |all, run| all.and(run.weakened));
    weakened(all, group.runs.len())
}

fn share(origin: Origin, in_part: bool) -> Option<&'static str> {
    match origin {
        Origin::Simulated => Some(SIMULATED),
        _ => in_part.then_some(SIMULATED_IN_PART),
    }
}

/// What weakens every claim of a run: each verdict and headline of it says so.
#[must_use]
pub fn labels(run: &Run) -> Vec<&'static str> {
    labels_of(&[run])
}

/// An outcome with what weakens it: `PASS (not real-time)`.
#[must_use]
pub fn labelled(outcome: &str, labels: &[&str]) -> String {
    if labels.is_empty() {
        return outcome.to_owned();
    }
    format!("{outcome} ({})", labels.join(", "))
}

/// The same of several runs: what weakens one of them weakens what is said of all.
#[must_use]
pub fn labels_of(runs: &[&Run]) -> Vec<&'static str> {
    weakened(Weakened::of(runs), runs.len())
}

/// The same of runs that were judged as one.
#[must_use]
pub fn labels_pooled(pooled: &Pooled) -> Vec<&'static str> {
    weakened(pooled.weakened, pooled.runs.len())
}

fn weakened(by: Weakened, runs: usize) -> Vec<&'static str> {
    let Weakened { simulated, simulated_in_part, not_real_time, virtual_machine, drift } = by;
    let made_up = match simulated {
        all if all == runs && all > 0 => Some(SIMULATED),
        some => (some + simulated_in_part > 0).then_some(SIMULATED_IN_PART),
    };
    [
        made_up,
        (not_real_time > 0).then_some(NOT_REAL_TIME),
        (virtual_machine > 0).then_some(VIRTUAL_MACHINE),
        (drift > 0).then_some(DRIFT),
    ]
    .into_iter()
    .flatten()
    .collect()
}
