//! The threads of a cell: started, gathered at the gate, joined.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use punctual_sys::sched::Policy;

use super::Environment;
use super::cell::Prepared;
use super::thread::{Gate, Order, SetupError, ThreadEnd, start};
use crate::probes::Stop;
use crate::recorder::{Limits, Shared};

/// The threads of a cell.
pub(super) struct Team {
    pub(super) gate: Arc<Gate>,
    pub(super) stop: Arc<Stop>,
    pub(super) handles: Vec<JoinHandle<Option<ThreadEnd>>>,
    pub(super) shared: Vec<Arc<Shared>>,
}

impl Team {
    /// Starts all threads and waits until they are prepared. Where real-time scheduling
    /// was not asked for but left to the default, and is refused, the threads run as
    /// SCHED_OTHER and the run is labelled.
    pub(super) fn start(
        environment: &mut Environment<'_>,
        prepared: &Prepared,
        limits: Limits,
    ) -> Result<Self, String> {
        let asked = (prepared.threads.policy, prepared.threads.priority);
        let refused = &environment.privileges.real_time;
        let effective = match refused {
            Some(reason) if asked.0.is_real_time() && prepared.threads.explicit => {
                return Err(format!(
                    "policy {} was asked for and cannot be had: {reason}",
                    asked.0.name()
                ));
            }
            Some(_) if asked.0.is_real_time() => (Policy::Other, 0),
            _ => asked,
        };
        Self::try_start(environment, prepared, limits, effective)
    }

    fn try_start(
        environment: &Environment<'_>,
        prepared: &Prepared,
        limits: Limits,
        (policy, priority): (Policy, u32),
    ) -> Result<Self, String> {
        let gate = Arc::new(Gate::default());
        let stop = Arc::new(Stop::default());
        let (sender, ready) = channel();
        let mut handles = Vec::new();
        let mut failed = None;
        for plan in &prepared.threads.threads {
            let order = Order {
                plan: plan.clone(),
                policy,
                priority,
                probe: (prepared.factory)(plan.number),
                limits,
                gate: Arc::clone(&gate),
                stop: Arc::clone(&stop),
                nudge: environment.signals.nudge(),
                ready: sender.clone(),
            };
            match start(order) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    failed = Some(format!("thread {} cannot be started: {error}", plan.number));
                    break;
                }
            }
        }
        drop(sender);
        let shared = gather(&ready, handles.len());
        match (failed, shared) {
            (None, Ok(shared)) => Ok(Self { gate, stop, handles, shared }),
            (failed, shared) => {
                gate.open(None);
                handles.into_iter().for_each(|handle| drop(handle.join()));
                Err(failed.or(shared.err()).unwrap_or_default())
            }
        }
    }

    pub(super) fn ended(&self) -> bool {
        self.handles.iter().all(JoinHandle::is_finished)
    }

    pub(super) fn join(self) -> Vec<Option<ThreadEnd>> {
        self.handles.into_iter().map(|handle| handle.join().ok().flatten()).collect()
    }
}

type Ready = (u32, Result<Arc<Shared>, SetupError>);

fn gather(ready: &Receiver<Ready>, count: usize) -> Result<Vec<Arc<Shared>>, String> {
    let mut shared = Vec::with_capacity(count);
    for (number, result) in ready.iter().take(count) {
        match result {
            Ok(rings) => shared.push((number, rings)),
            Err(error) => return Err(explain(number, &error)),
        }
    }
    if shared.len() < count {
        return Err("a thread ended while it was prepared".to_owned());
    }
    shared.sort_by_key(|(number, _)| *number);
    Ok(shared.into_iter().map(|(_, rings)| rings).collect())
}

fn explain(number: u32, error: &SetupError) -> String {
    match error {
        SetupError::Scheduling(error) => {
            format!("thread {number}: its policy and priority cannot be had: {error}")
        }
        SetupError::Affinity(cpus, error) => format!(
            "thread {number}: it cannot be bound to CPU {cpus}: {error} (offline, or outside the cpuset?)"
        ),
        SetupError::Probe(error) => format!("thread {number}: {error}"),
    }
}
