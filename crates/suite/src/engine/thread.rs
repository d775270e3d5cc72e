//! One probe thread, from preparation to the final read-back of its scheduling.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use punctual_core::aim::Aim;
use punctual_core::schema::{self, Condition, Placement};
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::sched::{self, Policy};
use punctual_sys::signal::Nudge;
use punctual_sys::{memory, thread};

use super::threads::ThreadPlan;
use crate::recorder::phases::PhaseClock;
use crate::recorder::{Recorder, Recording, Shared};
use crate::registry::probe::{HelperThread, ProbeThread, Stop, Window, thread_name};
use punctual_core::stats::Limits;

/// Stack of a probe thread. Kept small because locking memory faults all of it in.
pub const STACK_BYTES: usize = 128 * 1024;

/// When the threads of a cell start. Instants are CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy)]
pub struct Go {
    /// Start of the warm-up.
    pub warmup: u64,
    /// End of the warm-up; equal to `warmup` without one.
    pub warmup_end: u64,
    /// Start of the measurement.
    pub epoch: u64,
    /// End of the measurement.
    pub end: u64,
    /// Samples after which a thread ends.
    pub samples: u64,
    /// The release of the measurement that is moved, and the last one.
    pub aim: Aim,
}

/// Holds the threads back until all are prepared.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<Option<Option<Go>>>,
    opened: Condvar,
}

impl Gate {
    /// Releases the threads; with `None` they end without measuring.
    pub fn open(&self, go: Option<Go>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(go);
        self.opened.notify_all();
    }

    fn wait(&self) -> Option<Go> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self
            .opened
            .wait_while(state, |state| state.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        (*state).flatten()
    }
}

/// Scheduling policy, priority and affinity as the kernel reports them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// Policy.
    pub policy: Policy,
    /// Real-time priority.
    pub priority: u32,
    /// CPUs that the thread may run on.
    pub affinity: CpuSet,
    /// Timer slack, ns.
    pub timer_slack_ns: Option<u64>,
}

impl Effective {
    /// Reads them for the calling thread.
    ///
    /// # Errors
    /// The errno of the system call that failed.
    pub fn read() -> io::Result<Self> {
        let (policy, priority) = sched::get()?;
        Ok(Self {
            policy,
            priority,
            affinity: affinity::get()?,
            timer_slack_ns: sched::timer_slack(),
        })
    }

    /// Reads them for a thread by its kernel ID, without the timer slack, which is not told of others.
    ///
    /// # Errors
    /// The errno of the system call that failed, such as ESRCH.
    pub fn read_of(thread: i32) -> io::Result<Self> {
        let (policy, priority) = sched::get_of(thread)?;
        let affinity = affinity::get_of(thread)?;
        Ok(Self { policy, priority, affinity, timer_slack_ns: None })
    }

    /// In the form of the record.
    #[must_use]
    pub fn placement(&self) -> Placement {
        let mut cpus = self.affinity.iter();
        Placement {
            cpu: cpus.next().filter(|_| cpus.next().is_none()),
            affinity: self.affinity.to_string(),
            policy: recorded(self.policy),
            priority: self.priority,
            changed: None,
            timer_slack_ns: self.timer_slack_ns.filter(|_| !self.policy.is_real_time()),
            page_faults: None,
        }
    }

    /// What differs in `later`, in words.
    #[must_use]
    pub fn change(&self, later: &Self) -> Option<String> {
        let mut changes = Vec::new();
        if (self.policy, self.priority) != (later.policy, later.priority) {
            changes.push(format!(
                "{} {} became {} {}",
                self.policy.name(),
                self.priority,
                later.policy.name(),
                later.priority
            ));
        }
        if self.affinity.to_string() != later.affinity.to_string() {
            changes.push(format!("CPUs {} became {}", self.affinity, later.affinity));
        }
        // Real-time threads have no slack.
        let real_time = self.policy.is_real_time() && later.policy.is_real_time();
        if let (Some(from), Some(to)) = (self.timer_slack_ns, later.timer_slack_ns)
            && from != to
            && !real_time
        {
            changes.push(format!("timer slack {from} ns became {to} ns"));
        }
        (!changes.is_empty()).then(|| changes.join("; "))
    }
}

