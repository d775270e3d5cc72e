//! Deadlines, and what missed them.

use punctual_core::schema::Run;

use super::frame::{DEADLINE, Upright};
use super::latency::{Axis, label};
use super::theme::Colour;
use crate::subject::Subject;

/// The deadline of a run, ns.
pub(crate) fn deadline(run: &Run) -> Option<f64> {
    run.verdict.deadline_ns.or(run.plan.deadline_ns).map(|ns| ns as f64)
}

/// The colour of a latency: red only if it missed the run's deadline.
pub(super) fn colour(run: &Run, ns: f64, on_time: Colour) -> Colour {
    if missed(run, ns) { Colour::Late } else { on_time }
}

/// Whether a latency missed the run's deadline.
pub(super) fn missed(run: &Run, ns: f64) -> bool {
    deadline(run).is_some_and(|deadline| ns > deadline)
}

/// `deadline 200 us`: shorter than a measured latency, since it is a round number.
pub(crate) fn deadline_label(ns: f64) -> String {
    format!("deadline {}", label(ns))
}

/// The lines of the different deadlines of runs, ascending.
pub(super) fn lines<'a>(runs: impl Iterator<Item = &'a Run>, axis: &Axis) -> Vec<Upright> {
    let mut deadlines: Vec<f64> = runs.filter_map(deadline).collect();
    deadlines.sort_by(f64::total_cmp);
    deadlines.dedup();
    let line = |ns: f64| Upright { x: axis.map(ns), paint: DEADLINE, label: deadline_label(ns) };
    deadlines.into_iter().map(line).collect()
}

/// The same of subjects.
pub(super) fn lines_of(subjects: &[&Subject<'_>], axis: &Axis) -> Vec<Upright> {
    lines(subjects.iter().map(|subject| subject.run), axis)
}
