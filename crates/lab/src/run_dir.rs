//! The run directory of a guest, written on the host while the guest runs.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use punctual_core::layout::RUN_JSON;
use punctual_core::run::limits::{MAX_RUN_JSON, exceeded, has_too_many_values};
use punctual_core::schema::{Condition, Run, RunState};

use crate::files;

/// Completes `run.json` with what only the host knows. An error ends the guest.
pub type Complete = Box<dyn Fn(&mut Run) -> Result<()>>;

/// The run directory of one guest.
pub(crate) struct RunDir {
    pub(crate) path: PathBuf,
    complete: Complete,
    /// State of the run in the last `run.json`.
    state: Option<RunState>,
}

impl RunDir {
    /// Creates the directory, which must not exist yet.
    pub(crate) fn create(path: &Path, complete: Complete) -> Result<Self> {
        fs::create_dir(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path: path.to_owned(), complete, state: None })
    }

    /// Appends to a file; creates it and its parent folders if necessary.
    pub(crate) fn append(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let write = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            OpenOptions::new().append(true).create(true).open(&path)?.write_all(bytes)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Completes a `run.json` and replaces the one before it.
    pub(crate) fn replace_run(&mut self, bytes: &[u8]) -> Result<()> {
        let of_guest = || format!("{RUN_JSON} of the guest");
        let is_larger = bytes.len() as u64 > MAX_RUN_JSON || has_too_many_values(bytes);
        ensure!(!is_larger, "{}: it is larger than that of any run", of_guest());
        let mut run: Run = serde_json::from_slice(bytes).with_context(of_guest)?;
        if let Some(what) = exceeded(&run) {
            bail!("{}: {what}", of_guest());
        }
        (self.complete)(&mut run)?;
        self.write_run(&run)?;
        self.state = Some(run.state);
        Ok(())
    }

    /// Why this is not the directory of a complete run; `None` if it is.
    pub(crate) fn why_incomplete(&self) -> Option<String> {
        let of = |what: &str| {
            format!("the guest said that its run is complete, but its {RUN_JSON} is {what}")
        };
        match self.state {
            Some(RunState::Complete) => None,
            None => Some(of("missing")),
            Some(RunState::Running) => Some(of("of a run that goes on")),
            Some(RunState::Interrupted) => Some(of("of a run that was interrupted")),
            Some(RunState::Failed) => Some(of("of a run that failed")),
        }
    }

    /// Notes in `run.json`, if that has arrived, why the run is incomplete: a later report has
    /// no other source.
    pub(crate) fn note_failure(&self, reason: &str) -> Result<()> {
        let mut run: Run = serde_json::from_slice(&fs::read(self.path.join(RUN_JSON))?)?;
        let text = format!("the guest failed: {reason}");
        run.conditions.insert(0, Condition { id: "guest-failed".to_owned(), text });
        self.write_run(&run)
    }

    fn write_run(&self, run: &Run) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(run)?;
        text.push(b'\n');
        self.write(RUN_JSON, &text)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        files::replace(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::Folder;

    /// A run in this state.
    pub(crate) fn run(state: RunState) -> Run {
        let simulated = include_bytes!("../../../fuzz/seeds/run_json/simulated");
        Run { state, ..serde_json::from_slice(simulated).unwrap() }
    }

    #[test]
    fn files_grow_are_replaced_and_stay_in_the_directory() {
        let folder = Folder::new();
        let path = folder.0.join("debian-rt-0");
        let mut dir = RunDir::create(&path, Box::new(|_| Ok(()))).unwrap();
        dir.append("cells/00-x/blocks", b"one").unwrap();
        dir.append("cells/00-x/blocks", b" two").unwrap();
        assert_eq!(fs::read(path.join("cells/00-x/blocks")).unwrap(), b"one two");
        let error = dir.replace_run(b"{").unwrap_err();
        assert!(format!("{error:#}").starts_with("run.json of the guest: EOF"), "{error:#}");
        let error = dir.replace_run(",".repeat(5_000_000).as_bytes()).unwrap_err().to_string();
        assert!(error.contains("larger than that of any run"), "{error}");
        assert!(dir.note_failure("a panic").is_err(), "there is no run.json yet");
        let mut crowded = run(RunState::Running);
        crowded.cells = vec![crowded.cells[0].clone(); 1_001];
        let error = dir.replace_run(&serde_json::to_vec(&crowded).unwrap()).unwrap_err();
        assert!(error.to_string().contains("1,001 cells; at most 1,000"), "{error}");
        for state in [RunState::Running, RunState::Complete] {
            dir.replace_run(&serde_json::to_vec(&run(state)).unwrap()).unwrap();
        }
        assert_eq!(dir.why_incomplete(), None);
        dir.note_failure("a panic").unwrap();
        let kept: Run = serde_json::from_slice(&fs::read(path.join(RUN_JSON)).unwrap()).unwrap();
        assert_eq!(kept.conditions[0].text, "the guest failed: a panic");
        assert!(RunDir::create(&path, Box::new(|_| Ok(()))).is_err());
    }
}
