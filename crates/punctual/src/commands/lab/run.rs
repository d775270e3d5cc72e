//! `punctual lab run`: boots, measures, compares, reports.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::ArgMatches;
use punctual_core::compare::compare;
use punctual_core::layout;
use punctual_core::run::LoadedRun;
use punctual_core::schema::Outcome;
use punctual_core::units::utc;
use punctual_lab::experiment::{Boots, Done, Experiment, Ready, make_folder, warning};
use punctual_report::text;
use punctual_sys::signal::Signals;
use serde_json::json;

use super::asked;
use super::progress::GuestsFollower;
use crate::commands::address::address;
use crate::commands::draw::{REPORT, write_report};
use crate::ending::Ending;
use crate::{output, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let experiment = asked::experiment(matches)?;
    let out = matches.get_one("out").cloned().unwrap_or_else(default_folder);
    let ready = experiment.prepare()?;
    let folder = make_folder(&out)?;
    if let Some(text) = warning(&out) {
        output::complain(&text);
    }
    let quiet = matches.get_flag("quiet") || matches.get_flag("json");
    let boots = boot(&experiment, &ready, &folder, quiet)?;
    let runs = load(&boots.done, &folder);
    if matches.get_flag("json") {
        print_json(&boots, &runs, &out)?;
    } else {
        print(&runs)?;
    }
    let with_report = !matches.get_flag("no-report") && !runs.is_empty();
    if with_report {
        let path = out.join(REPORT);
        match write_report(&folder, &path) {
            Ok(()) if matches.get_flag("json") => {}
            Ok(()) => output::print(&format!("      {}\n", address(&path)))?,
            Err(error) => output::complain(&format!("no report: {error:#}")),
        }
    } else if !matches.get_flag("json") {
        output::print(&format!("      {}\n", out.display()))?;
    }
    Ok(ending(&boots, &runs))
}

/// Boots all guests and follows them to their end.
pub fn boot(
    experiment: &Experiment,
    ready: &Ready,
    folder: &Path,
    quiet: bool,
) -> anyhow::Result<Boots> {
    let signals = Signals::block().context("signals")?;
    let mut follower = GuestsFollower::new(&signals, experiment.places().len(), quiet);
    let boots = experiment.run(ready, folder, &mut follower).inspect_err(|_| {
        // Nothing was booted, so let the same command be repeated. Fails if the folder is not
        // empty.
        let _ = fs::remove_dir(folder);
    })?;
    interrupted(&boots, experiment.places().len());
    Ok(boots)
}

/// Says that not all of the guests have finished, if so.
pub fn interrupted(boots: &Boots, all: usize) {
    if boots.interrupted {
        output::complain(&format!(
            "interrupted: {} of {all} guests had finished; the others were terminated",
            boots.done.len()
        ));
    }
}

/// Loads those runs of which anything has arrived.
pub fn load(done: &[Done], folder: &Path) -> Vec<LoadedRun> {
    let mut runs = Vec::new();
    for done in done {
        let dir = folder.join(&done.place.name);
        if !dir.join(layout::RUN_JSON).exists() {
            continue;
        }
        match store::load(&dir) {
            Ok(run) => runs.push(run),
            Err(error) => output::complain(&format!("{error:#}")),
        }
    }
    runs
}

fn print(runs: &[LoadedRun]) -> anyhow::Result<()> {
    let (width, colour) = (output::width(), output::colour());
    match runs {
        [] => Ok(()),
        [run] => output::print(&text::summary(run, width, colour)),
        runs if runs.iter().any(|loaded| loaded.run.board.is_plumbing()) => {
            for run in runs {
                output::print(&text::summary(run, width, colour))?;
            }
            Ok(())
        }
        runs => output::print(&text::comparison(&compare(runs), width, colour)),
    }
}

fn print_json(boots: &Boots, runs: &[LoadedRun], out: &Path) -> anyhow::Result<()> {
    let guests = boots.done.iter().map(|done| {
        json!({
            "run": out.join(&done.place.name),
            "replicate": done.place.replicate,
            "troubles": done.end.troubles,
            "console": done.end.last_lines,
        })
    });
    let plumbing = runs.iter().any(|loaded| loaded.run.board.is_plumbing());
    output::print_json(&json!({
        "out": out,
        "interrupted": boots.interrupted,
        "guests": guests.collect::<Vec<_>>(),
        "comparison": (!plumbing && runs.len() > 1).then(|| compare(runs)),
    }))
}

/// The worst ending of all: a signal, then a failed guest, then the verdicts.
fn ending(boots: &Boots, runs: &[LoadedRun]) -> Ending {
    if boots.interrupted {
        return Ending::Interrupted;
    }
    let failed = boots.done.iter().any(|done| !done.end.troubles.is_empty());
    if failed || runs.len() < boots.done.len() {
        return Ending::GuestFailed;
    }
    let worst = runs.iter().map(|loaded| loaded.run.verdict.outcome).max();
    Ending::Judged(worst.unwrap_or(Outcome::None))
}

fn default_folder() -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let name = format!("{}-lab", utc(now_ns));
    layout::unused(Path::new(layout::RUNS), &name, Path::exists)
}
