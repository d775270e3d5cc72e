//! Whether a run is still being written.

use std::path::Path;

use anyhow::bail;
use punctual_core::schema::{Run, RunState};
use punctual_lab::console::CONSOLE;
use punctual_sys::written;

use super::run_json::read_with_bytes;

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
    let (run, bytes) = read_with_bytes(dir)?;
    if run.state != RunState::Running {
        return Ok((run, bytes));
    }
    check(dir)?;
    // It may have ended between the two: then only a new look tells it from a killed one.
    read_with_bytes(dir)
}

/// Refuses a run that is still being written, by whatever user and in whatever PID namespace of
/// this machine.
pub fn check_ended(dir: &Path) -> anyhow::Result<()> {
    if !written::is_written(dir) {
        return Ok(());
    }
    let of_guest = dir.join(CONSOLE).exists();
    let pid = written::writer_of(dir);
    let dir = dir.display();
    match pid {
        Some(pid) if of_guest => {
            bail!("{dir}: its guest still measures (process {pid}); wait for its end")
        }
        None if of_guest => bail!("{dir}: its guest still measures; wait for its end"),
        Some(pid) => bail!(
            "{dir}: process {pid} still measures; wait for its end, or see how it goes with \
             kill -USR1 {pid}"
        ),
        None => bail!("{dir}: another process still measures; wait for its end"),
    }
}
