//! Probes: the registry entry of one, and the parts that it is made of.
//!
//! A cell opens one [`Session`], which the main thread owns. The session makes a
//! [`ProbeThread`] for each thread that measures, and may make [`HelperThread`]s that take
//! part without samples. Each series of the entry is recorded either by the threads or by the
//! session, which is called once a second; the latter is for samples from the kernel, a module
//! or another machine.

use std::collections::BTreeMap;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use punctual_core::aim::Aim;
use punctual_core::dither::Dither;
use punctual_core::schema::{Condition, Ideal, Role, Tells, Unit};
use punctual_sys::affinity::CpuSet;
use punctual_sys::sched::Policy;

use super::need::Need;
pub use super::pace::Pace;
use super::param::{Default, Param};
use super::threads::{PERIOD_PARAMS, THREAD_PARAMS};
use super::values::Values;
use crate::facts::FactsRoot;
use crate::knobs::{Journal, Trace};
use crate::recorder::Recorder;

/// The registry entry of a probe. Lists, help, man page, parameter checks, the record and
/// labels all derive from it.
#[derive(Debug)]
pub struct ProbeEntry {
    /// Name, such as `wakeup`.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// A paragraph for help: what it does, what it is modelled on, how to read it.
    pub help: &'static str,
    /// Its own parameters; those of its threads and period are added, but for those of the same name.
    pub params: &'static [Param],
    /// Parameters of threads and period whose default differs for this probe.
    pub overrides: &'static [(&'static str, &'static str)],
    /// Parameters of threads that mean nothing for this probe, and that it does not have.
    pub without: &'static [&'static str],
    /// Checks that involve several parameters. The error is a usage error.
    pub check: fn(&Values) -> Result<(), String>,
    /// What it needs of the board, whatever its parameters.
    pub needs: &'static [Need],
    /// The device that it measures on a virtual board, by the board's name for it.
    pub device: Option<&'static str>,
    /// How its samples are paced.
    pub pace: Pace,
    /// Whether it waits, with these parameters, for each release by itself, so that each can be
    /// moved within its interval, and one to where it is aimed ([`Window::aim`]).
    pub dithers: fn(&Values) -> bool,
    /// The series that it is judged by, always in nanoseconds.
    pub primary: Primary,
    /// Its other series.
    pub series: &'static [SeriesEntry],
    /// What it counts besides samples.
    pub counters: &'static [CounterEntry],
    /// Whether it is in this version.
    pub state: State,
}

