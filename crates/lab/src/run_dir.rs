//! The run directory of a guest, written on the host while the guest runs.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use punctual_core::layout::RUN_JSON;
use punctual_core::schema::{Condition, Run};

use crate::files;

/// Completes `run.json` with what only the host knows. An error ends the guest.
pub type Complete = Box<dyn Fn(&mut Run) -> Result<()>>;

/// The run directory of one guest.
pub(crate) struct RunDir {
    pub(crate) path: PathBuf,
    complete: Complete,
}

impl RunDir {
    /// Creates the directory, which must not exist yet.
    pub(crate) fn create(path: &Path, complete: Complete) -> Result<Self> {
        fs::create_dir(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path: path.to_owned(), complete })
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

    /// Replaces a file; `run.json` is completed first.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        if name != RUN_JSON {
            return self.write(name, bytes);
        }
        let mut run: Run = serde_json::from_slice(bytes).context("run.json of the guest")?;
        (self.complete)(&mut run)?;
        self.write_run(&run)
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
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn files_grow_are_replaced_and_stay_in_the_directory() {
        let folder = Folder::new();
        let path = folder.0.join("debian-rt-0");
        let dir = RunDir::create(&path, Box::new(|_| Ok(()))).unwrap();
        dir.append("cells/00-x/blocks", b"one").unwrap();
        dir.append("cells/00-x/blocks", b" two").unwrap();
        assert_eq!(fs::read(path.join("cells/00-x/blocks")).unwrap(), b"one two");
        dir.replace("notes", b"old").unwrap();
        dir.replace("notes", b"new").unwrap();
        assert_eq!(fs::read(path.join("notes")).unwrap(), b"new");
        let error = dir.replace(RUN_JSON, b"{").unwrap_err();
        assert!(format!("{error:#}").starts_with("run.json of the guest: EOF"), "{error:#}");
        assert!(dir.note_failure("a panic").is_err(), "there is no run.json yet");
        assert!(RunDir::create(&path, Box::new(|_| Ok(()))).is_err());
    }
}
