//! Cells of latencies, side by side.

use serde::Serialize;

use super::groups::KernelRuns;
use super::matching::Match;
use super::row::Row;
use super::spread::{self, Spread};
use crate::schema::{Cell, Stats};

/// Stands for a load while that changes.
pub const CHANGES: &str = "changes";

/// One cell as several runs measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatchedCell {
    /// What the cells were matched by; a number follows if a plan contains the
    /// same cell several times.
    pub key: String,
    /// One row for each run that has the cell, in their order.
    pub rows: Vec<Row>,
    /// The same by kernel, one for each of [`super::Comparison::groups`].
    pub spreads: Vec<Spread>,
    /// What was found in each phase of a load that changes on a schedule, with its load as `key`,
    /// then what was found while it changed, if anything ([`CHANGES`]).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<MatchedCell>,
}

/// The rows of a cell; none for a cost.
pub(super) fn matched(found: &Match<'_>, groups: &[KernelRuns]) -> Option<MatchedCell> {
    let mut cell = rows(&found.key, &found.cells, groups, &|cell| Some(&cell.latency()?.stats))?;
    cell.phases = phases(found, groups);
    Some(cell)
}

/// What `stats` gives for each cell, divided by that of the first; none if that has none.
fn rows<'a>(
    key: &str,
    cells: &[(usize, usize, &'a Cell)],
    groups: &[KernelRuns],
    stats: &dyn Fn(&'a Cell) -> Option<&'a Stats>,
) -> Option<MatchedCell> {
    let first = stats(cells.first()?.2)?;
    let rows = cells
        .iter()
        .filter_map(|(run, index, cell)| Some(Row::of(*run, *index, cell, stats(cell)?, first)));
    let rows: Vec<Row> = rows.collect();
    let spreads = spread::of_rows(&rows, groups);
    Some(MatchedCell { key: key.to_owned(), rows, spreads, phases: Vec::new() })
}

/// The phases, if several cells have them and all of these have the same: one that was not
/// measured has none.
fn phases(found: &Match<'_>, groups: &[KernelRuns]) -> Vec<MatchedCell> {
    let cells = found.cells.iter().filter(|(.., cell)| !cell.phases.is_empty());
    let cells: Vec<_> = cells.copied().collect();
    let [(.., first), others @ ..] = &cells[..] else { return Vec::new() };
    let is_same = |(.., cell): &(usize, usize, &Cell)| schedule(first).eq(schedule(cell));
    if others.is_empty() || !others.iter().all(is_same) {
        return Vec::new();
    }
    let of = |number: usize, key: &str| {
        rows(key, &cells, groups, &|cell| match cell.phases.get(number) {
            Some(phase) => Some(&phase.found.stats),
            None => cell.changes.as_ref().map(|found| &found.stats),
        })
    };
    let phases = first.phases.iter().enumerate();
    let mut matched: Vec<_> = phases.filter_map(|(n, phase)| of(n, &phase.load)).collect();
    let changes = of(first.phases.len(), CHANGES);
    matched.extend(changes.filter(|one| one.rows.iter().any(|row| row.samples > 0)));
    matched
}

fn schedule(cell: &Cell) -> impl Iterator<Item = (&str, u64)> {
    cell.phases.iter().map(|phase| (phase.load.as_str(), phase.for_ns))
}
