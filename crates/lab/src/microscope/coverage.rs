//! Which functions the cells of a run executed, from the blocks that they did.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use punctual_core::coverage::{CellCoverage, Coverage, ExecutedFunction, LockingFunction};

use super::functions::Functions;

/// What a cell executed.
pub(super) struct Cell<'a> {
    pub(super) key: &'a str,
    pub(super) load: &'a str,
    /// Addresses of blocks of the kernel, each once.
    pub(super) blocks: &'a [u64],
}

/// What the cells executed; `locking` are the addresses at which the kernel takes locks.
pub(super) fn coverage(cells: &[Cell], functions: &Functions, locking: &[u64]) -> Coverage {
    let mut places: BTreeMap<u64, (&str, u64)> = BTreeMap::new();
    for (start, name) in locking.iter().filter_map(|place| functions.whole(*place)) {
        places.entry(start).or_insert((name, 0)).1 += 1;
    }
    let mut executed: BTreeMap<u64, (&str, Vec<u64>)> = BTreeMap::new();
    for (number, cell) in cells.iter().enumerate() {
        for (start, name) in cell.blocks.iter().filter_map(|block| functions.whole(*block)) {
            executed.entry(start).or_insert_with(|| (name, vec![0; cells.len()])).1[number] += 1;
        }
    }
    let cell = |(number, cell): (usize, &Cell)| {
        let own = || executed.iter().filter(move |(_, (_, blocks))| blocks[number] > 0);
        let only =
            own().filter(|(_, (_, all))| all.iter().filter(|blocks| **blocks > 0).count() == 1);
        CellCoverage {
            key: cell.key.to_owned(),
            load: cell.load.to_owned(),
            blocks: cell.blocks.len() as u64,
            functions: own().count() as u64,
            locking: own().filter(|(start, _)| places.contains_key(start)).count() as u64,
            only: sorted(only.map(|(_, (name, _))| (*name).to_owned())),
        }
    };
    let of_cells = cells.iter().enumerate().map(cell).collect();
    let unreached = places.iter().filter(|(start, _)| !executed.contains_key(start));
    let mut unreached: Vec<LockingFunction> = unreached
        .map(|(_, (name, places))| LockingFunction { name: (*name).to_owned(), places: *places })
        .collect();
    unreached.sort_by(|a, b| (Reverse(a.places), &a.name).cmp(&(Reverse(b.places), &b.name)));
    let locking = places.len() as u64;
    let blocks: BTreeSet<&u64> = cells.iter().flat_map(|cell| cell.blocks).collect();
    let executed = executed.into_values();
    let mut executed: Vec<ExecutedFunction> =
        executed.map(|(name, blocks)| ExecutedFunction { name: name.to_owned(), blocks }).collect();
    // Stable: of one name the lower address comes first.
    executed.sort_by(|a, b| a.name.cmp(&b.name));
    Coverage {
        functions: functions.count() as u64,
        locking,
        blocks: blocks.len() as u64,
        cells: of_cells,
        executed,
        unreached,
    }
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::super::functions::tests::{address, functions};
    use super::*;

    const MODULE: u64 = 0xffff_ffff_c0a0_0000;

    #[test]
    fn functions_count_once_however_many_of_their_blocks_were_executed() {
        let mut functions = functions();
        let kernel = functions.count();
        functions.add_modules(vec![
            (MODULE, 0x40, "hold_all [hold]".to_owned()),
            (MODULE + 0x40, 0x40, "unused [hold]".to_owned()),
        ]);
        let blocks = |places: &[&str]| -> Vec<u64> {
            places.iter().map(|place| address(&functions, place)).collect()
        };
        let mut first = blocks(&["read+0", "read+9", "read.cold+4", "copy+8"]);
        first.extend([MODULE + 4, MODULE + 0x80]);
        let second = blocks(&["copy+0", "copy+8", "entry+0", "__schedule+4"]);
        let cell = |load, blocks| Cell { key: "wakeup", load, blocks };
        let cells = [cell("none", &first), cell("process", &second[..])];
        let locking = blocks(&[
            "read+1",
            "entry+3",
            "entry+9",
            "fault+1",
            "last+1",
            "hrtimer_wakeup+4",
            "fault+2",
        ]);
        let found = coverage(&cells, &functions, &locking);

        assert_eq!(found.functions, kernel as u64 + 2);
        // What ends at an unknown place is no function.
        // One block is of both.
        assert_eq!((found.locking, found.reached(), found.blocks), (4, 2, 9));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let of = |load: &str, blocks, functions, locking, only: &[&str]| CellCoverage {
            key: "wakeup".to_owned(),
            load: load.to_owned(),
            blocks,
            functions,
            locking,
            only: names(only),
        };
        let expected = [
            of("none", 6, 3, 1, &["hold_all [hold]", "read"]),
            of("process", 4, 3, 1, &["__schedule", "entry"]),
        ];
        assert_eq!(found.cells, expected);
        let executed: Vec<(&str, &[u64])> =
            found.executed.iter().map(|one| (one.name.as_str(), &one.blocks[..])).collect();
        let expected: [(&str, &[u64]); 5] = [
            ("__schedule", &[0, 1]),
            ("copy", &[1, 2]),
            ("entry", &[0, 1]),
            ("hold_all [hold]", &[1, 0]),
            ("read", &[2, 0]),
        ];
        assert_eq!(executed, expected);
        let unreached: Vec<(&str, u64)> =
            found.unreached.iter().map(|one| (one.name.as_str(), one.places)).collect();
        assert_eq!(unreached, [("fault", 2), ("hrtimer_wakeup", 1)]);
    }
}
