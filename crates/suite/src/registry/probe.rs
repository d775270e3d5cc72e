//! Probes: what the registry says of one, and what one is made of.
//!
//! A cell opens one [`Session`], which the main thread owns. The session makes a
//! [`ProbeThread`] for each thread that measures and may make [`HelperThread`]s that take
//! part without samples. Each series of the entry is recorded either by the threads or, if
//! its samples come from the kernel, a module or another machine, by the session, which is
//! called once a second.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_core::schema::{Condition, Role, Unit};

use super::need::Need;
use super::param::{Default, Param};
use super::threads::{PERIOD_PARAMS, THREAD_PARAMS};
use super::values::Values;
use crate::facts::FactsRoot;
use crate::knobs::Journal;
use crate::recorder::Recorder;

/// What the registry says of a probe. Lists, help, man page, checks of
/// parameters, the record and labels all derive from it.
#[derive(Debug)]
pub struct ProbeEntry {
    /// Name, such as `wakeup`.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it does, what it follows, how to read it.
    pub help: &'static str,
    /// Its own parameters; those of its threads and period come in addition.
    pub params: &'static [Param],
    /// Parameters of threads and period that have another default here.
    pub overrides: &'static [(&'static str, &'static str)],
    /// Checks what no single parameter shows. The error is one of usage.
    pub check: fn(&Values) -> Result<(), String>,
    /// What it needs of the board, whatever its parameters are.
    pub needs: &'static [Need],
    /// The device of a virtual board that it measures, by the board's name for it.
    pub device: Option<&'static str>,
    /// How it meets time.
    pub pace: Pace,
    /// What it is judged by; always nanoseconds.
    pub primary: Primary,
    /// What else it measures.
    pub series: &'static [SeriesEntry],
    /// What else it counts.
    pub counters: &'static [CounterEntry],
    /// Whether it is in this version.
    pub state: State,
}

/// Opens a probe for one cell.
pub type Open = fn(&Values, &mut Stage<'_>) -> Result<Box<dyn Session>, String>;

/// Whether a probe is in this version.
#[derive(Debug, Clone, Copy)]
pub enum State {
    /// It is, and this opens it for one cell. The error is a reason to skip the cell.
    There(Open),
    /// A later version brings it. Plans may name it: its cells are SKIPPED until then.
    Planned,
}

/// The primary series of a probe.
#[derive(Debug, Clone, Copy)]
pub struct Primary {
    /// Name, such as `latency`.
    pub name: &'static str,
    /// From what to what.
    pub meaning: &'static str,
    /// What one sample is of, and several are of: `("hand-over", "hand-overs")`.
    pub nouns: (&'static str, &'static str),
    /// Who records it.
    pub by: By,
}

/// Another series of a probe.
#[derive(Debug, Clone, Copy)]
pub struct SeriesEntry {
    /// Name, such as `interrupt`.
    pub name: &'static str,
    /// From what to what.
    pub meaning: &'static str,
    /// Leg or aside.
    pub role: Role,
    /// Unit of its values.
    pub unit: Unit,
    /// Who records it.
    pub by: By,
}

/// Who records a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The thread that measures, sample by sample.
    Thread,
    /// The session, once a second: the samples come from elsewhere.
    Session,
}

/// What a probe counts besides its samples.
#[derive(Debug, Clone, Copy)]
pub struct CounterEntry {
    /// Name, such as `dropouts`.
    pub name: &'static str,
    /// What is counted, in words.
    pub meaning: &'static str,
    /// Whether one of them means that something went wrong.
    pub bad: bool,
}

/// How a probe meets time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Waits for releases, one every interval.
    Periodic,
    /// One sample after the other: no period, nothing can be missed.
    BackToBack,
    /// Periodic in simulated time: runs as fast as it can, measures nothing of this machine.
    Simulated,
}

impl Pace {
    /// Whether the probe has a period.
    #[must_use]
    pub fn has_interval(self) -> bool {
        self != Self::BackToBack
    }
}

impl ProbeEntry {
    /// A probe that a later version brings.
    #[must_use]
    pub const fn planned(
        name: &'static str,
        device: Option<&'static str>,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            summary,
            help: "Planned, not in this version: a cell with it is SKIPPED.",
            params: &[],
            overrides: &[],
            check: |_| Ok(()),
            needs: &[],
            device,
            pace: Pace::Periodic,
            primary: Primary {
                name: "latency",
                meaning: summary,
                nouns: ("sample", "samples"),
                by: By::Thread,
            },
            series: &[],
            counters: &[],
            state: State::Planned,
        }
    }

    /// Whether a later version brings it.
    #[must_use]
    pub const fn is_planned(&self) -> bool {
        matches!(self.state, State::Planned)
    }

    /// Every parameter that it takes: its own, then those of its period and threads, each
    /// with the default that it has here.
    #[must_use]
    pub fn all_params(&self) -> Vec<Param> {
        let period = if self.pace.has_interval() { PERIOD_PARAMS } else { &[] };
        let overridden = |param: &Param| {
            let other = self.overrides.iter().find(|(name, _)| *name == param.name);
            other.map_or(*param, |(_, value)| Param { default: Default::Value(value), ..*param })
        };
        self.params.iter().chain(period).chain(THREAD_PARAMS).map(overridden).collect()
    }

    /// Reads its parameters.
    ///
    /// # Errors
    /// A message that names the probe, the parameter and what is wrong with it.
    pub fn read(&self, given: &BTreeMap<String, String>) -> Result<Values, String> {
        let values = Values::read(self.name, &self.all_params(), given)?;
        (self.check)(&values)?;
        Ok(values)
    }

    /// Who records each series, the primary one first.
    pub fn by(&self) -> impl Iterator<Item = By> {
        [self.primary.by].into_iter().chain(self.series.iter().map(|series| series.by))
    }
}

