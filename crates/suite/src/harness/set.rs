//! All parts of a load: started together, sampled once a second, stopped together.

use std::fmt;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use punctual_core::schema::LoadWork;

use super::context::{LoadContext, PartSample};
use super::part::Part;
use super::procs::until;
use super::spec::LoadSpec;
use crate::procfs::meminfo_bytes;
use crate::registry::load::Machine;
use crate::registry::need::unmet;
use crate::registry::placement::Placing;

/// How long a part may take to show that it works.
const START_LIMIT: Duration = Duration::from_secs(10);

/// Why a load did not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadStartError {
    /// The part that did not start, or the whole load if none did.
    pub load: String,
    /// Why, in words.
    pub reason: String,
}

impl fmt::Display for LoadStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.load, self.reason)
    }
}

impl std::error::Error for LoadStartError {}

/// A running load. Every process of it is killed when this is dropped.
#[derive(Debug)]
pub struct LoadSet {
    parts: Vec<Part>,
    measured_since: Instant,
    sampled_at: Instant,
}

impl LoadSet {
    /// Starts every part and waits at most ten seconds until each has shown that it works.
    /// Call it on the main thread, which must outlive the load: with a PID namespace,
    /// supervisors are killed when the *thread* that started them ends.
    ///
    /// # Errors
    /// A part that cannot start. A composite fails only
    /// if none of its parts can start; otherwise [`LoadWork::trouble`] names those that did
    /// not.
    pub fn start(spec: &LoadSpec, context: &mut LoadContext<'_>) -> Result<Self, LoadStartError> {
        let place = Placing::beside(context.probe.clone())
            .map_err(|reason| LoadStartError { load: spec.canonical().to_owned(), reason })?;
        Self::start_at(spec, &place, context)
    }

    /// [`LoadSet::start`] on a machine that was looked at before.
    pub(super) fn start_at(
        spec: &LoadSpec,
        place: &Placing,
        context: &mut LoadContext<'_>,
    ) -> Result<Self, LoadStartError> {
        Self::can_start(spec)?;
        let mut set = Self::launch(spec, place, context);
        until(START_LIMIT, || set.is_settled());
        set.settle(spec)?;
        Ok(set)
    }

    /// Whether nothing is known that keeps a load from starting.
    ///
    /// # Errors
    /// The machine lacks what a part of it needs.
    pub(super) fn can_start(spec: &LoadSpec) -> Result<(), LoadStartError> {
        for part in spec.parts() {
            let needs = part.entry.needs.iter().copied().chain(part.values.needs());
            if let Some(reason) = unmet(needs).filter(|_| part.composite.is_none()) {
                return Err(LoadStartError { load: part.entry.name.to_owned(), reason });
            }
        }
        Ok(())
    }

    /// Starts every part and waits for none.
    pub(super) fn launch(spec: &LoadSpec, place: &Placing, context: &mut LoadContext<'_>) -> Self {
        let machine = Machine {
            cpus: 1,
            memory: available_memory(Path::new("/proc")),
            scratch_parent: context.scratch_parent.clone(),
        };
        let mut parts: Vec<Part> = Vec::new();
        for part in spec.parts() {
            parts.push(Part::start(part, (&machine, place), context));
        }
        let now = Instant::now();
        Self { parts, measured_since: now, sampled_at: now }
    }

    /// Whether the start of every part is decided: it works, or it has failed.
    pub(super) fn is_settled(&mut self) -> bool {
        self.parts.iter_mut().for_each(Part::poll);
        self.parts.iter().all(Part::is_settled)
    }

    /// Whether its parts have had their time to show that they work.
    pub(super) fn is_overdue(&self) -> bool {
        self.measured_since.elapsed() >= START_LIMIT
    }

    /// Gives up the parts that have not shown that they work.
    ///
    /// # Errors
    /// Those of [`LoadSet::start`].
    pub(super) fn settle(&mut self, spec: &LoadSpec) -> Result<(), LoadStartError> {
        for part in self.parts.iter_mut().filter(|part| !part.is_settled()) {
            part.give_up(format!("no sign of work within {START_LIMIT:?}"));
        }
        check(spec, &self.parts)?;
        self.sampled_at = Instant::now();
        self.measured_since = self.sampled_at;
        Ok(())
    }

    /// The parts and the names of their counters, before anything is counted.
    #[must_use]
    pub fn described(&self) -> Vec<LoadWork> {
        self.parts.iter().map(Part::described).collect()
    }

    /// Counts work from now on; call it when the measurement begins.
    pub fn mark_start(&mut self) {
        self.parts.iter_mut().for_each(Part::mark_start);
        self.measured_since = Instant::now();
        self.sampled_at = self.measured_since;
    }

    /// Kills every part without asking what it did.
    pub fn kill(&mut self) {
        self.parts.iter_mut().for_each(Part::kill);
    }

    /// Checks every part, which takes one read of a pipe and of shared counters each. Call it
    /// once a second: it also counts the seconds in which a part did nothing.
    pub fn sample(&mut self) -> Vec<PartSample> {
        let now = Instant::now();
        let elapsed = now.duration_since(self.sampled_at);
        self.sampled_at = now;
        let parts = self.parts.iter_mut();
        parts.map(|part| part.sample(elapsed)).collect()
    }

    /// For how long its work has been counted.
    pub(super) fn measured(&self) -> Duration {
        self.measured_since.elapsed()
    }

    /// Ends every process, removes the folders and returns the work done since
    /// [`LoadSet::mark_start`].
    #[must_use]
    pub fn stop(mut self) -> Vec<LoadWork> {
        // The last stretch of work, and what ended a part within it.
        self.sample();
        let measured = self.measured_since.elapsed();
        let parts = self.parts.iter_mut();
        parts.map(|part| part.stop(measured)).collect()
    }
}

fn check(spec: &LoadSpec, parts: &[Part]) -> Result<(), LoadStartError> {
    let failures: Vec<_> = parts.iter().filter_map(|part| Some((part, part.failure()?))).collect();
    let alone = failures.iter().find(|(part, _)| part.composite.is_none());
    if let Some((part, reason)) = alone {
        return Err(LoadStartError { load: part.name().to_owned(), reason: (*reason).to_owned() });
    }
    if !failures.is_empty() && failures.len() == parts.len() {
        let reasons = failures.iter();
        let reasons = reasons.map(|(part, reason)| format!("{}: {reason}", part.name()));
        return Err(LoadStartError {
            load: spec.canonical().to_owned(),
            reason: reasons.collect::<Vec<_>>().join("; "),
        });
    }
    Ok(())
}

/// `MemAvailable`, bytes; 256 MiB if /proc does not tell, to keep loads small.
pub(crate) fn available_memory(proc: &Path) -> u64 {
    let text = fs::read_to_string(proc.join("meminfo")).unwrap_or_default();
    meminfo_bytes(&text, "MemAvailable").unwrap_or(256 << 20)
}
