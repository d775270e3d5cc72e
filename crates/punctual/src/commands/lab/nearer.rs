//! Releases that came otherwise than predicted, aimed again: a release changes what comes after it,
//! and that is known once its own course was watched.

use std::path::Path;

use anyhow::{Context, ensure};
use punctual_core::aimed::{Shot, Target};
use punctual_core::run::LoadedRun;
use punctual_lab::experiment::{Experiment, Place};
use punctual_lab::microscope::{self, WatchedGuest};

use super::progress::GuestsFollower;
use super::sections::Watching;
use super::shots::{failure, samples, target};

/// The last round: a course that is another one each time is not followed further.
const LAST_ROUND: u32 = 3;

/// A difference between what was predicted and measured up to which nothing is aimed again, ns.
const CLOSE_NS: u64 = 3_000;

/// A guest, and what wake-ups take in the cell of it with this index.
pub type Costs<'a> = (&'a WatchedGuest, &'a LoadedRun, usize);

/// A release that is aimed again.
pub struct Nearer<'a> {
    pub watching: &'a Watching,
    pub experiment: &'a Experiment,
    /// The guest of its first round.
    pub place: &'a Place,
    /// Index of its cell.
    pub cell: usize,
    /// How far before the release other sections may be aimed at, ns.
    pub within_ns: u64,
    /// Unless it is known from the release before.
    pub costs: Option<Costs<'a>>,
}

/// Whether a release came as predicted.
pub fn is_close(aimed: &Target) -> bool {
    aimed.latency_ns().is_some_and(|ns| ns.abs_diff(aimed.predicted_ns) <= CLOSE_NS)
}

impl Nearer<'_> {
    /// The further rounds after a guest that was watched, until a release comes as predicted.
    /// `None` if that was interrupted.
    ///
    /// # Errors
    /// A guest failed, or was not watched.
    pub fn shoot(
        &self,
        mut before: (WatchedGuest, LoadedRun),
        follower: &mut GuestsFollower<'_>,
    ) -> anyhow::Result<Option<Vec<Target>>> {
        let Self { watching, experiment, place, cell, within_ns, costs } = *self;
        let mut found = Vec::new();
        for round in 2..=LAST_ROUND {
            let (guest, run) = &before;
            let costs = costs.unwrap_or((guest, run, cell));
            let Some(next) = guest.nearer((run, cell), within_ns, costs)? else { break };
            let name = format!("{}-round{round}", place.name);
            let place = Place { name, aim: Some(next.aim), ..place.clone() };
            follower.one_more();
            let Some(aimed) = watching.watch(experiment, &place, follower)? else {
                return Ok(None);
            };
            let dir = watching.folder.join(&place.name);
            let shot = measured(&before, &aimed, cell, &next, &dir);
            let last = target(&next, round, shot);
            let is_done = is_close(&last);
            found.push(last);
            if is_done {
                break;
            }
            before = aimed;
        }
        Ok(Some(found))
    }
}

/// What a release measured that was aimed at the course of the guest before, if nothing but it was
/// another there.
pub fn measured(
    (before, before_run): &(WatchedGuest, LoadedRun),
    (guest, run): &(WatchedGuest, LoadedRun),
    cell: usize,
    target: &microscope::Target,
    dir: &Path,
) -> Shot {
    let latency = || {
        same_samples(before_run, run, cell)?;
        before.same_until(guest, cell, target)?;
        latency_ns(run, cell)
    };
    match latency() {
        Ok(latency_ns) => Shot::Measured { run: dir.display().to_string(), latency_ns },
        Err(error) => failure(&error),
    }
}

/// What the last release of a run measured, which was aimed.
pub fn latency_ns(run: &LoadedRun, cell: usize) -> anyhow::Result<u64> {
    let last = samples(run, cell).last().context("nothing was measured")?;
    Ok(last.latency.max(0).unsigned_abs())
}

/// Checks that all samples before an aimed release came out as in the course it was aimed at.
///
/// # Errors
/// They did not.
pub fn same_samples(before: &LoadedRun, aimed: &LoadedRun, cell: usize) -> anyhow::Result<()> {
    for earlier in 0..cell {
        ensure!(
            samples(before, earlier) == samples(aimed, earlier),
            "samples of the cell before came out differently"
        );
    }
    let (known, found) = (samples(before, cell), samples(aimed, cell));
    let (_, found) = found.split_last().context("nothing was measured")?;
    if let Some((number, _)) = found.iter().zip(known).enumerate().find(|(_, (a, b))| a != b) {
        anyhow::bail!("sample {} before it came out differently", number + 1);
    }
    Ok(())
}