/// A thread that is prepared.
#[derive(Debug)]
pub struct AtGate {
    /// The rings of its series.
    pub rings: Vec<Arc<Shared>>,
    /// Scheduling and affinity that it starts with.
    pub before: Effective,
    /// The kernel's number of it.
    pub id: i32,
}

/// The index of a thread and how its preparation ended.
pub type Ready = (usize, Result<AtGate, SetupError>);

/// How a thread is set up.
pub struct ThreadSetup {
    /// Its index within the cell.
    pub index: usize,
    /// Where and when it runs.
    pub plan: ThreadPlan,
    /// Scheduling policy to switch to.
    pub policy: Policy,
    /// Real-time priority to switch to.
    pub priority: u32,
    /// What it does.
    pub duty: Duty,
    /// Holds it back until all are prepared.
    pub gate: Arc<Gate>,
    /// Tells it to end.
    pub stop: Arc<Stop>,
    /// Counts the thread once its warm-up is over.
    pub warm: Arc<[AtomicBool]>,
    /// Tells the main thread that it has ended.
    pub nudge: Nudge,
    /// Receives the result of the preparation.
    pub ready: Sender<Ready>,
}

/// What a thread does.
pub enum Duty {
    /// Measures, with one recorder for each of these series.
    Probe(Box<dyn ProbeThread>, ThreadSeries),
    /// Takes part without samples.
    Helper(Box<dyn HelperThread>),
}

/// What a thread records.
pub struct ThreadSeries {
    /// Number and limits of its series.
    pub series: Vec<(u32, Limits)>,
    /// How many threads measure.
    pub threads: usize,
    /// The phases of the load by which the primary series is counted too, if it changes.
    pub clock: Option<Arc<PhaseClock>>,
    /// Numbers of the series whose long samples are held, since a stop may have caused them.
    pub held: Vec<u32>,
}

impl Duty {
    fn prepare(&mut self) -> io::Result<()> {
        match self {
            Self::Probe(probe, ..) => probe.prepare(),
            Self::Helper(_) => Ok(()),
        }
    }

    /// Called in the thread that writes them, so their pages come from that CPU's node.
    fn recorders(&self) -> Vec<Recorder> {
        match self {
            Self::Probe(_, ThreadSeries { series, threads, clock, held }) => series
                .iter()
                .map(|(of, limits)| {
                    let recorder = Recorder::of_series(*of, *threads, *limits, clock.as_ref());
                    if held.contains(of) { recorder.holding() } else { recorder }
                })
                .collect(),
            Self::Helper(_) => Vec::new(),
        }
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        match self {
            Self::Probe(probe, ..) => probe.run(window, tracks, stop),
            Self::Helper(helper) => helper.run(window, stop),
        }
    }

    /// Whether it records the primary series, which is its first one then.
    fn has_primary(&self) -> bool {
        let is_primary = |(number, _): &(u32, Limits)| *number == 0;
        matches!(self, Self::Probe(_, of) if of.series.first().is_some_and(is_primary))
    }

    fn notes(&self) -> Vec<Condition> {
        match self {
            Self::Probe(probe, ..) => probe.notes(),
            Self::Helper(_) => Vec::new(),
        }
    }
}

/// What a thread was refused.
#[derive(Debug)]
pub enum SetupError {
    /// Real-time policy or priority.
    Scheduling(io::Error),
    /// Its CPU.
    Affinity(CpuSet, io::Error),
    /// Something that the probe opens or creates.
    Probe(io::Error),
}

