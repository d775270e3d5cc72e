//! Folders of experiments that have no name, and of what guests need only while they run.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use punctual_core::layout;
use punctual_core::units::utc;
use punctual_lab::experiment::Ready;

use crate::temporary::Temporary;

/// Has the guests that are booted from now on keep what they need only while they run in a folder
/// that goes with the result. It is beside their runs, which may be large, unless that folder cannot
/// have one: a file system without owners.
///
/// # Errors
/// There is no place for it.
pub fn working(ready: &Ready, runs: &Path) -> anyhow::Result<Temporary> {
    let working = Temporary::make_in(runs).or_else(|_| Temporary::make())?;
    ready.work_in(working.path());
    Ok(working)
}

/// Where an experiment goes unless a folder is named.
pub fn default_folder() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let name = format!("{}-lab", utc(now_ns));
    layout::unused(Path::new(layout::RUNS), &name, Path::exists)
}
