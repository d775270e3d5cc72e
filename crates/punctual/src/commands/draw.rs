//! The report of a run, drawn in a separate process: drawing takes memory and time that grow
//! with the length of the run, and must not count as the measurement's.

use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, ensure};
use punctual_sys::process::bind_to_this;
use punctual_sys::signal::Signals;

/// Name of the report in the run directory.
pub const REPORT: &str = "report.html";

/// How often the process is asked whether it has ended, ns.
const PAUSE_NS: u64 = 10_000_000;

/// The command that writes a report on `dir` to `output`.
fn report(dir: &Path, output: &Path) -> anyhow::Result<Command> {
    let here = std::env::current_exe().ok().filter(|path| path.exists());
    let dir = dir.canonicalize().context("the run directory")?;
    let mut command = Command::new(here.unwrap_or_else(|| "/proc/self/exe".into()));
    command.arg("report").arg(dir).arg("--output").arg(output).stdin(Stdio::null());
    Ok(command)
}

/// What became of starting a process. std panics if it cannot read whether the program was
/// executed; a run that was measured does not end because of that.
fn started<T>(start: impl FnOnce() -> io::Result<T>) -> anyhow::Result<T> {
    let unread = |_| Err(io::Error::other("it is not known whether it runs"));
    catch_unwind(AssertUnwindSafe(start))
        .unwrap_or_else(unread)
        .context("cannot start the process that draws it")
}

/// How the drawing of a report ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drawn {
    /// Whether the report is complete.
    pub complete: bool,
    /// Whether a signal that ends a run came meanwhile.
    pub interrupted: bool,
}

/// Draws the report on `dir` to a file. The process does not get the terminal's signals: a
/// hang-up lets it finish, and one that asks for an end ends it.
///
/// # Errors
/// Why there is none.
pub fn draw(dir: &Path, to: &File, signals: &Signals) -> anyhow::Result<Drawn> {
    let mut command = report(dir, Path::new("/proc/self/fd/1"))?;
    bind_to_this(&mut command);
    command.stdout(to.try_clone()?).stderr(Stdio::piped());
    let mut child = started(|| command.spawn())?;
    let complaints = child.stderr.take();
    let listener = thread::Builder::new().spawn(move || {
        let mut said = Vec::new();
        // What was read before an error is all there is to tell.
        let _ = complaints.map(|mut stderr| stderr.read_to_end(&mut said));
        said
    });
    let listener = match listener {
        Ok(listener) => listener,
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error).context("cannot start the thread that listens to it");
        }
    };
    let mut interrupted = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let Some(signal) = signals.wait(PAUSE_NS) else { continue };
        interrupted |= signal.ends();
        if signal.ends_at_once(true) {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(Drawn { complete: false, interrupted });
        }
    };
    let said = listener.join().unwrap_or_default();
    ensure!(status.success(), "{}", String::from_utf8_lossy(&said).trim());
    Ok(Drawn { complete: true, interrupted })
}

/// Draws the report on the runs in `dir` to `path`.
///
/// # Errors
/// Why there is none.
pub fn write_report(dir: &Path, path: &Path) -> anyhow::Result<()> {
    let mut command = report(dir, path)?;
    let drawn = started(|| command.output())?;
    ensure!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr).trim());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_panics_is_an_error() {
        assert_eq!(started(|| Ok(7)).unwrap(), 7);
        let panics = || -> io::Result<()> { panic!("the CLOEXEC pipe failed") };
        let error = format!("{:#}", started(panics).unwrap_err());
        assert!(error.starts_with("cannot start the process that draws it: "), "{error}");
    }
}
