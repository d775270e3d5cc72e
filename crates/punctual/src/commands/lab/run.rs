//! `punctual lab run`: boots, measures, compares, reports.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::ArgMatches;
use punctual_core::compare::compare;
use punctual_core::layout;
use punctual_core::run::LoadedRun;
use punctual_core::schema::Outcome;
use punctual_lab::experiment::{Boots, Done, Experiment, Ready, make_folder, warning};
use punctual_report::text;
use punctual_sys::signal::Signals;
use serde_json::{Value, json};

use super::folder::{default_folder, working};
use super::legs::Repeats;
use super::progress::{GuestsFollower, interrupted};
use super::sections::Watching;
use super::{aim, asked};
use crate::commands::address::address;
use crate::commands::draw::{REPORT, write_report};
use crate::ending::Ending;
use crate::{output, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    if let Some(count) = aim::asked(matches) {
        return aimed(matches, count);
    }
    let experiment = asked::experiment(matches)?;
    let legs = matches.get_flag("legs").then(|| Repeats::of(&experiment)).transpose()?;
    let out = matches.get_one("out").cloned().unwrap_or_else(default_folder);
    let ready = experiment.prepare()?;
    let folder = make_folder(&out)?;
    if let Some(text) = warning(&out) {
        output::complain(&text);
    }
    let quiet = matches.get_flag("quiet") || matches.get_flag("json");
    let mut boots = boot(&experiment, &ready, &folder, quiet)?;
    let legless = match legs.filter(|_| !boots.interrupted) {
        Some(legs) => legs.find(&experiment, &ready, &boots.done, &folder, quiet)?,
        None => Some(Vec::new()),
    };
    boots.interrupted |= legless.is_none();
    let legless = legless.unwrap_or_default();
    let runs = load(&boots.done, &folder);
    if matches.get_flag("json") {
        output::print_json(&summary(&boots, &runs, &legless, &out))?;
    } else {
        print(&runs)?;
    }
    if !matches.get_flag("no-report") && !runs.is_empty() {
        report(&folder, &out, matches)?;
    } else if !matches.get_flag("json") {
        output::print(&format!("      {}\n", out.display()))?;
    }
    Ok(match ending(&boots, &runs) {
        Ending::Judged(_) if !legless.is_empty() => Ending::GuestFailed,
        ending => ending,
    })
}

/// Watches the guests while they measure, and aims so many releases of each cell.
fn aimed(matches: &ArgMatches, count: usize) -> anyhow::Result<Ending> {
    let watching = Watching::of(matches, aim::LONGEST)?;
    let Some(aimed) = aim::shoot(&watching, aim::Wish { count, alone: false })? else {
        return Ok(Ending::Interrupted);
    };
    let (boots, runs, out) = (&aimed.boots, &aimed.sampled, &watching.out);
    let page = aimed.keep(out)?;
    if matches.get_flag("json") {
        let mut summary = summary(boots, runs, &[], out);
        summary["aimed"] = serde_json::to_value(&aimed.runs)?;
        output::print_json(&summary)?;
    } else {
        print(runs)?;
        aimed.print(&page)?;
    }
    if !matches.get_flag("no-report") {
        report(&watching.folder, out, matches)?;
    }
    if aimed.failed {
        return Ok(Ending::GuestFailed);
    }
    let plan = &watching.experiment.plan;
    // Misses that are tolerated are a share of releases that nobody chose.
    let limit = plan.deadline_ns.filter(|_| plan.is_hard());
    let is_missed = limit.is_some_and(|limit| aimed.max_ns().is_some_and(|max| max > limit));
    Ok(if is_missed { Ending::Judged(Outcome::Fail) } else { ending(boots, runs) })
}

/// Writes the report of all guests into the folder of the experiment, and says where it is.
fn report(folder: &Path, out: &Path, matches: &ArgMatches) -> anyhow::Result<()> {
    let path = out.join(REPORT);
    match write_report(folder, &path) {
        Ok(()) if matches.get_flag("json") => {}
        Ok(()) => output::print(&format!("      {}\n", address(&path)))?,
        Err(error) => output::complain(&format!("no report: {error:#}")),
    }
    Ok(())
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
    let working = working(ready, folder)?;
    let boots = experiment.run(ready, folder, &mut follower);
    drop(working);
    let boots = boots.inspect_err(|_| {
        // Nothing was booted, so let the same command be repeated. Fails if the folder is not
        // empty.
        let _ = fs::remove_dir(folder);
    })?;
    interrupted(&boots, experiment.places().len());
    Ok(boots)
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
        runs => {
            output::print(&text::comparison(&compare(runs), width, colour))?;
            output::print(&text::legs(runs, width, colour))
        }
    }
}

/// `legless` are the guests without legs, and why.
fn summary(boots: &Boots, runs: &[LoadedRun], legless: &[(String, String)], out: &Path) -> Value {
    let guests = boots.done.iter().map(|done| {
        let name = &done.place.name;
        let mut guest = json!({
            "run": out.join(name),
            "replicate": done.place.replicate,
            "troubles": done.end.troubles,
            "console": done.end.last_lines,
        });
        let run = store::read_run(&out.join(name));
        if let Some(lab) = run.ok().and_then(|run| run.board.lab) {
            guest["board_program_sha256"] = json!(lab.punctual_sha256);
            guest["qemu"] = json!(lab.qemu);
            guest["qemu_sha256"] = json!(lab.qemu_sha256);
            guest["firmware_sha256"] = json!(lab.firmware_sha256);
            guest["kernel_sha256"] = json!(lab.kernel_sha256);
        }
        if let Some((_, why)) = legless.iter().find(|(without, _)| without == name) {
            guest["no_legs"] = json!(why);
        }
        guest
    });
    let plumbing = runs.iter().any(|loaded| loaded.run.board.is_plumbing());
    json!({
        "out": out,
        "interrupted": boots.interrupted,
        "guests": guests.collect::<Vec<_>>(),
        "legs": runs.iter().filter_map(|loaded| loaded.legs.as_ref()).collect::<Vec<_>>(),
        "comparison": (!plumbing && runs.len() > 1).then(|| compare(runs)),
    })
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
