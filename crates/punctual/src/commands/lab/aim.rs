//! `punctual lab aim`: the latest releases that there can be in a course, found and measured.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ArgMatches;
use punctual_core::aimed::{AimedCell, AimedRun, Course, Shot, Target};
use punctual_core::layout;
use punctual_core::run::LoadedRun;
use punctual_lab::experiment::{Boots, Done, Place};
use punctual_lab::microscope::Targets;
use punctual_report::{aimed, words};
use punctual_sys::signal::Signals;

use super::alone;
use super::nearer::{Nearer, is_close, latency_ns, same_samples};
use super::progress::{GuestsFollower, interrupted};
use super::sections::{Watching, replace};
use super::shots::{self, aimed_cell, failure, samples};
use crate::commands::address::address;
use crate::ending::Ending;
use crate::{output, store};

/// Page of an experiment's aimed releases, in its folder.
const PAGE: &str = "aimed.html";

/// Sections with their stacks in the `sections.json` of each watched run.
pub const LONGEST: usize = 5;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let wish = Wish { count: asked(matches).unwrap_or_default(), alone: matches.get_flag("alone") };
    let watching = Watching::of(matches, LONGEST)?;
    let Some(aimed) = shoot(&watching, wish)? else { return Ok(Ending::Interrupted) };
    let page = aimed.keep(&watching.out)?;
    if matches.get_flag("json") {
        output::print_json(&aimed.runs)?;
    } else {
        aimed.print(&page)?;
    }
    Ok(if aimed.failed { Ending::GuestFailed } else { Ending::Done })
}

/// What is to be aimed.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// Releases of each cell.
    pub count: usize,
    /// Whether as many more are aimed that have no others before them.
    pub alone: bool,
}

/// How many releases of each cell are aimed; `None` without `--aim`.
pub fn asked(matches: &ArgMatches) -> Option<usize> {
    matches.get_one::<u32>("aim").and_then(|count| usize::try_from(*count).ok())
}

/// What came of all releases.
pub struct AimedRuns {
    /// The guests that were watched.
    pub boots: Boots,
    /// Their runs.
    pub sampled: Vec<LoadedRun>,
    /// What was aimed at in these.
    pub runs: Vec<AimedRun>,
    /// Whether a guest of an aimed release failed.
    pub failed: bool,
}

/// A course that was watched, and what is aimed at in it.
struct Sampled {
    place: Place,
    run: LoadedRun,
    /// By cell.
    targets: Vec<Targets>,
    /// What releases without others before them measured, if they were wanted.
    alone: Vec<AimedCell>,
}

/// Watches every guest, and boots it again for each of the latest releases of each of its cells.
/// `None` if that was interrupted.
///
/// # Errors
/// A guest failed that was watched, or what was watched is incomplete.
pub fn shoot(watching: &Watching, wish: Wish) -> anyhow::Result<Option<AimedRuns>> {
    let Watching { experiment, ready, folder, quiet, .. } = watching;
    let signals = Signals::block().context("signals")?;
    let places = experiment.places();
    let alone = if wish.alone { experiment.plan.cells.len() * (1 + wish.count) } else { 0 };
    let mut follower = GuestsFollower::new(&signals, places.len() * (1 + alone), *quiet);
    let (mut sampled, mut done, mut failed) = (Vec::new(), Vec::new(), false);
    for place in places {
        let Some((guest, run, _)) = watching.boot(&place, &mut follower)? else {
            return Ok(None);
        };
        let targets = run.run.cells.iter().enumerate().map(|(number, cell)| {
            guest.targets(&run, number, wish.count).with_context(|| words::key_name(&cell.key))
        });
        let targets = targets.collect::<anyhow::Result<_>>()?;
        let mut alone = Vec::new();
        if wish.alone {
            let known = (&guest, &run);
            let found = alone::shoot(watching, &place, known, wish.count, &mut follower)?;
            let Some((found, has_failed)) = found else { return Ok(None) };
            alone = found;
            failed |= has_failed;
        }
        done.push(Done { place: place.clone(), end: guest.end });
        sampled.push(Sampled { place, run, targets, alone });
    }
    let shots: Vec<Place> = sampled.iter().flat_map(Sampled::places).collect();
    let all = shots.len();
    let mut follower = GuestsFollower::new(&signals, all, *quiet);
    let shot = experiment.boot_all(shots, ready, folder, &mut follower)?;
    if shot.interrupted {
        interrupted(&shot, all);
        return Ok(None);
    }
    failed |= shot.done.iter().any(|done| !done.end.troubles.is_empty());
    let mut runs = Vec::new();
    for one in &sampled {
        let result = one.result(&shot, watching, &mut follower)?;
        let Some((aimed, has_failed)) = result else { return Ok(None) };
        runs.push(aimed);
        failed |= has_failed;
    }
    Ok(Some(AimedRuns {
        boots: Boots { done, interrupted: false },
        runs,
        sampled: sampled.into_iter().map(|one| one.run).collect(),
        failed,
    }))
}

