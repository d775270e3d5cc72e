//! Aimed releases that have no others before them: another course of the same load, in which the
//! measurement itself does nothing until its only release.

use anyhow::Context;
use punctual_core::aim::Aim;
use punctual_core::aimed::{AimedCell, Course, Target};
use punctual_core::run::LoadedRun;
use punctual_core::units::exact_duration;
use punctual_lab::experiment::{Experiment, Place};
use punctual_lab::microscope::{self, WatchedGuest};
use punctual_report::words;

use super::nearer::{Nearer, is_close, measured};
use super::progress::GuestsFollower;
use super::sections::Watching;
use super::shots::{self, aimed_cell, failure};
use crate::ending::Ending;

/// How long before the end of a cell its only release comes while the sections before are watched,
/// ns.
const LAST_NS: u64 = 1_000_000;

/// How far before a release that met another section than expected one is looked for, ns. The load's
/// own timers expire in between, if it has any, so that not much more is the same.
const NEARBY_NS: u64 = 1_000_000;

/// A guest whose only release is aimed at the end of its cell.
struct Alone<'a> {
    watching: &'a Watching,
    /// With nothing but this cell, and one release in it.
    experiment: &'a Experiment,
    place: Place,
    /// The same guest with all cells and releases.
    sampled: (&'a WatchedGuest, &'a LoadedRun),
    /// Index of the cell there.
    cell: usize,
}

/// Watches each cell of a guest by itself, and boots it again for each of the `count` latest releases
/// there. What wake-ups take is known from `sampled`, the same guest with all its
/// releases. Returns what was aimed at and whether a guest of an aimed release failed; `None` if that
/// was interrupted.
///
/// # Errors
/// A cell cannot have its only release at its end, or a guest failed that was watched.
pub fn shoot(
    watching: &Watching,
    place: &Place,
    sampled: (&WatchedGuest, &LoadedRun),
    count: usize,
    follower: &mut GuestsFollower<'_>,
) -> anyhow::Result<Option<(Vec<AimedCell>, bool)>> {
    let (mut cells, mut failed) = (Vec::new(), false);
    for (number, cell) in watching.experiment.plan.cells.iter().enumerate() {
        let mut cell = cell.clone();
        cell.params.insert("interval".to_owned(), exact_duration(cell.duration_ns));
        let last = Aim { release: 1, at_ns: cell.duration_ns.saturating_sub(LAST_NS), cell: 0 };
        let mut experiment = watching.experiment.clone();
        experiment.plan.cells = vec![cell];
        experiment.plan.check()?;
        let place = Place {
            name: format!("{}-alone{}", place.name, number + 1),
            aim: Some(last),
            ..place.clone()
        };
        let alone = Alone { watching, experiment: &experiment, place, sampled, cell: number };
        let Some(cell) = alone.shoot(count, follower, &mut failed)? else { return Ok(None) };
        cells.push(cell);
    }
    Ok(Some((cells, failed)))
}

impl Alone<'_> {
    fn shoot(
        &self,
        count: usize,
        follower: &mut GuestsFollower<'_>,
        failed: &mut bool,
    ) -> anyhow::Result<Option<AimedCell>> {
        let Self { watching, experiment, ref place, sampled, .. } = *self;
        let Some((guest, run, _)) = watching.boot_of(experiment, place, follower)? else {
            return Ok(None);
        };
        let known = (guest, run);
        let of = &sampled.1.run.cells[self.cell];
        let targets = known
            .0
            .targets_alone((&known.1, 0), count, (sampled.0, sampled.1, self.cell))
            .with_context(|| words::key_name(&of.key))?;
        let mut found = Vec::new();
        for (number, target) in (1..).zip(&targets.targets) {
            let place = self.place.aimed(target.aim, number);
            match self.rounds(&known, target, &place, follower) {
                Ok(Some(rounds)) => found.extend(rounds),
                Ok(None) => return Ok(None),
                Err(error) => {
                    *failed |= Ending::of_error(&error) == Ending::GuestFailed;
                    found.push(shots::target(target, 1, failure(&error)));
                }
            }
        }
        let watched = (&known.1, 0);
        Ok(Some(aimed_cell(of, Course::Alone, watched, targets.passed_over, found)))
    }

    /// What the release measures at a target of the guest that was watched, in each round. There is
    /// no sample before it to compare, so it is watched too. `None` if that was interrupted.
    fn rounds(
        &self,
        known: &(WatchedGuest, LoadedRun),
        target: &microscope::Target,
        place: &Place,
        follower: &mut GuestsFollower<'_>,
    ) -> anyhow::Result<Option<Vec<Target>>> {
        let Self { watching, experiment, sampled, cell, .. } = *self;
        let Some(aimed) = watching.watch(experiment, place, follower)? else { return Ok(None) };
        let dir = watching.folder.join(&place.name);
        let first = shots::target(target, 1, measured(known, &aimed, 0, target, &dir));
        if is_close(&first) {
            return Ok(Some(vec![first]));
        }
        let costs = Some((sampled.0, sampled.1, cell));
        let again = Nearer { watching, experiment, place, cell: 0, within_ns: NEARBY_NS, costs };
        let further = again.shoot(aimed, follower)?;
        Ok(further.map(|further| [vec![first], further].concat()))
    }
}
