//! The probes: one file each, and one line each in [`PROBES`].

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::params::Named;
use punctual_core::schema::Condition;

use crate::engine::threads::{PERIOD_PARAMS, THREAD_PARAMS};
use crate::recorder::Recorder;
use crate::registry::{Need, Param, Values};

mod clock;
pub mod planned;
mod sim;
mod wakeup;

/// Every probe that there is.
pub static PROBES: &[ProbeEntry] = &[wakeup::ENTRY, clock::ENTRY, sim::ENTRY];

/// What the registry says of a probe. Lists, help, man page, checks of
/// parameters and labels all derive from it.
#[derive(Debug)]
pub struct ProbeEntry {
    /// Name, as `wakeup`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it does, what it follows, how to read it.
    pub help: &'static str,
    /// Its own parameters, beside those of its threads and period.
    pub params: &'static [Param],
    /// What it needs with these parameters; without it the cell is SKIPPED.
    pub needs: fn(&Values) -> &'static [Need],
    /// Name and meaning of the quantity it measures.
    pub series: (&'static str, &'static str),
    /// How it meets time.
    pub kind: Kind,
    /// Makes what runs in each thread.
    pub build: fn(&Values, &Common) -> Result<Factory, String>,
}

/// How a probe meets time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Waits for releases, one every interval.
    Periodic,
    /// Spins: no period, nothing can be missed.
    Spinning,
    /// Periodic in simulated time: runs as fast as it can, measures nothing of this machine.
    Simulated,
}

impl Kind {
    /// Whether the probe has a period.
    #[must_use]
    pub fn has_interval(self) -> bool {
        self != Self::Spinning
    }
}

/// What all probes with threads have in common, as it took effect.
#[derive(Debug, Clone, Copy)]
pub struct Common {
    /// Time between two releases of a thread, ns; 0 where the probe has no period.
    pub interval_ns: u64,
    /// A sample above this ends the run, ns; `i64::MAX` for none.
    pub break_ns: i64,
}

/// Makes one thread's part of a probe; the number of the thread varies what must differ.
pub type Factory = Box<dyn Fn(u32) -> Box<dyn ProbeThread>>;

/// One thread's part of a probe.
pub trait ProbeThread: Send {
    /// Runs in the probe's thread before the start: opens, allocates, faults in.
    ///
    /// # Errors
    /// What could not be had; the cell is SKIPPED.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The hot loop: records samples from `window.first` until `window.end`, or until told to stop.
    ///
    /// # Errors
    /// What ended it early.
    fn run(&mut self, window: &Window, recorder: &mut Recorder, stop: &Stop) -> io::Result<()>;

    /// What is worth a note after the end.
    fn notes(&self) -> Vec<Condition> {
        Vec::new()
    }
}

/// When a thread measures; instants of CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The first release.
    pub first: u64,
    /// No release at or behind this instant.
    pub end: u64,
    /// End after this many samples.
    pub samples: u64,
}

/// Tells the threads of a cell to end.
#[derive(Debug, Default)]
pub struct Stop {
    stop: AtomicBool,
    broken: AtomicBool,
}

impl Stop {
    /// Whether to end.
    #[inline(always)]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the cell.
    pub fn set(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends the cell since a sample was above the break value.
    #[cold]
    pub fn set_broken(&self) {
        self.broken.store(true, Ordering::Relaxed);
        self.set();
    }

    /// Whether a sample was above the break value.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

/// The probe of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static ProbeEntry> {
    PROBES.iter().find(|entry| entry.name == name)
}

/// The device of a virtual board that the probe of that name measures, where it measures one.
#[must_use]
pub fn device(name: &str) -> Option<&'static str> {
    planned::find(name)?.device
}

impl ProbeEntry {
    /// Every parameter that it takes: its own, then those of its period and threads.
    #[must_use]
    pub fn all_params(&self) -> Vec<Param> {
        let period = if self.kind.has_interval() { PERIOD_PARAMS } else { &[] };
        self.params.iter().chain(period).chain(THREAD_PARAMS).copied().collect()
    }
}

/// The probe of that name and its parameters, checked.
///
/// # Errors
/// A message that names what is unknown and what there is.
pub fn read(
    name: &str,
    params: &BTreeMap<String, String>,
) -> Result<(&'static ProbeEntry, Values), String> {
    let entry = find(name).ok_or_else(|| {
        let known: Vec<_> = PROBES.iter().map(|entry| entry.name).collect();
        format!("unknown probe \"{name}\"; there are: {}", known.join(", "))
    })?;
    let named = Named { name: name.to_owned(), params: params.clone() };
    let values = Values::check(&named, &entry.all_params())?;
    Ok((entry, values))
}

/// Every parameter of the probe as it takes effect, defaults included.
#[must_use]
pub fn effective(entry: &ProbeEntry, values: &Values) -> BTreeMap<String, String> {
    let value = |param: &Param| values.text(param.name).unwrap_or(param.default).to_owned();
    entry.all_params().iter().map(|param| (param.name.to_owned(), value(param))).collect()
}