/// Opens a probe for one cell.
pub type Open = fn(&Values, &mut Stage<'_>) -> Result<Box<dyn Session>, String>;

/// Whether a probe is in this version.
#[derive(Debug, Clone, Copy)]
pub enum State {
    /// It is; this opens it for one cell. An error is the reason to skip the cell.
    There(Open),
    /// Planned for a later version. Plans may name it; its cells are SKIPPED until then.
    Planned,
}

/// The primary series of a probe.
#[derive(Debug, Clone, Copy)]
pub struct Primary {
    /// Name, such as `latency`.
    pub name: &'static str,
    /// The two instants between which it measures.
    pub meaning: &'static str,
    /// What one sample is called, singular and plural: `("hand-over", "hand-overs")`.
    pub nouns: (&'static str, &'static str),
    /// Who records it.
    pub by: By,
}

/// Another series of a probe.
#[derive(Debug, Clone, Copy)]
pub struct SeriesEntry {
    /// Name, such as `interrupt`.
    pub name: &'static str,
    /// The two instants between which it measures.
    pub meaning: &'static str,
    /// Whether it is a leg of the primary series or an aside.
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
    /// The session, once a second, from samples made elsewhere.
    Session,
}

/// What a probe counts besides its samples.
#[derive(Debug, Clone, Copy)]
pub struct CounterEntry {
    /// Name, such as `dropouts`.
    pub name: &'static str,
    /// What is counted, in words.
    pub meaning: &'static str,
    /// What a total above zero means.
    pub tells: Tells,
}

impl ProbeEntry {
    /// A probe planned for a later version.
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
            without: &[],
            check: |_| Ok(()),
            needs: &[],
            device,
            pace: Pace::Periodic,
            dithers: |_| false,
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

    /// Whether it is planned for a later version.
    #[must_use]
    pub const fn is_planned(&self) -> bool {
        matches!(self.state, State::Planned)
    }

    /// Every parameter that it takes: its own, then those of period and threads, with this
    /// probe's defaults.
    #[must_use]
    pub fn all_params(&self) -> Vec<Param> {
        let period = if self.pace.has_interval() { PERIOD_PARAMS } else { &[] };
        let overridden = |param: &Param| {
            let other = self.overrides.iter().find(|(name, _)| *name == param.name);
            other.map_or(*param, |(_, value)| Param { default: Default::Value(value), ..*param })
        };
        let own = |param: &&Param| self.params.iter().any(|own| own.name == param.name);
        let shared = period.iter().chain(THREAD_PARAMS);
        let shared = shared.filter(|param| !own(param) && !self.without.contains(&param.name));
        self.params.iter().chain(shared).map(overridden).collect()
    }

    /// Reads its parameters.
    ///
    /// # Errors
    /// A message that names the probe, the parameter and what is wrong with it.
    pub fn read(&self, given: &BTreeMap<String, String>) -> Result<Values, String> {
        let params = self.all_params();
        let has_policy = params.iter().any(|param| param.name == "policy");
        let reserves = self.params.iter().any(|param| param.name == "policy");
        if has_policy && !reserves && given.get("policy").is_some_and(|policy| policy == "deadline")
        {
            return Err(format!(
                "{}: policy=deadline: such a thread has a reservation, which the probe deadline \
                 makes, and wakeup",
                self.name
            ));
        }
        let values = Values::read(self.name, &params, given)?;
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
    /// Number of threads that measure.
    pub threads: u32,
    /// Every CPU that one of them is bound to.
    pub bound: CpuSet,
    /// The policy that they have, and their priority; 0 for a policy without priorities.
    pub scheduling: (Policy, u32),
    /// Time between two releases of a thread, ns; 0 if the probe has no period.
    pub interval_ns: u64,
    /// By how much to move each release, if its entry says that it can.
    pub dither: Option<&'a Dither>,
    /// A sample above this ends the run, ns; `i64::MAX`: none does.
    pub break_ns: i64,
    /// The journal, in which every setting is noted before it is changed. Changes are undone
    /// when the session is closed or, if it never is, by `punctual restore`.
    pub journal: &'a mut Journal,
    /// The root folder below which `/proc` and `/sys` are read.
    pub root: &'a FactsRoot,
}

/// An open probe in one cell. Lives in the main thread, which is not real-time.
pub trait Session {
    /// Makes one thread's part. Called for each thread in order, before any of them starts.
    ///
    /// # Errors
    /// Why the cell is skipped.
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String>;

    /// By how much the real-time priority of a thread is below that of the cell.
    fn below(&self, number: u32) -> u32 {
        let _ = number;
        0
    }

    /// Threads that take part without samples.
    fn helpers(&mut self) -> Vec<Companion> {
        Vec::new()
    }

    /// Longest intended time between two samples of a thread besides the interval, ns; the
    /// watchdog waits longer than that.
    fn longest_pause_ns(&self) -> u64 {
        0
    }

    /// Whether what it records stands still while this process is stopped, unlike threads of the kernel.
    fn is_of_process(&self) -> bool {
        true
    }

    /// What its samples would be if nothing were late, for samples that are no latencies.
    fn ideal(&self) -> Option<Ideal> {
        None
    }

    /// Called once a second and at the end: hands over samples that the threads did not make.
    ///
    /// # Errors
    /// The error that ends the cell early.
    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        let _ = out;
        Ok(())
    }

    /// Called when all threads have ended: closes what was opened and returns what was
    /// counted. Settings are undone after this.
    fn close(self: Box<Self>) -> Closed;
}

/// A thread that takes part without samples, beside one that measures.
pub struct Companion {
    /// The number of the thread whose policy it has, and whose CPUs.
    pub of: u32,
    /// By how much its real-time priority is below that thread's.
    pub below: u32,
    /// Its own CPU, if it has one.
    pub cpu: Option<u32>,
    /// What it does, in words.
    pub name: String,
    /// The helper itself.
    pub helper: Box<dyn HelperThread>,
}

/// Where a session puts what it found.
#[derive(Debug)]
pub struct Drained<'a> {
    /// The recorders of the series that the session records: by thread, then in the order of
    /// the entry.
    pub tracks: &'a mut [Vec<Recorder>],
    /// Samples of this instant or later are to wait for the next call (CLOCK_MONOTONIC, ns).
    /// In the last call of the warm-up it is the start of the measurement, which the main
    /// thread may come late to; after that `u64::MAX`.
    pub until_ns: u64,
    /// Which actor had which CPU, and when; CLOCK_MONOTONIC, ns.
    pub intervals: &'a mut Intervals,
}

/// Intervals that a session found: which actor had which CPU, and when.
#[derive(Debug, std::default::Default)]
pub struct Intervals {
    pub(crate) actors: Vec<String>,
    pub(crate) found: Vec<(u32, u64, u64, u32)>,
}

