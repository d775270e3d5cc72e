//! The longest section of a run in a sentence.

use punctual_core::sections::{CellSections, KindSections, Sections};
use punctual_core::units::grouped;

use super::found::{between, ends, mostly, sampled};
use crate::explanation::times::length;
use crate::words;

/// The kind of the longest section, with its cell. Of two as long the first: a section with
/// interrupts off may be all of one in which the scheduler is not called, and says more.
fn longest(sections: &Sections) -> Option<(&CellSections, &KindSections)> {
    let cells = sections.cells.iter();
    let kinds = cells.flat_map(|cell| cell.kinds.iter().map(move |kind| (cell, kind)));
    let found: Vec<_> = kinds.filter(|(_, kind)| kind.count > 0).collect();
    found.into_iter().rev().max_by_key(|(_, kind)| kind.max_ns)
}

/// What the longest section of a run was, without a full stop.
pub(super) fn sentence(sections: &Sections) -> String {
    let Some((cell, kind)) = longest(sections) else {
        return "no section was found".to_owned();
    };
    let between = ends(kind).map(|(from, to)| between(from, to));
    let mostly = kind.longest.first().and_then(mostly);
    let place = Some(format!("in {}", words::key_name(&cell.key)));
    let parts = [between, mostly, place].into_iter().flatten();
    let parts: String = parts.map(|part| format!(", {part}")).collect();
    let samples = sampled(cell).map_or_else(String::new, |max| {
        let plural = if cell.samples == 1 { "" } else { "s" };
        format!("; {} sample{plural} found at most {max}", grouped(cell.samples))
    });
    let (ns, clause) = (length(kind.max_ns), words::section_clause(kind.how));
    format!("longest: {ns} {clause}{parts}{samples}")
}