/// What a session is opened with.
#[derive(Debug)]
pub struct Stage<'a> {
    /// How many threads measure.
    pub threads: u32,
    /// Time between two releases of a thread, ns; 0 if the probe has no period.
    pub interval_ns: u64,
    /// A sample above this ends the run, ns; `i64::MAX` for none.
    pub break_ns: i64,
    /// Where every setting is noted before it is changed. What the session changes is undone
    /// when it is closed, and by `punctual restore` if that does not come to pass.
    pub journal: &'a mut Journal,
    /// The root below which `/proc` and `/sys` are read.
    pub root: &'a FactsRoot,
}

/// A probe in one cell. Lives in the main thread, which is not real-time.
pub trait Session {
    /// One thread's part. Called once for each thread, in order, before any starts.
    ///
    /// # Errors
    /// Why the cell is skipped.
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String>;

    /// Threads that take part without samples, with what each does. They have the policy,
    /// priority and CPUs of the thread whose number is given.
    fn helpers(&mut self) -> Vec<(u32, String, Box<dyn HelperThread>)> {
        Vec::new()
    }

    /// The longest time that lies between two samples of a thread by intention, ns, besides
    /// the interval: the watchdog waits for longer.
    fn longest_pause_ns(&self) -> u64 {
        0
    }

    /// Called once a second and at the end: hands over samples that the threads did not make.
    ///
    /// # Errors
    /// What ends the cell early.
    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        let _ = out;
        Ok(())
    }

    /// Called when all threads have ended: closes what was opened, and says what was counted.
    /// Settings are undone after it.
    fn close(self: Box<Self>) -> Closed;
}

/// Where a session puts what it found.
#[derive(Debug)]
pub struct Drained<'a> {
    /// The recorders of the series that the session records: by thread, then in the order of
    /// the entry. Until `begun` what is recorded counts as warm-up.
    pub tracks: &'a mut [Vec<Recorder>],
    /// Whether the measurement has begun.
    pub begun: bool,
    /// Who had a CPU from when to when; ns of CLOCK_MONOTONIC.
    pub intervals: &'a mut Intervals,
}

/// Intervals that a session found: who had which CPU from when to when.
#[derive(Debug, std::default::Default)]
pub struct Intervals {
    pub(crate) actors: Vec<String>,
    pub(crate) found: Vec<(u32, u64, u64, u32)>,
}

impl Intervals {
    /// The number of an actor by its name, such as `thread 2` or `irq/24-eth0`.
    pub fn actor(&mut self, name: &str) -> u32 {
        let known = self.actors.iter().position(|actor| actor == name);
        let number = known.unwrap_or_else(|| {
            self.actors.push(name.to_owned());
            self.actors.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// `actor` had `cpu` from `from` up to `to`, ns of CLOCK_MONOTONIC.
    pub fn push(&mut self, cpu: u32, from: u64, to: u64, actor: u32) {
        self.found.push((cpu, from, to, actor));
    }
}

/// What a session leaves.
#[derive(Debug, std::default::Default)]
pub struct Closed {
    /// Totals of the entry's counters, in their order.
    pub counts: Vec<u64>,
    /// What is worth a note.
    pub notes: Vec<Condition>,
}

/// One thread's part of a probe.
pub trait ProbeThread: Send {
    /// Runs in the probe's thread before the start: opens, allocates, faults in.
    ///
    /// # Errors
    /// What could not be had; the cell is SKIPPED.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The hot loop: records samples from `window.first` until `window.end`, or until told
    /// to stop. `tracks` has a recorder for each series that threads record, in the order
    /// of the entry. A wait that may block for longer must end when a signal interrupts it
    /// and the window or the cell is over: see [`Stop::is_over`].
    ///
    /// # Errors
    /// What ended it early.
    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()>;

    /// What is worth a note after the end.
    fn notes(&self) -> Vec<Condition> {
        Vec::new()
    }
}

/// A thread that takes part without samples.
pub trait HelperThread: Send {
    /// Takes part from `window.first` until `window.end`, or until told to stop; waits as
    /// [`ProbeThread::run`] does.
    ///
    /// # Errors
    /// What ended it early.
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()>;
}

/// When a thread measures; instants of CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The first release.
    pub first: u64,
    /// No release at or after this instant.
    pub end: u64,
    /// End after this many samples.
    pub samples: u64,
}

/// Tells the threads of a cell to end.
#[derive(Debug, std::default::Default)]
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

    /// Whether a thread whose wait was interrupted is to end: it was told to, or its window
    /// is over. Reads the clock.
    #[must_use]
    pub fn is_over(&self, window: &Window) -> bool {
        self.is_set() || punctual_sys::clock::monotonic_ns() >= window.end
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
