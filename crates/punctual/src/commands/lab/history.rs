//! `punctual lab history`: kernels of many releases, measured once each and kept.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::ArgMatches;
use punctual_core::history::History;
use punctual_lab::experiment::{Boots, EXPERIMENT, Experiment, Ready, make_folder, warning};
use punctual_report::history;
use punctual_sys::signal::Signals;

use super::asked;
use super::folder::working;
use super::progress::{GuestsFollower, interrupted};
use super::run::load;
use crate::commands::address::address;
use crate::ending::Ending;
use crate::{files, output};

/// Where a history is kept unless `--out` names a folder.
const FOLDER: &str = "punctual-history";

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let experiment = asked::history(matches)?;
    let out = matches.get_one("out").cloned().unwrap_or_else(|| PathBuf::from(FOLDER));
    let ready = experiment.prepare()?;
    let folder = open(&out)?;
    let json = matches.get_flag("json");
    let quiet = matches.get_flag("quiet") || json;
    let boots = boot(&experiment, &ready, &folder, quiet)?;
    let history = History::of(&load(&boots.done, &folder));
    write(&history, &folder)?;
    if json {
        output::print_json(&history)?;
    } else {
        let (width, colour) = (output::width(), output::colour());
        output::print(&history::text(&history, width, colour))?;
        output::print(&format!("      {}\n", address(&out.join("history.html"))))?;
    }
    let failed = boots.done.iter().any(|done| !done.end.troubles.is_empty());
    Ok(match boots.interrupted {
        true => Ending::Interrupted,
        false if failed => Ending::GuestFailed,
        false => Ending::Done,
    })
}

/// The folder of a history, made if it is not there yet.
fn open(out: &Path) -> anyhow::Result<PathBuf> {
    if let Some(text) = warning(out) {
        output::complain(&text);
    }
    if !out.exists() {
        return make_folder(out);
    }
    // Runs that are out of date are removed from it.
    ensure!(
        out.join(EXPERIMENT).is_file(),
        "{} is not the folder of a history (it has no {EXPERIMENT}): name another with --out",
        out.display()
    );
    out.canonicalize().with_context(|| out.display().to_string())
}

fn boot(
    experiment: &Experiment,
    ready: &Ready,
    folder: &Path,
    quiet: bool,
) -> anyhow::Result<Boots> {
    let sorted = experiment.sorted(ready, folder)?;
    let (kept, missing) = (sorted.kept.len(), sorted.missing.len());
    let all = kept + missing;
    if !quiet && kept > 0 {
        output::complain(&format!("{kept} of {all} boots are here already"));
    }
    let signals = Signals::block().context("signals")?;
    let mut follower = GuestsFollower::new(&signals, missing, quiet);
    let _working = working(ready, folder)?;
    let boots = experiment.run_missing(sorted, ready, folder, &mut follower)?;
    interrupted(&boots, all);
    Ok(boots)
}

/// Writes the history in all of its forms.
fn write(history: &History, folder: &Path) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(history)? + "\n";
    let figure = history::figure(history);
    let texts = [
        ("history.txt", Some(history::text(history, 100, false))),
        ("history.csv", Some(history::csv(history))),
        ("history.json", Some(json)),
        ("history.html", Some(history::page(history))),
        ("history.svg", figure.map(|figure| figure.svg())),
    ];
    for (name, text) in texts {
        let path = folder.join(name);
        match text {
            Some(text) => files::replace(&path, text.as_bytes())
                .with_context(|| format!("cannot write {}", path.display()))?,
            None => drop(fs::remove_file(&path)),
        }
    }
    Ok(())
}
