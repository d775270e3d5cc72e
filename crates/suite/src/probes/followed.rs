//! The threads of a cell of which the kernel's trace is to tell.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use punctual_sys::thread;

use crate::ring::Switches;

/// What to trace of threads with these PIDs: events, each with a filter.
type Filters = dyn Fn(&[i32]) -> Vec<(&'static str, String)> + Send + Sync;

/// The threads that are traced; each adds itself when it starts, and the first begins the trace.
pub(super) struct Followed {
    switches: Switches,
    filters: Box<Filters>,
    /// Numbers and PIDs.
    ids: Mutex<Vec<(u32, i32)>>,
}

impl Followed {
    pub(super) fn new(switches: Switches, filters: Box<Filters>) -> Arc<Self> {
        Arc::new(Self { switches, filters, ids: Mutex::default() })
    }

    /// Adds the calling thread, which measures with this number.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn add(&self, number: u32) -> io::Result<()> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        ids.push((number, thread::id()));
        let pids: Vec<_> = ids.iter().map(|(_, id)| *id).collect();
        for (event, filter) in (self.filters)(&pids) {
            self.switches.filter(event, &filter).map_err(io::Error::other)?;
        }
        self.switches.start().map_err(io::Error::other)
    }

    /// The numbers and PIDs of those that have started.
    pub(super) fn ids(&self) -> Vec<(u32, i32)> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A filter for those of which a field is one of these numbers.
pub(super) fn any(field: &str, numbers: &[i32]) -> String {
    let each: Vec<_> = numbers.iter().map(|number| format!("{field} == {number}")).collect();
    each.join(" || ")
}
