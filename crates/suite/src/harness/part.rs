//! One running part of a load, as punctual sees it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use punctual_core::schema::{LoadWork, WorkCounter};
use punctual_core::stats::{Pace, Pauses};
use punctual_sys::error;
use punctual_sys::shared::SharedCounters;

use super::containment::Held;
use super::context::{LoadContext, PartSample};
use super::memory_group::MemoryGroup;
use super::order::{PartOrder, has_worked};
use super::spec::PartSpec;
use super::status::Status;
use super::worker::{CONTROL_LINE, DEATHS, GONE_NS, Params, RESTARTS, nanoseconds};
use crate::knobs::remove_scratch;
use crate::registry::load::{Form, LoadEntry, Machine, Owns};
use crate::registry::placement::{Placing, recorded};

/// Lines of counters of a part. If it has more workers, they share lines.
const LINES: usize = 129;

/// One part: its supervisor, its counters and its known state.
#[derive(Debug)]
pub(super) struct Part {
    entry: &'static LoadEntry,
    pub(super) composite: Option<&'static str>,
    params: Params,
    running: Option<Running>,
    trouble: Option<String>,
    base: Base,
    last: Vec<u64>,
    idle: Duration,
    pauses: Pauses,
}

/// What had been counted when the measurement began.
#[derive(Debug, Default)]
struct Base {
    counts: Vec<u64>,
    restarts: u64,
    deaths: u64,
}

#[derive(Debug)]
struct Running {
    held: Held,
    counters: SharedCounters,
    scratch: Option<PathBuf>,
    memory_group: Option<MemoryGroup>,
    status: Status,
    alive: bool,
    /// When it was found to be given up or lost.
    gone_since: Option<Instant>,
    /// Its supervisor ended without saying why.
    lost: bool,
}

impl Part {
    /// Starts a part. If that fails, the part carries its trouble.
    pub(super) fn start(
        spec: &PartSpec,
        (machine, place): (&Machine, &Placing),
        context: &mut LoadContext<'_>,
    ) -> Self {
        let mut part = Self {
            entry: spec.entry,
            composite: spec.composite,
            params: Params::new(),
            running: None,
            trouble: None,
            base: Base { counts: vec![0; spec.entry.counters.len()], ..Base::default() },
            last: vec![0; spec.entry.counters.len()],
            idle: Duration::ZERO,
            pauses: pauses(spec.entry),
        };
        if let Err(reason) = part.launch(spec, (machine, place), context) {
            part.trouble = Some(reason);
        }
        part
    }

    fn launch(
        &mut self,
        spec: &PartSpec,
        (machine, place): (&Machine, &Placing),
        context: &mut LoadContext<'_>,
    ) -> Result<(), String> {
        let Form::Part(form) = self.entry.form else {
            return Ok(());
        };
        let mut values = spec.values.clone();
        let cpus = place.resolve(&mut values)?;
        (form.resolve)(&mut values, &Machine { cpus, ..machine.clone() })?;
        self.params = recorded(&values);
        let counters = SharedCounters::create(LINES).map_err(|error| error::text(&error))?;
        let scratch = match self.params.get("dir") {
            Some(parent) if form.owns == Owns::ScratchFolder => {
                Some(make_scratch(Path::new(parent), context)?)
            }
            _ => None,
        };
        let memory_group = match form.owns {
            Owns::MemoryGroup => Some(MemoryGroup::make(values.number("limit"), context.journal)?),
            _ => None,
        };
        let mut order = PartOrder {
            load: self.entry.name.to_owned(),
            params: self.params.clone(),
            scratch: scratch.clone(),
            memory_group: memory_group.clone(),
            inherited: place.inherited(),
            in_turn: place.in_turn(&values),
            self_args: context.self_args.clone(),
            containment: String::new(),
            cgroup: None,
        };
        match Held::start(&mut order, &counters, context) {
            Ok(held) => {
                self.running = Some(Running {
                    held,
                    counters,
                    scratch,
                    memory_group,
                    status: Status::default(),
                    alive: true,
                    gone_since: None,
                    lost: false,
                });
                Ok(())
            }
            Err(reason) => match removed(scratch.as_deref(), memory_group.as_ref()) {
                Ok(()) => Err(reason),
                Err(error) => Err(format!("{reason}; {error}")),
            },
        }
    }

