//! Cells whose load changes on a schedule.

use super::{CellPlan, Plan, PlanError, Subject};
use crate::phases::{MAX_CHANGES, PhaseError, length_ns, parse};
use crate::units::exact_duration;

/// The duration of a cell under `load`, ns: the one that was `given` for it, else the length of the
/// load's schedule, else the `usual` one.
#[must_use]
pub fn duration_ns(load: &str, given: Option<u64>, usual: u64) -> u64 {
    given.or_else(|| length_ns(load)).unwrap_or(usual)
}

impl Plan {
    /// How long one of its cells takes at most, warm-up included, ns: a cost has none.
    #[must_use]
    pub fn takes_ns(&self, cell: &CellPlan) -> u64 {
        match cell.subject {
            Subject::Probe(_) => cell.duration_ns.saturating_add(self.warmup_ns),
            Subject::Cost(_) => cell.duration_ns,
        }
    }
}

/// Checks that a cell is as long as the schedule of its load, which repeats if the cell is longer.
pub(super) fn check(cell: &CellPlan) -> Result<(), PlanError> {
    let Some(phases) = parse(&cell.load)? else { return Ok(()) };
    let refused = |reason| {
        let duration = exact_duration(cell.duration_ns);
        Err(PlanError::Phase(PhaseError::Cell { duration, reason }))
    };
    let Some(once) = length_ns(&cell.load) else {
        return refused("the schedule of its load is longer than 584 years".to_owned());
    };
    let load = &cell.load;
    if matches!(cell.subject, Subject::Cost(_)) {
        return refused(format!(
            "a cost is measured under one load; leave out the schedule \"{load}\""
        ));
    }
    if cell.duration_ns < once {
        let least = exact_duration(once);
        return refused(format!(
            "the schedule \"{load}\" takes {least}; measure for that long, or leave the \
             duration out"
        ));
    }
    let changes = (cell.duration_ns / once).saturating_mul(phases.len() as u64);
    if changes > MAX_CHANGES {
        return refused(format!(
            "the load would change {changes} times, at most {MAX_CHANGES} are possible; make the \
             phases longer"
        ));
    }
    Ok(())
}