/// What a thread returns.
#[derive(Debug)]
pub struct ThreadEnd {
    /// What it recorded, by series.
    pub recordings: Vec<Recording>,
    /// Scheduling and affinity when it started to measure.
    pub before: Effective,
    /// The same at the end.
    pub after: Option<Effective>,
    /// What else the main thread saw meanwhile.
    pub meanwhile: Option<Effective>,
    /// Largest latency of the warm-up, ns.
    pub warmup_max_ns: Option<i64>,
    /// Page faults while it measured.
    pub page_faults: u64,
    /// The error that ended it early.
    pub error: Option<io::Error>,
    /// Notes from the probe, taken at the end.
    pub notes: Vec<Condition>,
}

/// How a thread was found at the end of its cell.
#[derive(Debug)]
pub enum Fate {
    /// It ended by itself.
    Ended(ThreadEnd),
    /// It panicked at its very end.
    Panicked,
    /// It did not end although it was told to; what it started with.
    Stuck(Effective),
}

impl Fate {
    /// What it returned, if it did.
    #[must_use]
    pub fn end(&self) -> Option<&ThreadEnd> {
        match self {
            Self::Ended(end) => Some(end),
            Self::Panicked | Self::Stuck(_) => None,
        }
    }

    /// Its scheduling, CPUs and page faults, as far as they are known.
    #[must_use]
    pub fn placement(&self) -> Placement {
        match self {
            Self::Ended(end) => end.placement(),
            Self::Panicked => Placement::default(),
            Self::Stuck(before) => before.placement(),
        }
    }
}

impl ThreadEnd {
    /// What had changed by the end or, if nothing had, in between; in words.
    #[must_use]
    pub fn change(&self) -> Option<String> {
        let by_end = self.after.as_ref().and_then(|after| self.before.change(after));
        let for_a_while = || {
            let change = self.before.change(self.meanwhile.as_ref()?)?;
            Some(format!("{change} for a while"))
        };
        by_end.or_else(for_a_while)
    }

    fn placement(&self) -> Placement {
        Placement {
            changed: self.change(),
            page_faults: Some(self.page_faults),
            ..self.before.placement()
        }
    }
}

/// Starts a thread, which reports to `setup.ready` and waits at the gate.
///
/// # Errors
/// The thread cannot be created.
pub fn start(setup: ThreadSetup) -> io::Result<JoinHandle<Option<ThreadEnd>>> {
    let name = match &setup.duty {
        Duty::Probe(..) => thread_name(setup.plan.number),
        Duty::Helper(_) => format!("helper-{}", setup.plan.number),
    };
    Builder::new().name(name).stack_size(STACK_BYTES).spawn(move || {
        // Also if the probe panics: nobody may wait for a thread that is gone.
        let _nudge = NudgeAtEnd(setup.nudge.clone());
        run(setup)
    })
}

/// Wakes the main thread when it is dropped.
pub struct NudgeAtEnd(pub Nudge);

impl Drop for NudgeAtEnd {
    fn drop(&mut self) {
        self.0.nudge();
    }
}