impl AimedRuns {
    /// The largest latency that an aimed release measured, ns.
    pub fn max_ns(&self) -> Option<u64> {
        let targets = self.runs.iter().flat_map(|run| &run.cells).flat_map(|cell| &cell.targets);
        targets.filter_map(Target::latency_ns).max()
    }

    /// Writes the page into the folder of the experiment, and the file beside it.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn keep(&self, out: &Path) -> anyhow::Result<PathBuf> {
        let page = out.join(PAGE);
        replace(&page, aimed::page(&self.runs).as_bytes())?;
        replace(&out.join(layout::AIMED_JSON), &serde_json::to_vec(&self.runs)?)?;
        Ok(page)
    }

    /// Prints the text, and where the page is.
    ///
    /// # Errors
    /// Nobody reads it.
    pub fn print(&self, page: &Path) -> anyhow::Result<()> {
        output::print(&aimed::text(&self.runs, output::width(), output::colour()))?;
        output::print(&format!("      {}\n", address(page)))?;
        Ok(())
    }
}

impl Sampled {
    /// The guests of its aimed releases, in the order of its targets.
    fn places(&self) -> Vec<Place> {
        let aims = self.targets.iter().flat_map(|of| &of.targets);
        (1..).zip(aims).map(|(number, target)| self.place.aimed(target.aim, number)).collect()
    }

    /// What its aimed releases measured, and whether a guest failed of those that were aimed again.
    /// `None` if that was interrupted.
    fn result(
        &self,
        boots: &Boots,
        watching: &Watching,
        follower: &mut GuestsFollower<'_>,
    ) -> anyhow::Result<Option<(AimedRun, bool)>> {
        let (run, out) = (&self.run.run, &watching.folder);
        let mut places = self.places().into_iter();
        let (mut cells, mut failed) = (Vec::new(), false);
        for (number, of) in self.targets.iter().enumerate() {
            let mut found = Vec::new();
            for (target, place) in of.targets.iter().zip(places.by_ref()) {
                let done = boots.done.iter().find(|done| done.place == place);
                let first = shots::target(target, 1, self.shot(number, done, out));
                let is_off = first.latency_ns().is_some() && !is_close(&first);
                found.push(first);
                if is_off {
                    match self.rounds(number, &place, watching, follower) {
                        Ok(Some(further)) => found.extend(further),
                        Ok(None) => return Ok(None),
                        Err(error) => {
                            failed |= Ending::of_error(&error) == Ending::GuestFailed;
                            found.push(shots::target(target, 2, failure(&error)));
                        }
                    }
                }
            }
            let watched = (&self.run, number);
            let cell = &run.cells[number];
            cells.push(aimed_cell(cell, Course::Sampled, watched, of.passed_over, found));
        }
        let aimed = AimedRun {
            run_id: run.run_id.clone(),
            run: out.join(&self.place.name).display().to_string(),
            release: run.kernel.release.clone(),
            model: run.kernel.preemption,
            cells: cells.into_iter().chain(self.alone.iter().cloned()).collect(),
            caveats: Vec::new(),
        };
        Ok(Some((aimed, failed)))
    }

    /// The further rounds of a release that came otherwise than predicted.
    fn rounds(
        &self,
        cell: usize,
        place: &Place,
        watching: &Watching,
        follower: &mut GuestsFollower<'_>,
    ) -> anyhow::Result<Option<Vec<Target>>> {
        let (experiment, out) = (&watching.experiment, &watching.folder);
        let again = Place { name: format!("{}-watched", place.name), ..place.clone() };
        follower.one_more();
        let Some(watched) = watching.watch(experiment, &again, follower)? else { return Ok(None) };
        let aimed = store::load(&out.join(&place.name))?;
        anyhow::ensure!(
            samples(&aimed, cell) == samples(&watched.1, cell),
            "its repeat is not identical"
        );
        let nearer = Nearer { watching, experiment, place, cell, within_ns: 0, costs: None };
        nearer.shoot(watched, follower)
    }

    /// What an aimed release of a cell measured, if all before it came out as before.
    fn shot(&self, cell: usize, done: Option<&Done>, out: &Path) -> Shot {
        match done
            .context("its guest was not booted")
            .and_then(|done| self.latency(cell, done, out))
        {
            Ok((run, latency_ns)) => Shot::Measured { run, latency_ns },
            Err(error) => failure(&error),
        }
    }

    fn latency(&self, cell: usize, done: &Done, out: &Path) -> anyhow::Result<(String, u64)> {
        if let Some(trouble) = done.end.troubles.first() {
            anyhow::bail!("{trouble}");
        }
        let dir = out.join(&done.place.name);
        let aimed = store::load(&dir)?;
        same_samples(&self.run, &aimed, cell)?;
        Ok((dir.display().to_string(), latency_ns(&aimed, cell)?))
    }
}