impl Intervals {
    /// The number of an actor such as `thread 2` or `irq/24-eth0`; a new name gets a new number.
    pub fn actor(&mut self, name: &str) -> u32 {
        let known = self.actors.iter().position(|actor| actor == name);
        let number = known.unwrap_or_else(|| {
            self.actors.push(name.to_owned());
            self.actors.len() - 1
        });
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Notes that `actor` had `cpu` from `from` up to `to`, CLOCK_MONOTONIC, ns.
    pub fn push(&mut self, cpu: u32, from: u64, to: u64, actor: u32) {
        self.found.push((cpu, from, to, actor));
    }
}

/// What a session returns when it is closed.
#[derive(Debug, std::default::Default)]
pub struct Closed {
    /// Totals of the entry's counters, in their order.
    pub counts: Vec<u64>,
    /// Notes for the reader.
    pub notes: Vec<Condition>,
}

/// One thread's part of a probe.
pub trait ProbeThread: Send {
    /// Runs in the probe's thread before the start: opens files, allocates, faults memory in.
    ///
    /// # Errors
    /// What was refused or is missing; the cell is SKIPPED.
    fn prepare(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The hot loop: records samples from `window.first` until `window.end`, or until told to
    /// stop. `tracks` has a recorder for each series that threads record, in the order of the
    /// entry. A wait that may outlast the window must return when a signal interrupts it, and
    /// then check [`Stop::is_over`].
    ///
    /// # Errors
    /// The error that ended it early.
    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()>;

    /// Notes for the reader, asked for after the end.
    fn notes(&self) -> Vec<Condition> {
        Vec::new()
    }
}

/// A thread that takes part without samples.
pub trait HelperThread: Send {
    /// Takes part from `window.first` until `window.end`, or until told to stop. The same rule
    /// for waits holds as in [`ProbeThread::run`].
    ///
    /// # Errors
    /// The error that ended it early.
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()>;
}

/// When a thread measures. Instants are CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// The first release.
    pub first: u64,
    /// No release happens at or after this instant.
    pub end: u64,
    /// End after this many samples.
    pub samples: u64,
    /// The release that is moved, counted from `first`, and the last one, if there is one; only
    /// for the single thread of a probe that can move them.
    pub aim: Aim,
}

/// The sample above the break value that ended a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// The thread that measured it; `None` for one that the engine did not start.
    pub thread: Option<u32>,
    /// The sample, ns.
    pub latency_ns: i64,
    /// When it was taken, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
}

/// Tells the threads of a cell to end.
#[derive(Debug, std::default::Default)]
pub struct Stop {
    stop: AtomicBool,
    broken: OnceLock<Broken>,
    /// The trace that a break stops.
    trace: Option<Trace>,
    /// Start of the measurement, ns of CLOCK_MONOTONIC.
    begins: AtomicU64,
}

/// What the name of a thread that measures begins with; its number follows.
const PROBE_PREFIX: &str = "probe-";

/// The name of the thread that measures with this number.
#[must_use]
pub fn thread_name(number: u32) -> String {
    format!("{PROBE_PREFIX}{number}")
}

fn own_number() -> Option<u32> {
    std::thread::current().name()?.strip_prefix(PROBE_PREFIX)?.parse().ok()
}

impl Stop {
    /// Stops this trace if a sample exceeds the break value.
    #[must_use]
    pub fn with_trace(trace: Option<Trace>) -> Self {
        Self { trace, ..Self::default() }
    }

    /// The trace that a break has stopped or may stop.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Whether the cell is told to end.
    #[inline(always)]
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether a thread whose wait was interrupted must end, because it was told to or because
    /// its window is over. Reads the clock.
    #[must_use]
    pub fn is_over(&self, window: &Window) -> bool {
        self.is_set() || punctual_sys::clock::monotonic_ns() >= window.end
    }

    /// Ends the cell.
    pub fn set(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Tells when the measurement begins, ns of CLOCK_MONOTONIC: what exceeds the break value
    /// before that ends nothing.
    pub fn begin_at(&self, instant: u64) {
        self.begins.store(instant, Ordering::Relaxed);
    }

    /// Ends the cell because a sample of `latency_ns` that began at `from_ns` (its release,
    /// CLOCK_MONOTONIC) exceeded the break value, and marks and stops the trace, if there is
    /// one. One that began in the warm-up ends nothing: look at [`Stop::is_set`].
    #[cold]
    #[inline(never)]
    pub fn set_broken(&self, from_ns: u64, latency_ns: i64) {
        if from_ns < self.begins.load(Ordering::Relaxed) {
            return;
        }
        let broken = Broken {
            thread: own_number(),
            latency_ns,
            at_ns: from_ns.saturating_add_signed(latency_ns),
        };
        // The first one is what is looked for.
        if self.broken.set(broken).is_ok()
            && let Some(trace) = &self.trace
        {
            let number = broken.thread.unwrap_or_default();
            trace.stop(format_args!(
                "punctual: thread {number}: latency {latency_ns} ns is above the break value"
            ));
        }
        self.set();
    }

    /// The sample that exceeded the break value.
    #[must_use]
    pub fn broken(&self) -> Option<Broken> {
        self.broken.get().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_that_began_in_the_warm_up_breaks_nothing_off() {
        let stop = Stop::default();
        stop.begin_at(1_000);
        // Its thread came late to it, in the measurement.
        stop.set_broken(999, 500);
        assert!(!stop.is_set() && stop.broken().is_none());
        stop.set_broken(1_000, 500);
        stop.set_broken(1_200, 900);
        let first = Broken { thread: None, latency_ns: 500, at_ns: 1_500 };
        assert!(stop.is_set() && stop.broken() == Some(first));
    }

    #[test]
    fn a_thread_that_measures_knows_its_number() {
        let named = std::thread::Builder::new().name(thread_name(17)).spawn(own_number).unwrap();
        assert_eq!(named.join().unwrap(), Some(17));
    }
}
