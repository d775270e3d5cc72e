//! What a running load sees: its parameters, counters and workers.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::error;
use punctual_sys::process::{self, Exit, Pid};
use punctual_sys::shared::SharedCounters;

use super::memory_group::MemoryGroup;
use crate::knobs::open_scratch;
use crate::registry::Values;

/// The parameters of a part as they took effect.
pub(super) type Params = BTreeMap<String, String>;

/// Line of the shared counters that belongs to the supervision, not to workers.
pub(super) const CONTROL_LINE: usize = 0;
/// Counter of the control line: the load works, even if it has counted nothing yet.
pub(super) const READY: usize = 0;
/// Counter of the control line: how often it ended and was restarted.
pub(super) const RESTARTS: usize = 1;

/// Counter of the control line: how often it died.
pub(super) const DEATHS: usize = 2;
/// Counter of the control line: the longest time for which it was gone, ns.
pub(super) const GONE_NS: usize = 3;

/// Exit status of a worker that failed.
pub(super) const FAILED: i32 = 1;
/// Exit status of a worker for which a restart is pointless.
pub(super) const CANNOT_START: i32 = 2;

/// Why a load ended.
#[derive(Debug)]
pub enum LoadError {
    /// Something that it needs is missing: a restart is pointless.
    CannotStart(String),
    /// It failed while working; a restart may help.
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
    /// A system call on `what` failed.
    pub(crate) fn io(what: impl fmt::Display, error: &io::Error) -> Self {
        Self::Failed(format!("{what}: {}", error::text(error)))
    }

    /// The same of a load that works in `folder`, which its paths do not name.
    pub(crate) fn within(self, folder: &Path) -> Self {
        let named = |reason| format!("{reason} (in {})", folder.display());
        match self {
            Self::CannotStart(reason) => Self::CannotStart(named(reason)),
            Self::Failed(reason) => Self::Failed(named(reason)),
        }
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
    memory_group: Option<&'a MemoryGroup>,
    self_args: &'a [String],
    counters: &'a SharedCounters,
    /// CPUs that workers are bound to, one after the other; none if they are not.
    in_turn: &'a [u32],
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
    /// Adds to a counter, by its index in the registry entry.
    pub fn add(self, counter: usize, count: u64) {
        self.counters.add(self.line, counter, count);
    }
}

impl<'a> Worker<'a> {
    pub(super) fn leader(
        values: &'a Values,
        (scratch, memory_group): (Option<&'a Path>, Option<&'a MemoryGroup>),
        self_args: &'a [String],
        counters: &'a SharedCounters,
    ) -> Self {
        Self {
            values,
            scratch,
            memory_group,
            self_args,
            counters,
            in_turn: &[],
            line: CONTROL_LINE + 1,
            lines_given: Cell::new(CONTROL_LINE + 1),
        }
    }

    /// Binds the workers that it forks to these CPUs, one after the other.
    pub(super) fn binding(self, in_turn: &'a [u32]) -> Self {
        Self { in_turn, ..self }
    }

    /// Its parameters as they took effect.
    #[must_use]
    pub fn values(&self) -> &'a Values {
        self.values
    }

    /// Makes the folder of this part the working directory of this process and of what it
    /// starts: paths in it are relative, so nobody who swaps it for another leads them there.
    /// Returns its path, for messages.
    ///
    /// # Errors
    /// [`LoadError::CannotStart`] if the registry entry asks for no folder, or it is no longer
    /// there.
    pub fn enter_scratch(&self) -> Result<&'a Path, LoadError> {
        let missing = || LoadError::CannotStart("no folder was made for it".to_owned());
        let path = self.scratch.ok_or_else(missing)?;
        let entered = open_scratch(path).and_then(|folder| folder.enter());
        entered.map(|()| path).map_err(|error| {
            LoadError::CannotStart(format!("{}: {}", path.display(), error::text(&error)))
        })
    }

    /// The control group of this part.
    ///
    /// # Errors
    /// [`LoadError::CannotStart`] if the registry entry asks for none.
    pub(crate) fn memory_group(&self) -> Result<&'a MemoryGroup, LoadError> {
        let missing = || LoadError::CannotStart("no control group was made for it".to_owned());
        self.memory_group.ok_or_else(missing)
    }

    /// The arguments that lead this program to [`super::supervisor::supervisor_main`].
    pub(crate) fn self_args(&self) -> &'a [String] {
        self.self_args
    }

    /// Adds to a counter, by its index in the registry entry.
    pub fn add(&self, counter: usize, count: u64) {
        self.tally().add(counter, count);
    }

    /// The worker's counters, for use by its threads.
    #[must_use]
    pub fn tally(&self) -> Tally<'a> {
        Tally { counters: self.counters, line: self.line }
    }

    /// Reports that the load works although its counters may be slow to show it.
    pub fn ready(&self) {
        self.counters.add(CONTROL_LINE, READY, 1);
    }

    /// Reports a restart of something that ends by design, and how long it was gone.
    pub fn restarted(&self, gone: Duration) {
        self.counters.add(CONTROL_LINE, RESTARTS, 1);
        self.counters.raise(CONTROL_LINE, GONE_NS, nanoseconds(gone));
    }

    /// Forks a worker with separate counters. It is killed when this process ends.
    ///
    /// # Errors
    /// [`LoadError::Failed`] if the process cannot be created.
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
        let cpu = self.in_turn.get(given % self.in_turn.len().max(1)).copied();
        let bound = || cpu.map_or(Ok(()), |cpu| affinity::set(&CpuSet::of(cpu)));
        process::fork_worker(|| {
            let bound = bound().map_err(|error| LoadError::io("sched_setaffinity", &error));
            finish(bound.and_then(|()| body(&worker)))
        })
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
    /// The end of the first worker.
    pub fn wait_endless(&self) -> Result<std::convert::Infallible, LoadError> {
        Err(match process::wait_any() {
            Ok((_, exit)) => worker_ended(exit),
            Err(error) => LoadError::io("wait", &error),
        })
    }
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn worker_ended(exit: Exit) -> LoadError {
    let reason = format!("a worker was lost: {exit}");
    match exit {
        Exit::Code(CANNOT_START) => LoadError::CannotStart(reason),
        _ => LoadError::Failed(reason),
    }
}

/// Reports how a worker ended and returns its exit status.
pub(super) fn finish(result: Result<(), LoadError>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            report(&error.to_string());
            error.exit_status()
        }
    }
}

/// Reports why a worker failed and ends its process, from whichever thread: the others never end.
pub(crate) fn end_process(error: LoadError) -> ! {
    std::process::exit(finish(Err(error)))
}

/// Writes one line to standard output, which the supervisor reads in a worker and punctual
/// reads in the supervisor. A slow reader must not block us, so what does not fit is dropped.
pub(crate) fn report(text: &str) {
    let mut line: String = text.replace('\n', " ").chars().take(400).collect();
    line.push('\n');
    let mut out = io::stdout();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}
