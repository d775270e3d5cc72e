//! `punctual lab run --legs`: each guest is booted again, watched, and what its latencies consist
//! of becomes a file of its run.

use std::path::Path;

use anyhow::{Context, bail};
use punctual_core::layout;
use punctual_core::legs::Legs;
use punctual_lab::experiment::{Done, Experiment, Place, Ready};
use punctual_lab::microscope::{self, LegWatches, RepeatLegs};
use punctual_sys::signal::Signals;

use super::again::identical;
use super::folder::working;
use super::progress::GuestsFollower;
use super::watchable::check;
use crate::commands::report::cannot_write;
use crate::temporary::Temporary;
use crate::{files, output, store};

/// How the guests of an experiment are watched when they are repeated.
pub struct Repeats {
    watches: LegWatches,
}

impl Repeats {
    /// Everything is checked before the first boot.
    ///
    /// # Errors
    /// A cell or a kernel cannot be watched, or the guests may not repeat.
    pub fn of(experiment: &Experiment) -> anyhow::Result<Self> {
        check(experiment)?;
        let watches = LegWatches::of(experiment);
        Ok(Self { watches: watches.context("--legs")? })
    }

    /// Repeats the guests that were measured in `folder`, and writes the legs of each. Returns the
    /// names of those without, and why; `None` if that was interrupted.
    ///
    /// # Errors
    /// There is no place for the repeats.
    pub fn find(
        &self,
        experiment: &Experiment,
        ready: &Ready,
        done: &[Done],
        folder: &Path,
        quiet: bool,
    ) -> anyhow::Result<Option<Vec<(String, String)>>> {
        let measured: Vec<&Place> =
            done.iter().filter(|d| d.end.troubles.is_empty()).map(|done| &done.place).collect();
        let signals = Signals::block().context("signals")?;
        let mut follower = GuestsFollower::new(&signals, measured.len(), quiet);
        let mut without = Vec::new();
        for place in measured {
            let dir = folder.join(&place.name);
            let found = self.of_guest(experiment, ready, place, &dir, &mut follower);
            let written = found.and_then(|legs| match legs {
                Some(legs) => write(&dir.join(layout::LEGS_JSON), &legs).map(Some),
                None => Ok(None),
            });
            match written {
                Ok(Some(())) => {}
                Ok(None) => return Ok(None),
                Err(error) => {
                    let why = format!("{error:#}");
                    output::complain(&format!("{}: no legs: {why}", place.name));
                    without.push((place.name.clone(), why));
                }
            }
        }
        Ok(Some(without))
    }

    /// Repeats one guest; `None` if that was interrupted.
    fn of_guest(
        &self,
        experiment: &Experiment,
        ready: &Ready,
        place: &Place,
        dir: &Path,
        follower: &mut GuestsFollower<'_>,
    ) -> anyhow::Result<Option<Legs>> {
        let run = store::load(dir)?;
        let folder = Temporary::make()?;
        let _working = working(ready, folder.path())?;
        let watches = &self.watches;
        let out = folder.path();
        let repeat = microscope::legs(experiment, ready, place, out, watches, &run, follower)?;
        let Some(RepeatLegs { end, found }) = repeat else { return Ok(None) };
        if let Some(trouble) = end.troubles.first() {
            bail!("the repeat failed: {trouble}");
        }
        identical(dir, &folder.path().join(&place.name))?;
        found.map(Some)
    }
}

fn write(path: &Path, legs: &Legs) -> anyhow::Result<()> {
    files::replace(path, &serde_json::to_vec(legs)?).with_context(|| cannot_write(path))
}
