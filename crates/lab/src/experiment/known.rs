//! Runs of guests that are there already: which they are, and what is still missing.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, Result};
use punctual_core::layout;
use punctual_core::run::limits::MAX_RUN_JSON;
use punctual_core::schema::{Run, RunState};
use punctual_sys::file;

use super::{Boots, Done, Experiment, Follow, Place, Ready, Sorted};
use crate::qemu::End;

impl Experiment {
    /// Sorts the guests: those whose run is in the folder already, measured on the same kernel,
    /// board and QEMU by the same order, down to the last byte of what their guest started
    /// with, and all others.
    ///
    /// # Errors
    /// A guest's start cannot be put together.
    pub fn sorted(&self, host: &Ready, out: &Path) -> Result<Sorted> {
        let mut sorted = Sorted { kept: Vec::new(), missing: Vec::new() };
        for place in self.places() {
            let done = self.is_done(&place, host, out)?;
            if done { &mut sorted.kept } else { &mut sorted.missing }.push(place);
        }
        Ok(sorted)
    }

    /// [`Experiment::run`] with only those guests whose run is missing. Other runs of their
    /// names are removed; what is kept counts as done.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn run_missing(
        &self,
        sorted: Sorted,
        host: &Ready,
        out: &Path,
        follow: &mut dyn Follow,
    ) -> Result<Boots> {
        self.list(out)?;
        for place in &sorted.missing {
            let dir = out.join(&place.name);
            match fs::remove_dir_all(&dir) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", dir.display()));
                }
                _ => {}
            }
        }
        let mut boots = self.boot_all(sorted.missing, host, out, follow)?;
        let whole = || End { troubles: Vec::new(), last_lines: Vec::new() };
        boots.done.extend(sorted.kept.into_iter().map(|place| Done { place, end: whole() }));
        boots.done.sort_by_key(|done| (done.place.kernel, done.place.replicate));
        Ok(boots)
    }

    /// Whether a folder has the run of a guest that would start alike.
    fn is_done(&self, place: &Place, host: &Ready, out: &Path) -> Result<bool> {
        let path = out.join(&place.name).join(layout::RUN_JSON);
        let text = file::read(&path, MAX_RUN_JSON).unwrap_or_default();
        let Ok(run) = serde_json::from_slice::<Run>(&text) else { return Ok(false) };
        if run.state != RunState::Complete {
            return Ok(false);
        }
        Ok(self.differs(place, host, &run)?.is_empty())
    }

    /// What of a guest would not be as in this run of it, in the words of the record.
    ///
    /// # Errors
    /// The guest's start cannot be put together.
    pub fn differs(&self, place: &Place, host: &Ready, run: &Run) -> Result<Vec<String>> {
        let (_, initramfs) = self.start(place, host)?;
        let here = serde_json::to_value(self.lab(place, host, &initramfs))?;
        let there = serde_json::to_value(&run.board.lab)?;
        let keys = here.as_object().into_iter().flat_map(|lab| lab.keys());
        let differing = keys.filter(|key| here.get(key) != there.get(key)).cloned();
        let parameters = self.board.parameters(&self.parameters_of(place));
        let same_line = run.kernel.command_line.trim() == parameters;
        let others = [("command_line", same_line), ("aim", run.aim == place.aim)];
        let others = others.into_iter().filter(|(_, same)| !same);
        Ok(differing.chain(others.map(|(what, _)| what.to_owned())).collect())
    }
}