fn run(mut setup: ThreadSetup) -> Option<ThreadEnd> {
    // Report a panic like any other error: the other threads wait at the gate for it.
    let prepared = catch_unwind(AssertUnwindSafe(|| prepare(&mut setup)))
        .unwrap_or_else(|panic| Err(SetupError::Probe(panicked(&*panic))));
    let (before, mut tracks) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            let _ = setup.ready.send((setup.index, Err(error)));
            return None;
        }
    };
    let rings = tracks.iter().map(Recorder::shared).collect();
    let _ = setup
        .ready
        .send((setup.index, Ok(AtGate { rings, before: before.clone(), id: thread::id() })));
    let go = setup.gate.wait()?;

    let offset = setup.plan.offset_ns;
    let (duty, stop) = (&mut setup.duty, &*setup.stop);
    let mut error = None;
    if go.warmup_end > go.warmup {
        let (first, end) = (go.warmup + offset, go.warmup_end);
        let window = Window { first, end, samples: u64::MAX, aim: Aim::NONE };
        error = run_window(duty, &window, &mut tracks, stop).err();
    }
    let mut warmup_max_ns = None;
    for (place, track) in tracks.iter_mut().enumerate() {
        let of_track = track.begin(go.epoch);
        if place == 0 && duty.has_primary() {
            warmup_max_ns = of_track;
        }
    }
    setup.warm[setup.index].store(true, Ordering::Relaxed);
    let faults = memory::thread_faults();
    if error.is_none() {
        let Go { end, samples, aim, .. } = go;
        let window = Window { first: go.epoch + offset, end, samples, aim };
        error = run_window(duty, &window, &mut tracks, stop).err();
    }
    if error.is_some() {
        // The other threads may be waiting for this one.
        stop.set();
    }
    let later = memory::thread_faults();
    Some(ThreadEnd {
        before,
        after: Effective::read().ok(),
        meanwhile: None,
        warmup_max_ns,
        page_faults: (later.0 - faults.0) + (later.1 - faults.1),
        error,
        notes: duty.notes(),
        recordings: tracks.into_iter().map(Recorder::finish).collect(),
    })
}

/// Runs one window. What was recorded before a panic is kept.
fn run_window(
    duty: &mut Duty,
    window: &Window,
    tracks: &mut [Recorder],
    stop: &Stop,
) -> io::Result<()> {
    catch_unwind(AssertUnwindSafe(|| duty.run(window, tracks, stop)))
        .unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(panic: &(dyn Any + Send)) -> io::Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    io::Error::other(format!("it panicked: {}", text.unwrap_or("without a word")))
}

fn prepare(setup: &mut ThreadSetup) -> Result<(Effective, Vec<Recorder>), SetupError> {
    thread::accept_wakes();
    if let Some(cpus) = &setup.plan.affinity {
        let refused = |error| SetupError::Affinity(cpus.clone(), error);
        affinity::set(cpus).map_err(refused)?;
        // The kernel silently drops CPUs that went offline after the plan was read.
        if affinity::get().map_err(refused)?.to_string() != cpus.to_string() {
            return Err(refused(io::Error::from(io::ErrorKind::NotFound)));
        }
    }
    if !setup.policy.is_real_time() {
        sched::set_timer_slack(1).map_err(SetupError::Scheduling)?;
    }
    // The probe asks for what it reserves.
    if setup.policy != Policy::Deadline {
        sched::set(setup.policy, setup.priority).map_err(SetupError::Scheduling)?;
    }
    memory::fault_in_stack();
    setup.duty.prepare().map_err(SetupError::Probe)?;
    let effective = Effective::read().map_err(SetupError::Probe)?;
    Ok((effective, setup.duty.recorders()))
}

fn recorded(policy: Policy) -> schema::Policy {
    match policy.name() {
        "fifo" => schema::Policy::Fifo,
        "rr" => schema::Policy::Rr,
        "deadline" => schema::Policy::Deadline,
        "other" => schema::Policy::Other,
        "batch" => schema::Policy::Batch,
        "idle" => schema::Policy::Idle,
        _ => schema::Policy::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_while_it_measured_is_told() {
        let before = Effective {
            policy: Policy::Other,
            priority: 0,
            affinity: CpuSet::of(1),
            timer_slack_ns: Some(1),
        };
        assert_eq!(before.change(&before.clone()), None);
        let slack = Effective { timer_slack_ns: Some(50_000), ..before.clone() };
        assert_eq!(before.change(&slack).as_deref(), Some("timer slack 1 ns became 50000 ns"));
        let fifo = Effective { policy: Policy::Fifo, priority: 5, ..before.clone() };
        let after = Effective { timer_slack_ns: Some(9), ..fifo.clone() };
        assert_eq!(fifo.change(&after), None, "a real-time thread has none");
        assert_eq!(before.change(&fifo).as_deref(), Some("other 0 became fifo 5"));
    }
}
