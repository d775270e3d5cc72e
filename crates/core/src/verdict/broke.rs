//! Samples above the break value.

use crate::schema::{Broke, Cell};

/// The sample above the break value, unless it is one of a stop.
pub(super) fn broke(cell: &Cell) -> Option<&Broke> {
    cell.latency()?.broke.as_ref().filter(|broke| !is_of_stop(cell, broke))
}

/// The sample that ended the cell although it is one of a stop, as was seen only afterwards.
pub(super) fn broke_by_stop(cell: &Cell) -> Option<&Broke> {
    cell.latency()?.broke.as_ref().filter(|broke| is_of_stop(cell, broke))
}

fn is_of_stop(cell: &Cell, broke: &Broke) -> bool {
    let Some(at_ns) = broke.at_ns else { return false };
    cell.stops.iter().any(|stop| {
        let length_ns = stop.length_ns.filter(|_| stop.from_ns <= at_ns);
        length_ns.is_some_and(|length_ns| at_ns - stop.from_ns <= length_ns)
    })
}
