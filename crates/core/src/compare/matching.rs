//! Which cells of several runs are the same.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::schema::{Cell, Run};

/// A cell that only one run has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// Its key.
    pub key: String,
    /// Index of the run.
    pub run: usize,
}

/// A key and the cells that have it: the run, the cell's index in it, the cell.
pub(super) struct Match<'a> {
    pub key: String,
    pub cells: Vec<(usize, usize, &'a Cell)>,
}

/// Matches cells of one kind and key; those that several runs have, and those that one has.
pub(super) fn match_cells<'a>(runs: &[&'a Run]) -> (Vec<Match<'a>>, Vec<Unmatched>) {
    let mut order: Vec<Match<'a>> = Vec::new();
    let mut place = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        let mut seen = BTreeMap::new();
        for (index, cell) in run.cells.iter().enumerate() {
            let nth = seen.entry((cell.what.kind(), &cell.key)).or_insert(0_u32);
            *nth += 1;
            let at = *place.entry((cell.what.kind(), &cell.key, *nth)).or_insert_with(|| {
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
