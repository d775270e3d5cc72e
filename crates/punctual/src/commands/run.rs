//! `punctual run`.

use std::path::Path;

use anyhow::Context;
use clap::ArgMatches;
use punctual_core::run::LoadedRun;
use punctual_report::text;
use punctual_suite::engine::{self, Finished};

use super::progress::Follower;
use super::report;
use crate::ending::Ending;
use crate::{output, request, store};

/// Name of the report within the run directory.
const REPORT: &str = "report.html";

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let plan = request::plan(matches)?;
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
            // The measurement stands without its report.
            Err(error) => output::complain(&format!("no report: {error:#}")),
        }
    }
    Ok(ending)
}

fn write_report(dir: &Path, path: &Path) -> anyhow::Result<()> {
    let run = store::load(dir).context("the run cannot be read back")?;
    report::write(&[run], path, None)
}
