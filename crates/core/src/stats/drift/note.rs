//! The condition that a cell drifted.

use super::by_second::BySecond;
use super::found::changes;
use crate::schema::{Cell, Condition, DRIFT};

/// Notes in `cell` what changed in its course, in place of what was noted before; without any
/// block that stays. Nothing is said of fewer than 20 blocks, or if the order of the seconds is no
/// chance (`by_chance`): a run of a deterministic board is the whole population, and a load that
/// changes on a schedule changes the cell.
pub fn note_drift(cell: &mut Cell, course: &BySecond, by_chance: bool) {
    if course.is_empty() {
        return;
    }
    cell.conditions.retain(|condition| condition.id != DRIFT);
    let is_meant = !cell.phases.is_empty();
    let found = if by_chance && !is_meant { changes(course) } else { Vec::new() };
    if found.is_empty() {
        return;
    }
    let found: Vec<_> = found.into_iter().map(|change| change.text).collect();
    cell.conditions.push(Condition {
        id: DRIFT.to_owned(),
        text: format!(
            "it was not the same from its start to its end: {}; its numbers mix these times, and \
             the same run again may differ by more than chance",
            found.join("; ")
        ),
    });
}
