//! The line of a deadline.

use punctual_core::schema::Run;

use super::latency::label;
use crate::subject::Subject;

/// The deadline of a run, ns.
pub(crate) fn deadline(run: &Run) -> Option<f64> {
    run.verdict.deadline_ns.or(run.plan.deadline_ns).map(|ns| ns as f64)
}

/// `deadline 200 us`: shorter than a measured latency, since it is a round number.
pub(crate) fn deadline_label(ns: f64) -> String {
    format!("deadline {}", label(ns))
}

/// The different deadlines of the runs, ascending.
pub(super) fn all<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<f64> {
    let mut deadlines: Vec<f64> = runs.filter_map(deadline).collect();
    deadlines.sort_by(f64::total_cmp);
    deadlines.dedup();
    deadlines
}

/// The same of subjects.
pub(super) fn of_subjects(subjects: &[Subject<'_>]) -> Vec<f64> {
    all(subjects.iter().map(|subject| subject.run))
}
