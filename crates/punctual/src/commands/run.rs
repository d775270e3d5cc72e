//! `punctual run`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use clap::ArgMatches;
use punctual_core::run::LoadedRun;
use punctual_report::text;
use punctual_suite::engine::{self, Finished};

use super::progress::Follower;
use crate::ending::Ending;
use crate::{output, request};

/// Name of the report in the run directory.
pub const REPORT: &str = "report.html";

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let plan = request::plan(matches, &request::HERE)?;
    let options = request::options(matches);
    let mut follower = Follower::new(&plan, matches.get_flag("quiet"));
    let finished = engine::run(&plan, &options, &mut follower)?;
    follower.end();
    let Finished { run, dir, ended_by, not_written } = finished;
    let ending = Ending::of(&run, ended_by.is_some(), not_written.is_none());
    if let Some(reason) = &not_written {
        output::complain(&format!(
            "run.json could not be written: {reason}; the result is below only"
        ));
    }
    if matches.get_flag("json") {
        output::print_json(&run)?;
    } else {
        let measured = LoadedRun { run, cells: Vec::new(), damage: Vec::new() };
        output::print(&text::summary(&measured, output::width(), output::colour()))?;
    }
    if !matches.get_flag("no-report") && not_written.is_none() {
        let path = dir.join(REPORT);
        match write_report(&dir, &path) {
            Ok(()) if matches.get_flag("json") => {}
            Ok(()) => output::print(&format!("      {}\n", path.display()))?,
            // The measurement is valid without its report.
            Err(error) => output::complain(&format!("no report: {error:#}")),
        }
    }
    Ok(ending)
}

/// Runs in a separate process: drawing takes memory and time that grow with the length of the
/// run, and must not count as the measurement's.
pub fn write_report(dir: &Path, path: &Path) -> anyhow::Result<()> {
    let here = std::env::current_exe().ok().filter(|path| path.exists());
    let dir = dir.canonicalize().context("the run directory")?;
    let drawn = Command::new(here.unwrap_or_else(|| "/proc/self/exe".into()))
        .arg("report")
        .arg(&dir)
        .arg("--output")
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .context("cannot start the process that draws it")?;
    ensure!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr).trim());
    Ok(())
}
