//! Boots the guests of a search, several at a time, each in a thread of its own.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, anyhow};
use punctual_core::plan::{CellPlan, Subject};
use punctual_core::search::{Step, Try};
use punctual_lab::experiment::{Experiment, Place, Ready};
use punctual_lab::microscope::{self, Watches};
use punctual_sys::signal::Signals;

use super::lane::{Lane, PAUSE, Word};
use super::tried::{of_sections, why_not};
use crate::commands::lab::folder::working;
use crate::commands::lab::sections::keep;
use crate::commands::lab::watchable::marks;
use crate::store;
use crate::temporary::Temporary;

/// Longest sections that are kept with what ran in them.
const LONGEST: usize = 1;

/// One guest to boot.
pub struct Job {
    pub place: Place,
    pub number: u64,
    pub step: Step,
    pub load: String,
}

/// Where guests are tried.
pub struct Bench {
    /// With one cell, whose load is that of each try.
    experiment: Experiment,
    watches: Watches,
    /// By thread.
    readies: Vec<Ready>,
    runs: PathBuf,
    /// What guests need only while they run.
    working: Option<Temporary>,
}

impl Bench {
    /// Everything is found and checked, and nothing written.
    ///
    /// # Errors
    /// A kernel cannot be watched.
    pub fn new(experiment: Experiment) -> anyhow::Result<Self> {
        let watches = Watches::of(&experiment, marks(&experiment)?, LONGEST)?;
        let threads = 0..experiment.jobs.max(1);
        let ready = |thread| Ok(experiment.prepare()?.of_thread(thread));
        let readies = threads.map(ready).collect::<anyhow::Result<_>>()?;
        Ok(Self { experiment, watches, readies, runs: PathBuf::new(), working: None })
    }

    /// The folder of their runs.
    ///
    /// # Errors
    /// There is no place for what guests need only while they run.
    pub fn keep_in(&mut self, runs: PathBuf) -> anyhow::Result<()> {
        // All threads have the same, in which each guest has its own.
        let first = self.readies.first().context("nothing boots")?;
        let working = working(first, &runs)?;
        self.readies.iter().for_each(|ready| ready.work_in(working.path()));
        (self.runs, self.working) = (runs, Some(working));
        Ok(())
    }

    /// The guests of a mix, kernel by kernel.
    pub fn places(&self) -> Vec<Place> {
        let mut places = self.experiment.places();
        places.sort_by_key(|place| (place.kernel, place.replicate));
        places
    }

    /// The kernels, as they were asked for.
    pub fn kernels(&self) -> Vec<String> {
        self.experiment.kernels.iter().map(|kernel| kernel.name.clone()).collect()
    }

    /// The kernel of a guest.
    pub fn kernel(&self, place: &Place) -> String {
        self.experiment.kernels[place.kernel].name.clone()
    }

    /// Boots them all. `ended` gets each try as it ends, and `note` what is to be said meanwhile.
    /// `false` if a signal ended them.
    ///
    /// # Errors
    /// A guest cannot be booted or watched, or `ended` fails. The others are ended.
    pub fn boot(
        &self,
        jobs: Vec<Job>,
        signals: &Signals,
        ended: &mut dyn FnMut(Try) -> anyhow::Result<()>,
        note: &dyn Fn(&str),
    ) -> anyhow::Result<bool> {
        let jobs = Mutex::new(VecDeque::from(jobs));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let (to, from) = channel();
            for ready in &self.readies {
                let lane = Lane { over: &over, to: to.clone() };
                let jobs = &jobs;
                scope.spawn(move || self.work(jobs, ready, lane));
            }
            drop(to);
            let done = listen(&from, signals, &over, ended, note);
            // Whatever happened, the threads end their guests.
            over.store(true, Ordering::Relaxed);
            done
        })
    }

    /// Boots one guest after the other.
    fn work(&self, jobs: &Mutex<VecDeque<Job>>, ready: &Ready, mut lane: Lane<'_>) {
        while !lane.is_over() {
            let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(job) = job else { return };
            let name = job.load.clone();
            let tried = self.watch(job, ready, &mut lane).map(|tried| tried.map(Box::new));
            lane.say(Word::Ended(tried.map_err(|error| anyhow!("{name}: {error:#}"))));
        }
    }

    fn watch(&self, job: Job, ready: &Ready, lane: &mut Lane<'_>) -> anyhow::Result<Option<Try>> {
        let dir = self.runs.join(&job.place.name);
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}", dir.display()));
            }
            _ => {}
        }
        let mut experiment = self.experiment.clone();
        let cell = experiment.plan.cells.first_mut().context("nothing is measured")?;
        cell.load.clone_from(&job.load);
        let (place, watches) = (&job.place, &self.watches);
        let guest = microscope::sections(&experiment, ready, place, &self.runs, watches, lane)?;
        let Some(mut guest) = guest else { return Ok(None) };
        let kernel = &self.experiment.kernels[place.kernel].name;
        let mut tried = Try {
            number: job.number,
            step: Some(job.step),
            load: job.load,
            kernel: kernel.clone(),
            seed: place.seed(),
            ..Try::default()
        };
        if let Some(trouble) = guest.end.troubles.first() {
            (tried.failed, tried.guest_failed) = (Some(trouble.clone()), true);
            return Ok(Some(tried));
        }
        let run = store::load(&dir)?;
        if let Some(why) = why_not(&run) {
            tried.failed = Some(why);
            return Ok(Some(tried));
        }
        guest.name_modules(ready, place, &run.run.board);
        let sections = keep(&guest, &run, &dir)?;
        Ok(Some(of_sections(tried, &sections, &run)))
    }
}

/// Passes on what the threads say until all have ended, and looks at signals.
fn listen(
    from: &Receiver<Word>,
    signals: &Signals,
    over: &AtomicBool,
    ended: &mut dyn FnMut(Try) -> anyhow::Result<()>,
    note: &dyn Fn(&str),
) -> anyhow::Result<bool> {
    let mut whole = true;
    loop {
        loop {
            match from.try_recv() {
                Ok(Word::Note(text)) => note(&text),
                Ok(Word::Ended(tried)) => match tried? {
                    Some(tried) => ended(*tried)?,
                    None => whole = false,
                },
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(whole),
            }
        }
        let pause_ns = u64::try_from(PAUSE.as_nanos()).unwrap_or(u64::MAX);
        if signals.wait(pause_ns).is_some_and(|signal| signal.ends()) {
            over.store(true, Ordering::Relaxed);
            whole = false;
        }
    }
}

/// The cell that each try measures, but for its load.
pub fn cell(duration_ns: u64) -> CellPlan {
    CellPlan {
        subject: Subject::Probe("wakeup".to_owned()),
        params: std::collections::BTreeMap::default(),
        load: "none".to_owned(),
        duration_ns,
        samples: None,
        available: false,
    }
}
