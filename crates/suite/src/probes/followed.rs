//! The threads of a cell of which the kernel's trace is to tell.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::ring::{Marks, Ring, Switches};

/// What to trace of threads with these PIDs: events, each with a filter.
type Filters = dyn Fn(&[i32]) -> Vec<(&'static str, String)> + Send + Sync;

/// A PID above all that the kernel gives (PID_MAX_LIMIT).
const NOBODY: i32 = i32::MAX;

/// A thread that is traced.
#[derive(Debug, Clone)]
pub(super) struct FollowedThread {
    pub(super) number: u32,
    /// By which number events name it, or why that is not known: in a PID namespace it is not the
    /// one that the thread itself is told.
    pub(super) id: Result<i32, String>,
}

/// The threads that are traced; each adds itself when it starts, and the first begins the trace.
pub(super) struct Followed {
    switches: Switches,
    marks: Marks,
    filters: Box<Filters>,
    threads: Mutex<Vec<FollowedThread>>,
}

impl Followed {
    pub(super) fn new(ring: &Ring, filters: Box<Filters>) -> Arc<Self> {
        let (switches, marks) = (ring.switches(), ring.marks());
        Arc::new(Self { switches, marks, filters, threads: Mutex::default() })
    }

    /// Adds the calling thread, which measures with this number.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn add(&self, number: u32) -> io::Result<()> {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.is_empty() {
            self.filter(&[NOBODY])?;
            self.switches.start().map_err(io::Error::other)?;
        }
        threads.push(FollowedThread { number, id: self.marks.own_id() });
        let known: Vec<_> = threads.iter().filter_map(|thread| thread.id.clone().ok()).collect();
        if known.is_empty() { Ok(()) } else { self.filter(&known) }
    }

    fn filter(&self, pids: &[i32]) -> io::Result<()> {
        for (event, filter) in (self.filters)(pids) {
            self.switches.filter(event, &filter).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Those that have started.
    pub(super) fn threads(&self) -> Vec<FollowedThread> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// That the trace does not tell of some of them, and why; `None` if it does of all.
    pub(super) fn unknown(&self) -> Option<String> {
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut why = threads.iter().filter_map(|thread| thread.id.as_ref().err());
        let first = why.next()?;
        Some(match why.count() {
            0 => first.clone(),
            more => format!("{first} (and {more} more of its threads)"),
        })
    }
}

/// A filter for those of which a field is one of these numbers.
pub(super) fn any(field: &str, numbers: &[i32]) -> String {
    let each: Vec<_> = numbers.iter().map(|number| format!("{field} == {number}")).collect();
    each.join(" || ")
}
