//! What a load sees while it runs: its parameters, its counters, its workers.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use punctual_sys::error;
use punctual_sys::process::{self, Exit, Pid};
use punctual_sys::shared::SharedCounters;

use crate::registry::Values;

/// The parameters of a part as they took effect.
pub(super) type Params = BTreeMap<String, String>;

/// Line of the shared counters that belongs to the supervision, not to workers.
pub(super) const CONTROL_LINE: usize = 0;
/// Counter of the control line: the load works, though it may count nothing yet.
pub(super) const READY: usize = 0;
/// Counter of the control line: how often it ended and was started again.
pub(super) const RESTARTS: usize = 1;

/// Exit status of a worker that failed.
pub(super) const FAILED: i32 = 1;
/// Exit status of a worker for which trying again is of no use.
pub(super) const CANNOT_START: i32 = 2;

/// Why a load ended.
#[derive(Debug)]
pub enum LoadError {
    /// Something that it needs is not there: trying again is of no use.
    CannotStart(String),
    /// It failed while it worked, and may work when started again.
    Failed(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotStart(reason) | Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    /// A failure of a system call on something named.
    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::Failed(format!("{what}: {}", error::text(error)))
    }

    fn exit_status(&self) -> i32 {
        match self {
            Self::CannotStart(_) => CANNOT_START,
            Self::Failed(_) => FAILED,
        }
    }
}

/// The process that a load runs in.
#[derive(Debug)]
pub struct Worker<'a> {
    values: &'a Values,
    scratch: Option<&'a Path>,
    self_args: &'a [String],
    counters: &'a SharedCounters,
    line: usize,
    lines_given: Cell<usize>,
}

/// The counters of one worker.
#[derive(Debug, Clone, Copy)]
pub struct Tally<'a> {
    counters: &'a SharedCounters,
    line: usize,
}

impl Tally<'_> {
    /// Counts work done, by the counter's place in the registry entry.
    pub fn add(self, counter: usize, count: u64) {
        self.counters.add(self.line, counter, count);
    }
}

impl<'a> Worker<'a> {
    pub(super) fn leader(
        values: &'a Values,
        scratch: Option<&'a Path>,
        self_args: &'a [String],
        counters: &'a SharedCounters,
    ) -> Self {
        Self {
            values,
            scratch,
            self_args,
            counters,
            line: CONTROL_LINE + 1,
            lines_given: Cell::new(CONTROL_LINE + 1),
        }
    }

    /// Its parameters as they took effect.
    #[must_use]
    pub fn values(&self) -> &'a Values {
        self.values
    }

    /// The folder of this part.
    ///
    /// # Errors
    /// [`LoadError::CannotStart`] where the registry entry asks for none.
    pub fn scratch(&self) -> Result<&'a Path, LoadError> {
        let missing = || LoadError::CannotStart("no folder was made for it".to_owned());
        self.scratch.ok_or_else(missing)
    }

    /// The arguments behind which this program takes those of
    /// [`super::supervisor::supervisor_main`].
    pub(crate) fn self_args(&self) -> &'a [String] {
        self.self_args
    }

    /// Counts work done, by the counter's place in the registry entry.
    pub fn add(&self, counter: usize, count: u64) {
        self.tally().add(counter, count);
    }

    /// The worker's counters, for its threads.
    #[must_use]
    pub fn tally(&self) -> Tally<'a> {
        Tally { counters: self.counters, line: self.line }
    }

    /// Says that the load works, where its counters may be slow to show it.
    pub fn ready(&self) {
        self.counters.add(CONTROL_LINE, READY, 1);
    }

    /// Says that something which ends in the nature of things was started again.
    pub fn restarted(&self) {
        self.counters.add(CONTROL_LINE, RESTARTS, 1);
    }

    /// Starts a worker with counters of its own. It is killed when this one ends.
    ///
    /// # Errors
    /// [`LoadError::Failed`] where the process could not be made.
    pub fn fork(
        &self,
        body: impl FnOnce(&Worker<'_>) -> Result<(), LoadError>,
    ) -> Result<Pid, LoadError> {
        let workers = self.counters.lines() - 1;
        let given = self.lines_given.get();
        self.lines_given.set(given % workers + 1);
        let worker = Worker {
            line: self.lines_given.get(),
            lines_given: Cell::new(self.lines_given.get()),
            ..*self
        };
        process::fork_worker(|| finish(body(&worker)))
            .map_err(|error| LoadError::io("fork", &error))
    }

    /// Waits until all workers have ended.
    ///
    /// # Errors
    /// The first worker's end that was not a success.
    pub fn wait_all(&self) -> Result<(), LoadError> {
        loop {
            match process::wait_any() {
                Ok((_, Exit::Code(0))) => {}
                Ok((_, exit)) => return Err(worker_ended(exit)),
                // No children are left.
                Err(_) => return Ok(()),
            }
        }
    }

    /// Waits for workers that never end by themselves.
    ///
    /// # Errors
    /// The first worker's end.
    pub fn wait_endless(&self) -> Result<std::convert::Infallible, LoadError> {
        Err(match process::wait_any() {
            Ok((_, exit)) => worker_ended(exit),
            Err(error) => LoadError::io("wait", &error),
        })
    }
}

fn worker_ended(exit: Exit) -> LoadError {
    let reason = format!("a worker was lost: {exit}");
    match exit {
        Exit::Code(CANNOT_START) => LoadError::CannotStart(reason),
        _ => LoadError::Failed(reason),
    }
}

/// Reports a worker's end and gives its exit status.
pub(super) fn finish(result: Result<(), LoadError>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            report(&error.to_string());
            error.exit_status()
        }
    }
}

/// Writes one line to standard output: the supervisor's ear in a worker,
/// punctual's in the supervisor. A reader that is behind must not stop us, so
/// that what does not fit is lost.
pub(crate) fn report(text: &str) {
    let mut line: String = text.replace('\n', " ").chars().take(400).collect();
    line.push('\n');
    let mut out = io::stdout();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}
