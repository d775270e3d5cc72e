//! The run directory of a guest, written on the host while the guest runs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use punctual_core::layout::RUN_JSON;
use punctual_core::run::limits::{MAX_RUN_JSON, exceeded, has_too_many_values};
use punctual_core::schema::{Condition, Run, RunState};
use punctual_sys::file::read_open;
use punctual_sys::folder::{Folder, Locked};
use punctual_sys::written;

/// Completes `run.json` with what only the host knows. An error ends the guest.
pub type Complete = Box<dyn Fn(&mut Run) -> Result<()>>;

/// The run directory of one guest. It is held open: what the guest sends goes to it and nowhere
/// else, whatever is put where it was.
pub(crate) struct RunDir {
    pub(crate) path: PathBuf,
    folder: Folder,
    complete: Complete,
    /// State of the run in the last `run.json`.
    state: Option<RunState>,
    /// Held as long as this process writes.
    #[allow(dead_code, reason = "held, not used")]
    lock: Locked,
}

impl RunDir {
    /// Creates the directory, which must not exist yet, in a folder that does.
    pub(crate) fn create(path: &Path, complete: Complete) -> Result<Self> {
        let make = || {
            let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            let parent = Folder::open(path.parent().unwrap_or(Path::new("/")))?;
            let folder = parent.make_folder(name)?;
            Ok((written::lock(&folder)?, folder))
        };
        let made: io::Result<_> = make();
        let (lock, folder) = made.with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path: path.to_owned(), folder, complete, state: None, lock })
    }

    /// The directory itself.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Appends to a file; creates it and its parent folders if necessary.
    pub(crate) fn append(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let write = || {
            let (above, file) = name.rsplit_once('/').unwrap_or(("", name));
            let mut folder = None;
            for part in above.split('/').filter(|part| !part.is_empty()) {
                folder = Some(folder.as_ref().unwrap_or(&self.folder).folder_or_new(part)?);
            }
            folder.as_ref().unwrap_or(&self.folder).append(file)?.write_all(bytes)
        };
        write().with_context(|| format!("cannot write {}", self.path.join(name).display()))
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
        let written = read_open(&self.folder.file(RUN_JSON)?, MAX_RUN_JSON)?;
        let mut run: Run = serde_json::from_slice(&written)?;
        let text = format!("the guest failed: {reason}");
        run.conditions.insert(0, Condition { id: "guest-failed".to_owned(), text });
        self.write_run(&run)
    }

    fn write_run(&self, run: &Run) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(run)?;
        text.push(b'\n');
        let path = self.path.join(RUN_JSON);
        self.folder
            .replace(RUN_JSON, &text)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    /// A run in this state.
    pub(crate) fn run(state: RunState) -> Run {
        let simulated = include_bytes!("../../../fuzz/seeds/run_json/simulated");
        Run { state, ..serde_json::from_slice(simulated).unwrap() }
    }

    #[test]
    fn files_grow_are_replaced_and_stay_in_the_directory() {
        let folder = testing::Folder::new();
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
        assert!(written::is_written(&path), "as long as the guest runs");
        // Another user swaps it for a folder with links.
        let victim = folder.0.join("victim");
        folder.write("victim", b"kept");
        fs::rename(&path, folder.0.join("stolen")).unwrap();
        fs::create_dir_all(path.join("cells/00-x")).unwrap();
        for name in ["cells/00-x/blocks", ".run.json.new", RUN_JSON] {
            std::os::unix::fs::symlink(&victim, path.join(name)).unwrap();
        }
        dir.append("cells/00-x/blocks", b" three").unwrap();
        dir.replace_run(&serde_json::to_vec(&run(RunState::Running)).unwrap()).unwrap();
        dir.note_failure("a panic").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"kept");
        let blocks = folder.0.join("stolen/cells/00-x/blocks");
        assert_eq!(fs::read(blocks).unwrap(), b"one two three");
        drop(dir);
        assert!(!written::is_written(&folder.0.join("stolen")));
    }
}
