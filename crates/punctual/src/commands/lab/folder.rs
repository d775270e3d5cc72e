//! Folders of experiments that have no name, and of runs that nobody keeps.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use punctual_core::layout;
use punctual_core::units::utc;

/// A folder of runs, removed at the end unless it is kept.
pub struct Folder {
    pub path: PathBuf,
    pub kept: bool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A name that no other folder has, for a command.
pub fn temporary_folder(command: &str) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = format!("punctual-{command}-{}-{}", std::process::id(), now.as_nanos());
    std::env::temp_dir().join(name)
}

/// Where an experiment goes unless a folder is named.
pub fn default_folder() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let name = format!("{}-lab", utc(now_ns));
    layout::unused(Path::new(layout::RUNS), &name, Path::exists)
}