    /// The name of its load.
    pub(super) fn name(&self) -> &'static str {
        self.entry.name
    }

    /// Whether its start is decided. `none` has nothing to show.
    pub(super) fn is_settled(&self) -> bool {
        match &self.running {
            Some(running) => !running.alive || has_worked(self.entry, &running.counters),
            None => true,
        }
    }

    /// Its name and counters, before anything is counted.
    pub(super) fn described(&self) -> LoadWork {
        description(self.entry, &self.params)
    }

    /// Why it does not run, if it does not.
    pub(super) fn failure(&self) -> Option<&str> {
        match (&self.running, self.entry.form) {
            (Some(running), _) if running.alive => None,
            (None, Form::Idle) => None,
            _ => Some(self.trouble.as_deref().unwrap_or("ended without saying why")),
        }
    }

    /// Gives up a part that runs but does no work.
    pub(super) fn give_up(&mut self, reason: String) {
        if let Some(running) = &mut self.running {
            running.alive = false;
            running.gone_since = Some(Instant::now());
            running.held.end();
            // The supervisor's own message says more.
            self.trouble.get_or_insert(reason);
        }
    }

    fn restarts(&self) -> u64 {
        let running = self.running.as_ref();
        running.map_or(0, |running| running.counters.get(CONTROL_LINE, RESTARTS))
    }

    fn deaths(&self) -> u64 {
        let count = |running: &Running| {
            running.counters.get(CONTROL_LINE, DEATHS).saturating_add(u64::from(running.lost))
        };
        self.running.as_ref().map_or(0, count)
    }

    /// The longest time for which it was gone in the `measured` time until now.
    fn gone(&self, measured: Duration) -> Duration {
        let Some(running) = &self.running else {
            return if matches!(self.entry.form, Form::Idle) { Duration::ZERO } else { measured };
        };
        let longest = Duration::from_nanos(running.counters.get(CONTROL_LINE, GONE_NS));
        let until_now = running.gone_since.map_or(Duration::ZERO, |since| since.elapsed());
        longest.max(until_now).min(measured)
    }

    fn counts(&self) -> Vec<u64> {
        let sum = |counter| {
            let running = self.running.as_ref();
            running.map_or(0, |one| one.counters.sum(CONTROL_LINE + 1, counter))
        };
        (0..self.entry.counters.len()).map(sum).collect()
    }

    /// Counts from now on.
    pub(super) fn mark_start(&mut self) {
        self.last = self.counts();
        self.base =
            Base { counts: self.last.clone(), restarts: self.restarts(), deaths: self.deaths() };
        self.idle = Duration::ZERO;
        self.pauses = pauses(self.entry);
        if let Some(running) = &self.running {
            running.counters.clear(CONTROL_LINE, GONE_NS);
        }
    }

    /// Checks the status pipe and the counters; `elapsed` is the time since the last call.
    pub(super) fn sample(&mut self, elapsed: Duration) -> PartSample {
        self.poll();
        let counts = self.counts();
        if !counts.is_empty() {
            if counts == self.last {
                self.idle += elapsed;
            }
            let from = self.entry.steady_from().unwrap_or(0);
            self.pauses.visit(nanoseconds(elapsed), counts.get(from..) != self.last.get(from..));
        }
        self.last.clone_from(&counts);
        let names = self.entry.counters.iter().copied();
        PartSample {
            load: self.entry.name,
            counters: names.zip(counts).collect(),
            restarts: self.restarts(),
            died: self.failure().map(str::to_owned),
        }
    }

    /// Reads what the supervisor reports and, if it gave up or died, ends what it left.
    pub(super) fn poll(&mut self) {
        let Some(running) = &mut self.running else {
            return;
        };
        if !running.alive {
            return;
        }
        let mut buffer = [0; 1024];
        let is_open = loop {
            match running.held.supervisor.read_status(&mut buffer) {
                Ok(0) => break false,
                Ok(length) => {
                    if let Some(said) = running.status.take_in(&buffer[..length]) {
                        self.trouble = Some(said);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error.kind() == io::ErrorKind::WouldBlock,
            }
        };
        // Its last line can be here before its end is.
        let gave_up = running.status.has_given_up();
        if is_open && !gave_up {
            return;
        }
        running.alive = false;
        running.gone_since = Some(Instant::now());
        running.lost = !gave_up;
        running.held.end();
        if !gave_up {
            let exit = running.held.supervisor.try_wait().ok().flatten();
            let how = exit.map_or("ended".to_owned(), |exit| exit.to_string());
            self.trouble = Some(format!("its supervisor was lost: {how}"));
        }
    }

    /// Ends every process, and asks for nothing.
    pub(super) fn kill(&mut self) {
        // What cannot be killed now ends with this process.
        let _ = self.end();
    }

    /// Ends every process and returns the work done in `measured`, as of the last sample.
    pub(super) fn stop(&mut self, measured: Duration) -> LoadWork {
        let counts = self.counts();
        let restarts = self.restarts().saturating_sub(self.base.restarts);
        let deaths = self.deaths().saturating_sub(self.base.deaths);
        let gone = self.gone(measured);
        let containment = self
            .running
            .as_ref()
            .map_or("none".to_owned(), |running| running.held.containment.name().to_owned());
        if let Err(reason) = self.end() {
            self.trouble.get_or_insert(reason);
        }
        let seconds = measured.as_secs_f64();
        let work = |((name, now), base): ((&&str, u64), &u64)| {
            let total = now.saturating_sub(*base);
            #[allow(clippy::cast_precision_loss, reason = "a rate for people")]
            let per_second = if seconds > 0.0 { total as f64 / seconds } else { 0.0 };
            WorkCounter { name: (*name).to_owned(), total, per_second }
        };
        let counters = self.entry.counters.iter().zip(counts).zip(&self.base.counts);
        LoadWork {
            load: self.entry.name.to_owned(),
            phase: None,
            params: std::mem::take(&mut self.params),
            counters: counters.map(work).collect(),
            idle_seconds: (self.idle + Duration::from_millis(500)).as_secs(),
            restarts,
            deaths,
            gone_ns: nanoseconds(gone),
            idle_ns: self.pauses.idle_ns(),
            unit_ns: self.pauses.unit_ns(),
            containment,
            trouble: self.trouble.take(),
        }
    }

    /// Ends every process and removes what was made for it.
    fn end(&mut self) -> Result<(), String> {
        let Some(mut running) = self.running.take() else {
            return Ok(());
        };
        let all_dead = running.held.end();
        removed(running.scratch.as_deref(), running.memory_group.as_ref())?;
        if !all_dead {
            return Err("some of its processes could not be killed".to_owned());
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A part and its counters, before anything is counted.
pub(super) fn description(entry: &LoadEntry, params: &Params) -> LoadWork {
    let counter = |name: &&str| WorkCounter { name: (*name).to_owned(), ..WorkCounter::default() };
    LoadWork {
        load: entry.name.to_owned(),
        params: params.clone(),
        counters: entry.counters.iter().map(counter).collect(),
        ..LoadWork::default()
    }
}

fn pauses(entry: &LoadEntry) -> Pauses {
    Pauses::new(if entry.steady_from().is_some() { Pace::Steady } else { Pace::Units })
}

fn removed(scratch: Option<&Path>, group: Option<&MemoryGroup>) -> Result<(), String> {
    let group = group.map_or(Ok(()), MemoryGroup::remove);
    scratch.map_or(Ok(()), remove_scratch)?;
    group
}

fn make_scratch(parent: &Path, context: &mut LoadContext<'_>) -> Result<PathBuf, String> {
    let made = context.journal.scratch_dir(parent);
    made.map_err(|error| format!("{}: {}", parent.display(), error::text(&error)))
}
