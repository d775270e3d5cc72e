//! `punctual run`.

use anyhow::Context;
use clap::ArgMatches;
use punctual_core::judge::ByPlan;
use punctual_core::plan::Plan;
use punctual_core::run::LoadedRun;
use punctual_core::schema::Run;
use punctual_report::text;
use punctual_suite::engine::{self, Finished, Options, RunDir};
use punctual_sys::signal::Signals;

use super::address::{address, open};
use super::draw::{Drawn, REPORT, draw};
use super::live::Live;
use super::progress::Follower;
use super::signalled::came;
use super::{resume, series};
use crate::ending::Ending;
use crate::{output, request};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let (plan, options) = match matches.get_one::<String>("continue") {
        Some(name) => resume::request(name)?,
        None => (request::plan(matches, &request::HERE)?, request::options(matches)),
    };
    match matches.get_one::<u32>("replicates") {
        Some(count) => series::execute(matches, &plan, options, *count),
        None => measure(matches, &plan, &options, Live::of(matches), Told::Summary),
    }
}

/// What is told of the result besides JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The summary.
    Summary,
    /// That, and how each cost was timed.
    WithTimings,
}

/// Runs a plan on this machine and tells the result.
///
/// # Errors
/// What is wrong with the request, or why nothing could be measured.
pub fn measure(
    matches: &ArgMatches,
    plan: &Plan,
    options: &Options,
    live: Live,
    told: Told,
) -> anyhow::Result<Ending> {
    let mut follower = Follower::new(plan, matches.get_flag("quiet"), live);
    let finished = engine::run(plan, options, &ByPlan, &mut follower)?;
    follower.end();
    let Finished { run, dir, signals, ended_by, not_written } = finished;
    if let Some(reason) = &not_written {
        output::complain(&format!(
            "run.json could not be written: {reason}; the result is below only"
        ));
    }
    let json = matches.get_flag("json");
    // The result is on disk: that it cannot be told does not cost the report.
    let mut told = tell(&run, json, told);
    // A signal since the end of the measurement ends nothing that is not over.
    let mut interrupted = ended_by.is_some() || came(&signals);
    if !matches.get_flag("no-report") && not_written.is_none() {
        match write_report(&dir, &signals) {
            Ok(Drawn { complete: false, .. }) => {
                interrupted = true;
                output::complain(&format!(
                    "no report: interrupted; make it with: punctual report {0} -o {0}/{REPORT}",
                    dir.path().display()
                ));
            }
            Ok(drawn) => {
                interrupted |= drawn.interrupted;
                let path = dir.path().join(REPORT);
                if !json {
                    told = told.and(output::print(&format!("      {}\n", address(&path))));
                }
                if matches.get_flag("open") && !interrupted {
                    open(&path);
                }
            }
            // The measurement is valid without its report.
            Err(error) => output::complain(&format!("no report: {error:#}")),
        }
    }
    interrupted |= came(&signals);
    let ending = Ending::of(&run, interrupted, not_written.is_none() && told.is_ok());
    if let Err(error) = told {
        output::complain(&format!(
            "{error:#}; the run is kept: punctual show {}",
            dir.path().display()
        ));
    }
    // A late signal must not replace the exit status: the mask stays until the process ends.
    std::mem::forget(signals);
    Ok(ending)
}

fn tell(run: &Run, json: bool, told: Told) -> anyhow::Result<()> {
    if json {
        return output::print_json(run);
    }
    let measured = LoadedRun {
        run: run.clone(),
        cells: Vec::new(),
        legs: None,
        damage: Vec::new(),
        label: None,
        side: None,
    };
    let (width, colour) = (output::width(), output::colour());
    let timings = match told {
        Told::Summary => String::new(),
        Told::WithTimings => text::timings(run, width, colour) + "\n",
    };
    output::print(&(timings + &text::summary(&measured, width, colour)))
}

fn write_report(dir: &RunDir, signals: &Signals) -> anyhow::Result<Drawn> {
    let report = dir.draft(REPORT)?;
    let drawn = draw(dir.path(), report.file(), signals)?;
    if drawn.complete {
        report.keep().context("the report is drawn")?;
    }
    Ok(drawn)
}
