//! The threads of a cell: started, gathered at the gate, woken, joined.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use punctual_sys::sched::{self, Policy};
use punctual_sys::signal::Nudge;
use punctual_sys::thread::wake;

use super::thread::{
    AtGate, Duty, Effective, Fate, Gate, Ready, SetupError, ThreadEnd, ThreadSetup, start,
};
use super::threads::{ThreadPlan, ThreadsPlan};
use crate::recorder::Shared;
use crate::registry::probe::Stop;

/// The threads of a cell: first those that measure, then their helpers.
pub(super) struct Team {
    pub(super) gate: Arc<Gate>,
    pub(super) stop: Arc<Stop>,
    handles: Vec<JoinHandle<Option<ThreadEnd>>>,
    /// What each thread started with, and its number.
    before: Vec<(i32, Effective)>,
    /// What else was seen of it, once a second.
    meanwhile: Vec<Option<Effective>>,
    warm: Arc<[AtomicBool]>,
}

/// Why nothing is measured.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NotStarted {
    /// Something is refused or missing; the cell is skipped.
    Refused(String),
    /// A signal came that ends the run.
    Interrupted,
}

impl From<String> for NotStarted {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

/// How long threads may prepare until signals are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The collector's side: the rings of each thread's series.
pub(super) type Rings = Vec<Vec<Arc<Shared>>>;

/// The policy and priority that threads take. If real-time scheduling is the default (not
/// asked for) and is refused, threads run as SCHED_OTHER and the run is labelled.
///
/// # Errors
/// It was asked for and is refused; the cell is skipped.
pub(super) fn scheduling(
    threads: &ThreadsPlan,
    refused: Option<&String>,
) -> Result<(Policy, u32), String> {
    let asked = (threads.policy, threads.priority);
    match refused {
        Some(reason) if asked.0.is_real_time() && threads.explicit => {
            Err(format!("policy {} was asked for and is refused: {reason}", asked.0.name()))
        }
        Some(_) if asked.0.is_real_time() => Ok((Policy::Other, 0)),
        _ => Ok(asked),
    }
}

impl Team {
    /// Starts all threads and waits until they are prepared, or until a signal has
    /// `interrupted` that, which a thousand threads take seconds for on a slow board.
    ///
    /// # Errors
    /// What a thread was refused, or the signal.
    pub(super) fn start(
        duties: Vec<(ThreadPlan, Duty)>,
        (policy, priority): (Policy, u32),
        stop: Arc<Stop>,
        nudge: &Nudge,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<(Self, Rings), NotStarted> {
        let gate = Arc::new(Gate::default());
        let warm: Arc<[AtomicBool]> = duties.iter().map(|_| AtomicBool::new(false)).collect();
        let (sender, ready) = channel();
        let mut handles = Vec::new();
        let mut failed = None;
        for (index, (plan, duty)) in duties.into_iter().enumerate() {
            let (number, below) = (plan.number, plan.below);
            if interrupted() {
                failed = Some(NotStarted::Interrupted);
                break;
            }
            let setup = ThreadSetup {
                index,
                plan,
                policy,
                priority: priority.saturating_sub(below),
                duty,
                gate: Arc::clone(&gate),
                stop: Arc::clone(&stop),
                warm: Arc::clone(&warm),
                nudge: nudge.clone(),
                ready: sender.clone(),
            };
            match start(setup) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    failed = Some(format!("thread {number} cannot be started: {error}").into());
                    break;
                }
            }
        }
        drop(sender);
        let prepared = match failed {
            None => gather(&ready, handles.len(), interrupted),
            Some(why) => Err(why),
        };
        match prepared {
            Ok(prepared) => {
                let (rings, before) =
                    prepared.into_iter().map(|one| (one.rings, (one.id, one.before))).unzip();
                let meanwhile = handles.iter().map(|_| None).collect();
                Ok((Self { gate, stop, handles, before, meanwhile, warm }, rings))
            }
            Err(why) => {
                gate.open(None);
                handles.into_iter().for_each(|handle| drop(handle.join()));
                Err(why)
            }
        }
    }

    pub(super) fn ended(&self) -> bool {
        self.handles.iter().all(JoinHandle::is_finished)
    }

    /// Interrupts the waits of threads that have not ended.
    pub(super) fn wake(&self) {
        self.handles.iter().filter(|handle| !handle.is_finished()).for_each(wake);
    }

