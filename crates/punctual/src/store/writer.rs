//! Whether a run is still being written.

use std::fs;
use std::path::Path;

use anyhow::bail;
use punctual_core::layout::{CELLS, RUN_JSON};
use punctual_core::schema::{Run, RunState};
use punctual_lab::qemu::CHANNEL;

use super::run_json::{bytes_of, parse};

/// Reads `run.json` of a run that is not being written: parsed, and its bytes. If it says that
/// the run goes on, the run was killed.
///
/// # Errors
/// Those of [`super::read_run()`]; or the run is still being written.
pub fn read_ended(dir: &Path) -> anyhow::Result<(Run, Vec<u8>)> {
    read_after(dir, check_ended)
}

/// Reads a run after `check`, if it is said to go on.
pub(super) fn read_after(
    dir: &Path,
    check: impl FnOnce(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<(Run, Vec<u8>)> {
    let read = || -> anyhow::Result<_> {
        let bytes = bytes_of(dir)?;
        Ok((parse(&dir.join(RUN_JSON), &bytes)?, bytes))
    };
    let (run, bytes) = read()?;
    if run.state != RunState::Running {
        return Ok((run, bytes));
    }
    check(dir)?;
    // It may have ended between the two: then only a new look tells it from a killed one.
    read()
}

/// Refuses a run that is still being written.
pub fn check_ended(dir: &Path) -> anyhow::Result<()> {
    let Some(pid) = writer_of(dir) else {
        return Ok(());
    };
    if dir.join(CHANNEL).exists() {
        bail!("{}: its guest still measures (process {pid}); wait for its end", dir.display());
    }
    bail!(
        "{}: process {pid} still measures; wait for its end, or see how it goes with kill -USR1 \
         {pid}",
        dir.display()
    )
}

/// The process that still has a file of the run's cells or the guest's channel open, if there
/// is one and this user may inspect it.
fn writer_of(dir: &Path) -> Option<u32> {
    let dir = fs::canonicalize(dir).ok()?;
    let (cells, channel) = (dir.join(CELLS), dir.join(CHANNEL));
    let holds = |process: &Path| {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten();
        files
            .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
            .any(|target| target.starts_with(&cells) || target == channel)
    };
    fs::read_dir("/proc").into_iter().flatten().find_map(|entry| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        holds(&entry.path()).then_some(pid)
    })
}
