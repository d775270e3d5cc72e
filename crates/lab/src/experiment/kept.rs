//! The kept boards that the guests of an experiment go on from.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::place::Place;
use crate::console::CONSOLE;
use crate::qemu::End;
use crate::warm::{Kept, Snapshot};

/// The boards by the index of their kernel; none if guests boot.
#[derive(Default)]
pub(super) struct KeptBoards(BTreeMap<usize, Kept>);

impl KeptBoards {
    pub(super) fn add(&mut self, kernel: usize, kept: Kept) {
        self.0.insert(kernel, kept);
    }

    pub(super) fn has(&self, kernel: usize) -> bool {
        self.0.contains_key(&kernel)
    }

    /// What a guest goes on from.
    pub(super) fn snapshot(&self, place: &Place) -> Option<&Snapshot> {
        match self.0.get(&place.kernel)? {
            Kept::Snapshot(snapshot) => Some(snapshot),
            Kept::Failed(..) => None,
        }
    }

    /// Why there is nothing that it could go on from; the console of the boot that was to be
    /// kept becomes its own.
    pub(super) fn failure(&self, place: &Place, out: &Path) -> Option<End> {
        let Kept::Failed(end, console) = self.0.get(&place.kernel)? else { return None };
        let dir = out.join(&place.name);
        // What cannot be written is missing beside an experiment that has failed anyway.
        let _ = fs::create_dir(&dir).and_then(|()| fs::write(dir.join(CONSOLE), console));
        Some(end.clone())
    }
}
