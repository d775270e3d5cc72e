//! `punctual lab sections`: every stretch in which a kernel could not have reacted.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::ArgMatches;
use punctual_core::layout;
use punctual_core::run::LoadedRun;
use punctual_core::sections::Sections;
use punctual_lab::experiment::{Experiment, Place, Ready, make_folder, warning};
use punctual_lab::kernel::of_kernel;
use punctual_lab::microscope::{self, WatchedGuest, Watches};
use punctual_report::sections;
use punctual_sys::signal::Signals;

use super::asked;
use super::folder::{default_folder, working};
use super::progress::GuestsFollower;
use super::watchable::{check, marks};
use crate::commands::address::address;
use crate::commands::report::write_figures;
use crate::ending::{Ending, GuestFailure};
use crate::temporary::Temporary;
use crate::{files, output, store};

/// Page of an experiment's sections, in its folder.
const PAGE: &str = "sections.html";

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let longest = matches.get_one::<u32>("longest").copied().unwrap_or(0);
    let watching = Watching::of(matches, usize::try_from(longest)?)?;
    let places = watching.experiment.places();
    let signals = Signals::block().context("signals")?;
    let mut follower = GuestsFollower::new(&signals, places.len(), watching.quiet);
    let mut all = Vec::new();
    for place in &places {
        let Some((_, _, sections)) = watching.boot(place, &mut follower)? else {
            return Ok(Ending::Interrupted);
        };
        all.push(sections);
    }
    write(&all, &watching.out, matches)?;
    Ok(Ending::Done)
}

/// An experiment whose guests are watched while they are measured.
pub struct Watching {
    pub experiment: Experiment,
    pub ready: Ready,
    watches: Watches,
    /// The folder of all runs, as it was asked for.
    pub out: PathBuf,
    /// The same, made.
    pub folder: PathBuf,
    pub quiet: bool,
    /// What guests need only while they run.
    _working: Temporary,
}

impl Watching {
    /// What was asked for, with so many of the longest sections written with what was executed.
    ///
    /// # Errors
    /// As [`Watching::new`].
    pub fn of(matches: &ArgMatches, longest: usize) -> anyhow::Result<Self> {
        let experiment = asked::experiment(matches)?;
        let out = matches.get_one("out").cloned().unwrap_or_else(default_folder);
        let quiet = matches.get_flag("quiet") || matches.get_flag("json");
        let watching = Self::new(experiment, out, longest, quiet)?;
        if let Some(text) = warning(&watching.out) {
            output::complain(&text);
        }
        Ok(watching)
    }

    /// An experiment whose runs go to `out`. Everything is checked before that folder is made.
    ///
    /// # Errors
    /// A cell or a kernel cannot be watched, or the folder not be made.
    pub fn new(
        experiment: Experiment,
        out: PathBuf,
        longest: usize,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        microscope::has_sections(&experiment.board, &experiment.emulator)?;
        check(&experiment)?;
        let watches = Watches::of(&experiment, marks(&experiment)?, longest)?;
        let ready = experiment.prepare().map_err(of_kernel)?;
        let folder = make_folder(&out)?;
        experiment.list(&folder)?;
        let kept = working(&ready, &folder)?;
        Ok(Self { experiment, ready, watches, out, folder, quiet, _working: kept })
    }

    /// Boots a guest; its sections become a file of its run. `None` if that was interrupted.
    ///
    /// # Errors
    /// It failed, what was watched is incomplete, or the file cannot be written.
    pub fn boot(
        &self,
        place: &Place,
        follower: &mut GuestsFollower<'_>,
    ) -> anyhow::Result<Option<(WatchedGuest, LoadedRun, Sections)>> {
        self.boot_of(&self.experiment, place, follower)
    }

    /// The same of an experiment that differs in its plan only.
    ///
    /// # Errors
    /// As [`Watching::boot`].
    pub fn boot_of(
        &self,
        experiment: &Experiment,
        place: &Place,
        follower: &mut GuestsFollower<'_>,
    ) -> anyhow::Result<Option<(WatchedGuest, LoadedRun, Sections)>> {
        let watched = self.watch(experiment, place, follower)?;
        let Some((guest, run)) = watched else { return Ok(None) };
        let sections = keep(&guest, &run, &self.folder.join(&place.name))?;
        Ok(Some((guest, run, sections)))
    }

    /// Boots a guest and watches it, no more: one that ends with an aimed release has cells which were
    /// not measured.
    ///
    /// # Errors
    /// It failed, or left no run.
    pub fn watch(
        &self,
        experiment: &Experiment,
        place: &Place,
        follower: &mut GuestsFollower<'_>,
    ) -> anyhow::Result<Option<(WatchedGuest, LoadedRun)>> {
        let Self { ready, watches, folder, .. } = self;
        let guest = microscope::sections(experiment, ready, place, folder, watches, follower)?;
        let Some(mut guest) = guest else { return Ok(None) };
        if let Some(trouble) = guest.end.troubles.first() {
            bail!(GuestFailure(format!("{}: {trouble}", place.name)));
        }
        let run = store::load(&folder.join(&place.name))?;
        guest.name_modules(ready, place, &run.run.board);
        Ok(Some((guest, run)))
    }
}

/// The sections of a guest, which become a file of its run, in `dir`.
///
/// # Errors
/// What was watched is incomplete, or the file cannot be written.
pub fn keep(guest: &WatchedGuest, run: &LoadedRun, dir: &Path) -> anyhow::Result<Sections> {
    let sections = Sections {
        run_id: run.run.run_id.clone(),
        run: dir.display().to_string(),
        release: run.run.kernel.release.clone(),
        model: run.run.kernel.preemption,
        instruction_ns: guest.instruction_ns(),
        cells: guest.cells(run).with_context(|| dir.display().to_string())?,
        coverage: guest.coverage(run).with_context(|| dir.display().to_string())?,
        caveats: Vec::new(),
    };
    replace(&dir.join(layout::SECTIONS_JSON), &serde_json::to_vec(&sections)?)?;
    Ok(sections)
}

fn write(all: &[Sections], out: &Path, matches: &ArgMatches) -> anyhow::Result<()> {
    let page = out.join(PAGE);
    replace(&page, sections::page(all).as_bytes())?;
    if let Some(folder) = matches.get_one::<PathBuf>("figures") {
        write_figures(&sections::figures(all), folder)?;
    }
    if matches.get_flag("json") {
        return output::print_json(&all);
    }
    let (width, colour) = (output::width(), output::colour());
    output::print(&sections::text(all, width, colour))?;
    if all.len() > 1 {
        output::print(&sections::comparison(all, width, colour))?;
    }
    output::print(&format!("      {}\n", address(&page)))?;
    Ok(())
}

/// Writes a file, or says why not.
///
/// # Errors
/// It cannot be written.
pub fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    files::replace(path, bytes).map_err(|error| anyhow!("cannot write {}: {error}", path.display()))
}
