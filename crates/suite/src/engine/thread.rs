//! One probe thread: prepared, at the gate, warm, measured, read back.

use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use punctual_core::schema::Condition;
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::sched::{self, Policy};
use punctual_sys::signal::Nudge;
use punctual_sys::{memory, thread};

use super::threads::ThreadPlan;
use crate::probes::{ProbeThread, Stop, Window};
use crate::recorder::{Limits, Recorder, Recording, Shared};

/// Stack of a probe thread: locking memory faults it in whole.
pub const STACK_BYTES: usize = 128 * 1024;

/// When the threads of a cell start; instants of CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy)]
pub struct Go {
    /// Start of the warm-up.
    pub warmup: u64,
    /// End of the warm-up; equal to `warmup` without one.
    pub warmup_end: u64,
    /// Start of the measurement.
    pub epoch: u64,
    /// Its end.
    pub end: u64,
    /// Samples after which a thread ends.
    pub samples: u64,
}

/// Holds the threads until all are prepared.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<Option<Option<Go>>>,
    opened: Condvar,
}

impl Gate {
    /// Lets the threads go, or go home with `None`.
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

/// Policy, priority and affinity as the kernel has them.
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
    fn read() -> io::Result<Self> {
        let (policy, priority) = sched::get()?;
        Ok(Self {
            policy,
            priority,
            affinity: affinity::get()?,
            timer_slack_ns: sched::timer_slack(),
        })
    }

    /// What is different in `later`, in words.
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
        (!changes.is_empty()).then(|| changes.join("; "))
    }
}

/// What a thread is told.
pub struct Order {
    /// Its place in the plan.
    pub plan: ThreadPlan,
    /// Policy to take.
    pub policy: Policy,
    /// Priority to take.
    pub priority: u32,
    /// Its part of the probe.
    pub probe: Box<dyn ProbeThread>,
    /// What its recorder is told.
    pub limits: Limits,
    /// Holds it until all are prepared.
    pub gate: Arc<Gate>,
    /// Tells it to end.
    pub stop: Arc<Stop>,
    /// Tells the collector that it has ended.
    pub nudge: Nudge,
    /// Takes the result of the preparation.
    pub ready: Sender<(u32, Result<Arc<Shared>, SetupError>)>,
}

/// What a thread could not have.
#[derive(Debug)]
pub enum SetupError {
    /// Real-time policy or priority.
    Scheduling(io::Error),
    /// Its CPU.
    Affinity(CpuSet, io::Error),
    /// What the probe opens or makes.
    Probe(io::Error),
}

/// What a thread leaves.
#[derive(Debug)]
pub struct ThreadEnd {
    /// What it recorded.
    pub recording: Recording,
    /// Scheduling and affinity when it started to measure.
    pub before: Effective,
    /// The same at the end.
    pub after: Option<Effective>,
    /// Extreme of the warm-up, ns.
    pub warmup_max_ns: Option<i64>,
    /// Page faults while it measured.
    pub page_faults: u64,
    /// What ended it early.
    pub error: Option<io::Error>,
    /// What the probe says at the end.
    pub notes: Vec<Condition>,
}

/// Starts a probe thread; it reports to `order.ready` and waits at the gate.
///
/// # Errors
/// Where the thread cannot be made.
pub fn start(order: Order) -> io::Result<JoinHandle<Option<ThreadEnd>>> {
    Builder::new().name(format!("probe-{}", order.plan.number)).stack_size(STACK_BYTES).spawn(
        move || {
            // Also when the probe panics: nobody is to wait for a thread that has gone.
            let _nudge = NudgeAtEnd(order.nudge.clone());
            run(order)
        },
    )
}

struct NudgeAtEnd(Nudge);

impl Drop for NudgeAtEnd {
    fn drop(&mut self) {
        self.0.nudge();
    }
}

fn run(mut order: Order) -> Option<ThreadEnd> {
    let number = order.plan.number;
    let (before, mut recorder) = match prepare(&mut order) {
        Ok(before) => {
            // Made here, on the CPU that writes it: its pages come from that CPU's node.
            let recorder = Recorder::new(order.limits);
            let _ = order.ready.send((number, Ok(recorder.shared())));
            (before, recorder)
        }
        Err(error) => {
            let _ = order.ready.send((number, Err(error)));
            return None;
        }
    };
    let go = order.gate.wait()?;

    let offset = order.plan.offset_ns;
    let (probe, stop) = (&mut order.probe, &*order.stop);
    let mut error = None;
    if go.warmup_end > go.warmup {
        let window = Window { first: go.warmup + offset, end: go.warmup_end, samples: u64::MAX };
        error = probe.run(&window, &mut recorder, stop).err();
    }
    let warmup_max_ns = recorder.begin(go.epoch);
    let faults = memory::thread_faults();
    if error.is_none() {
        let window = Window { first: go.epoch + offset, end: go.end, samples: go.samples };
        error = probe.run(&window, &mut recorder, stop).err();
    }
    let later = memory::thread_faults();
    Some(ThreadEnd {
        before,
        after: Effective::read().ok(),
        warmup_max_ns,
        page_faults: (later.0 - faults.0) + (later.1 - faults.1),
        error,
        notes: order.probe.notes(),
        recording: recorder.finish(),
    })
}

fn prepare(order: &mut Order) -> Result<Effective, SetupError> {
    thread::accept_wakes();
    if let Some(cpus) = &order.plan.affinity {
        let refused = |error| SetupError::Affinity(cpus.clone(), error);
        affinity::set(cpus).map_err(refused)?;
        // The kernel drops CPUs silently that went offline since the plan was read.
        if affinity::get().map_err(refused)?.to_string() != cpus.to_string() {
            return Err(refused(io::Error::from(io::ErrorKind::NotFound)));
        }
    }
    if !order.policy.is_real_time() {
        sched::set_timer_slack(1).map_err(SetupError::Scheduling)?;
    }
    sched::set(order.policy, order.priority).map_err(SetupError::Scheduling)?;
    memory::fault_in_stack();
    order.probe.prepare().map_err(SetupError::Probe)?;
    Effective::read().map_err(SetupError::Probe)
}