    /// Interrupts the waits of threads that are still in the warm-up; returns whether there are
    /// any.
    pub(super) fn wake_late(&self) -> bool {
        let all = self.handles.iter().zip(self.warm.iter());
        let late =
            all.filter(|(handle, warm)| !handle.is_finished() && !warm.load(Ordering::Relaxed));
        late.map(|(handle, _)| wake(handle)).count() > 0
    }

    /// How each thread has ended. One that has not is left alone: nothing can end it but the
    /// end of the process.
    pub(super) fn join(self) -> Vec<Fate> {
        let all = self.handles.into_iter().zip(self.before).zip(self.meanwhile);
        all.map(|((handle, (_, before)), meanwhile)| {
            if !handle.is_finished() {
                return Fate::Stuck(before);
            }
            let end = handle.join().ok().flatten();
            end.map_or(Fate::Panicked, |end| Fate::Ended(ThreadEnd { meanwhile, ..end }))
        })
        .collect()
    }

    /// Looks whether the threads still have their policy and priority: one that gets them back
    /// does not know that it had lost them.
    pub(super) fn look(&mut self) {
        let all = self.handles.iter().zip(&self.before).zip(&mut self.meanwhile);
        for ((handle, (id, before)), seen) in all {
            if seen.is_some() || handle.is_finished() {
                continue;
            }
            if let Ok((policy, priority)) = sched::get_of(*id)
                && (policy, priority) != (before.policy, before.priority)
            {
                *seen = Some(Effective { policy, priority, ..before.clone() });
            }
        }
    }
}

fn gather(
    ready: &Receiver<Ready>,
    count: usize,
    interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<AtGate>, NotStarted> {
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        match ready.recv_timeout(LOOK_AGAIN) {
            Ok((index, Ok(prepared))) => all.push((index, prepared)),
            Ok((index, Err(error))) => return Err(explain(index, &error).into()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err("a thread ended while it was prepared".to_owned().into());
            }
        }
        if interrupted() {
            return Err(NotStarted::Interrupted);
        }
    }
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, prepared)| prepared).collect())
}

fn explain(number: usize, error: &SetupError) -> String {
    match error {
        SetupError::Scheduling(error) => {
            format!("thread {number}: its policy and priority are refused: {error}")
        }
        SetupError::Affinity(cpus, error) => format!(
            "thread {number}: it cannot be bound to CPU {cpus}: {error} (offline, or outside the cpuset?)"
        ),
        SetupError::Probe(error) => format!("thread {number}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::AtomicU32;

    use punctual_core::stats::Limits;
    use punctual_sys::signal::Signals;

    use super::super::thread::ThreadSeries;
    use super::*;
    use crate::recorder::Recorder;
    use crate::registry::probe::{ProbeThread, Window};

    /// Counts the threads that were started.
    struct Counting(Arc<AtomicU32>);

    impl ProbeThread for Counting {
        fn prepare(&mut self) -> io::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn run(&mut self, _: &Window, _: &mut [Recorder], _: &Stop) -> io::Result<()> {
            unreachable!("the gate opens for none")
        }
    }

    /// How many of 200 threads are started if a signal is there at the look of this number.
    fn started(signal_at: u32) -> u32 {
        let count = Arc::new(AtomicU32::new(0));
        let duties = (0..200).map(|number| {
            let plan = ThreadPlan { number, affinity: None, offset_ns: 0, below: 0 };
            let probe = Box::new(Counting(Arc::clone(&count)));
            let series = vec![(0, Limits::NONE)];
            let recorded = ThreadSeries { series, threads: 1, clock: None, held: Vec::new() };
            (plan, Duty::Probe(probe, recorded))
        });
        let mut looks = 0;
        let mut interrupted = || {
            looks += 1;
            looks >= signal_at
        };
        let nudge = Signals::block().unwrap().nudge();
        let stop = Arc::new(Stop::with_trace(None));
        let taken = (Policy::Other, 0);
        let team = Team::start(duties.collect(), taken, stop, &nudge, &mut interrupted);
        assert_eq!(team.err(), Some(NotStarted::Interrupted));
        count.load(Ordering::Relaxed)
    }

    #[test]
    fn no_thread_is_started_after_a_signal_and_none_is_waited_for() {
        assert_eq!(started(1), 0);
        assert_eq!(started(10), 9);
        // While the last ones prepare.
        assert_eq!(started(201), 200);
    }
}
