//! The body of a latency cell: a session, its threads, and the collector of what they record.

use std::io;
use std::sync::Arc;

use punctual_core::aim::Aim;
use punctual_core::dither::Dither;
use punctual_core::format::Record;
use punctual_core::interval::{Actor, Interval};
use punctual_core::layout;
use punctual_core::plan::Plan;
use punctual_core::run::CellData;
use punctual_core::schema::{Cell, Unit};
use punctual_core::stats::Limits;
use punctual_core::units::SECOND_NS;
use punctual_sys::affinity::CpuSet;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::signal::Nudge;

use super::api::ThreadProgress;
use super::body::{Body, Closing, Times};
use super::by_phase::PhaseLog;
use super::collector::{Collector, Track};
use super::outcome::{self, Left};
use super::prepared::ProbeCell;
use super::run_dir::CellFiles;
use super::stops::Witness;
use super::team::{NotStarted, Rings, Team, scheduling};
use super::thread::{Duty, Go, ThreadSeries};
use super::threads::ThreadPlan;
use crate::facts::FactsRoot;
use crate::harness::phased::PhasedSpec;
use crate::harness::phases::Began;
use crate::knobs::{Journal, Trace};
use crate::recorder::Recorder;
use crate::recorder::phases::PhaseClock;
use crate::registry::probe::{By, Companion, Drained, Intervals, Session, Stage, State, Stop};

/// The most bytes of the cell's blocks that are read for a thread that does not end: 13 hours of
/// one thread with many late samples.
const MOST_READ_BACK: u64 = 64 << 20;

/// A latency cell that is being measured.
pub(super) struct LatencyBody<'a> {
    probe: &'a ProbeCell,
    session: Box<dyn Session>,
    helpers: Vec<String>,
    team: Team,
    /// The policy and priority that its threads took, such as `fifo 80`.
    scheduling: String,
    collector: Collector,
    /// Recorders of the series that the session records, by thread.
    tracks: Vec<Vec<Recorder>>,
    intervals: Intervals,
    actors_named: usize,
    go: Go,
    /// When which phase of the load is due, if it changes.
    clock: Option<Arc<PhaseClock>>,
    times: Times,
    begun: bool,
    /// Limits of the primary series.
    limits: Limits,
    /// Why the trace cannot be stopped at a break.
    trace_refused: Option<io::Error>,
    /// Largest sample of the warm-up in a primary series that the session records, ns.
    warmup_max_ns: Option<i64>,
}

/// Parameters that a latency cell starts with.
pub(super) struct Start<'a> {
    pub(super) plan: &'a Plan,
    pub(super) duration_ns: u64,
    pub(super) samples: Option<u64>,
    pub(super) phase_ns: u64,
    pub(super) dither: Option<&'a Dither>,
    pub(super) aim: Aim,
    /// Limits of the primary series.
    pub(super) limits: Limits,
    /// Why real-time scheduling is refused, if it is.
    pub(super) refused: Option<&'a String>,
    pub(super) nudge: Nudge,
    pub(super) load: &'a PhasedSpec,
}

impl<'a> LatencyBody<'a> {
    /// Opens the session, starts its threads and waits until they are prepared, or until a
    /// signal has `interrupted` that.
    ///
    /// # Errors
    /// Why the cell is skipped, or that there was a signal.
    pub(super) fn start(
        probe: &'a ProbeCell,
        start: &Start<'_>,
        journal: &mut Journal,
        interrupted: &mut dyn FnMut() -> bool,
    ) -> Result<Self, NotStarted> {
        let taken = scheduling(&probe.threads, start.refused)?;
        let State::There(open) = probe.entry.state else {
            return Err(format!("the probe {} is not in this version", probe.entry.name).into());
        };
        let root = FactsRoot::live();
        let count = probe.threads.threads.len();
        let mut stage = Stage {
            threads: u32::try_from(count).unwrap_or(u32::MAX),
            bound: probe.threads.bound_cpus(),
            scheduling: taken,
            interval_ns: probe.threads.interval_ns,
            dither: start.dither.filter(|_| probe.is_dithered()),
            break_ns: probe.break_ns,
            journal,
            root: &root,
        };
        let mut session = open(&probe.values, &mut stage)?;
        let clock = start.phase_clock(probe.is_simulated());
        let holds = session.is_of_process() && !probe.is_simulated();
        let held = if holds { probe.in_ns() } else { Vec::new() };
        let mut duties = Vec::new();
        for plan in &probe.threads.threads {
            let limits = probe.limits_of(By::Thread, start.limits);
            let thread = session.thread(plan.number)?;
            let plan = ThreadPlan { below: session.below(plan.number), ..plan.clone() };
            let (clock, held) = (clock.clone(), held.clone());
            let recorded = ThreadSeries { series: limits, threads: count, clock, held };
            duties.push((plan, Duty::Probe(thread, recorded)));
        }
        let mut helpers = Vec::new();
        for Companion { of, below, cpu, name, helper } in session.helpers() {
            let plan = probe.threads.threads.iter().find(|thread| thread.number == of);
            let plan = plan.ok_or_else(|| format!("{name}: there is no thread {of}"))?;
            helpers.push(name);
            let affinity = cpu.map(CpuSet::of).or_else(|| plan.affinity.clone());
            duties.push((ThreadPlan { affinity, below, ..plan.clone() }, Duty::Helper(helper)));
        }
        let (trace, trace_refused) = match probe.break_ns {
            i64::MAX => (None, None),
            // Nothing on this machine is late then.
            _ if probe.is_simulated() => (None, None),
            _ => match Trace::arm(&root, journal) {
                Ok(trace) => (trace, None),
                Err(error) => (None, Some(error)),
            },
        };
        let stop = Arc::new(Stop::with_trace(trace));
        let started = Team::start(duties, taken, Arc::clone(&stop), &start.nudge, interrupted);
        let (team, rings) = started.inspect_err(|_| {
            if let Some(trace) = stop.trace() {
                trace.leave(journal);
            }
        })?;
        let by_session = probe.limits_of(By::Session, start.limits);
        let tracks: Vec<Vec<Recorder>> = (0..count)
            .map(|_| {
                let track = |(of, limits): &(u32, Limits)| {
                    let recorder = Recorder::of_series(*of, count, *limits, clock.as_ref());
                    if held.contains(of) { recorder.holding() } else { recorder }
                };
                by_session.iter().map(track).collect()
            })
            .collect();
        let mut collector = probe.collector(&rings, &tracks, start.limits);
        collector.phases = clock.as_ref().map(|clock| PhaseLog::new(clock.phases()));
        let go = start.go(probe.is_simulated(), count);
        // Simulated time has no warm-up, and runs ahead of the clock.
        team.stop.begin_at(if probe.is_simulated() { 0 } else { go.epoch });
        team.gate.open(Some(go));
        let times = Times {
            warmup_end: go.warmup_end,
            epoch: go.epoch,
            end: go.end,
            simulated: probe.is_simulated(),
            pause_ns: probe.threads.interval_ns.max(session.longest_pause_ns()),
        };
        let (intervals, actors_named) = (Intervals::default(), 0);
        Ok(Self {
            probe,
            session,
            helpers,
            team,
            scheduling: match taken {
                (policy, priority) if policy.is_real_time() => {
                    format!("{} {priority}", policy.name())
                }
                (policy, _) => policy.name().to_owned(),
            },
            collector,
            tracks,
            intervals,
            actors_named,
            go,
            clock,
            times,
            begun: false,
            limits: start.limits,
            trace_refused,
            warmup_max_ns: None,
        })
    }

    fn drain_session(&mut self, until_ns: u64) -> io::Result<()> {
        self.session.drain(&mut Drained {
            tracks: &mut self.tracks,
            until_ns,
            intervals: &mut self.intervals,
        })
    }

    /// Writes new actor names before the intervals that use them, in the cell's own time.
    fn push_intervals(&mut self, files: &mut CellFiles) -> bool {
        let any = !self.intervals.found.is_empty();
        for (number, name) in (0..).zip(&self.intervals.actors).skip(self.actors_named) {
            files.push(&Record::Actor(Actor { number, name: name.clone() }));
        }
        self.actors_named = self.intervals.actors.len();
        let since = |at: u64| at.saturating_sub(self.go.epoch);
        for (cpu, from, to, actor) in self.intervals.found.drain(..) {
            // Intervals that ended before the measurement belong to the warm-up.
            if to > self.go.epoch {
                let interval = Interval { cpu, from: since(from), to: since(to), actor };
                files.push(&Record::Interval(interval));
            }
        }
        any
    }
}

impl Start<'_> {
    fn phase_clock(&self, simulated: bool) -> Option<Arc<PhaseClock>> {
        if !self.load.changes() {
            return None;
        }
        let seconds = self.load.phases().iter().map(|phase| phase.for_ns / SECOND_NS);
        let clock = PhaseClock::new(seconds);
        if simulated {
            clock.always_works();
        }
        Some(Arc::new(clock))
    }

    /// The start, warm-up and end of the cell, set when all `threads` wait at the gate and all
    /// that the main thread needs is there: from then on they have [`arrival_ns`]. They have
    /// 10 ms between warm-up and measurement to clear their recorders.
    fn go(&self, simulated: bool, threads: usize) -> Go {
        let warmup = monotonic_ns() + arrival_ns(threads);
        let warmup_ns = if simulated { 0 } else { self.plan.warmup_ns };
        let warmup_end = warmup + warmup_ns;
        let epoch = warmup_end + if warmup_ns > 0 { 10_000_000 } else { 0 } + self.phase_ns;
        Go {
            warmup,
            warmup_end,
            epoch,
            end: epoch.saturating_add(self.duration_ns),
            samples: self.samples.unwrap_or(u64::MAX),
            aim: self.aim,
        }
    }
}

/// How long threads may take from the gate to their first release, ns: they leave it one after
/// the other.
fn arrival_ns(threads: usize) -> u64 {
    20_000_000 + 50_000 * threads as u64
}

impl ProbeCell {
    /// The series that one side records, by number, each with its limits. Only the primary
    /// series has limits.
    fn limits_of(&self, side: By, primary: Limits) -> Vec<(u32, Limits)> {
        let limits = |number| if number == 0 { primary } else { Limits::NONE };
        let all = (0..).zip(self.entry.by());
        all.filter(|(_, by)| *by == side).map(|(number, _)| (number, limits(number))).collect()
    }

    /// The series whose values are times that a stop of the process makes longer.
    fn in_ns(&self) -> Vec<u32> {
        let others = (1..).zip(self.entry.series).filter(|(_, series)| series.unit == Unit::Ns);
        std::iter::once(0).chain(others.map(|(number, _)| number)).collect()
    }

    fn collector(&self, rings: &Rings, tracks: &[Vec<Recorder>], primary: Limits) -> Collector {
        let mut collected = Vec::new();
        let of_threads = self.limits_of(By::Thread, primary);
        let of_session = self.limits_of(By::Session, primary);
        for ((thread, rings), tracks) in (0..).zip(rings).zip(tracks) {
            for ((series, limits), shared) in of_threads.iter().zip(rings) {
                collected.push(Track::new(thread, *series, shared.clone(), *limits));
            }
            for ((series, limits), track) in of_session.iter().zip(tracks) {
                collected.push(Track::new(thread, *series, track.shared(), *limits));
            }
        }
        Collector { tracks: collected, ..Collector::default() }
    }
}

impl Body for LatencyBody<'_> {
    fn times(&self) -> Times {
        self.times
    }

    fn ended(&self) -> bool {
        self.team.ended()
    }

    fn stop(&self) {
        self.team.stop.set();
    }

    fn is_stopping(&self) -> bool {
        self.team.stop.is_set()
    }

    fn wake(&self) {
        self.team.wake();
    }

    fn wake_late(&self) -> bool {
        self.team.wake_late()
    }

    fn load_works(&mut self, began: &Began) {
        if let Some(clock) = self.clock.as_ref().filter(|_| !self.times.simulated) {
            clock.works(began.turn, began.at_work.from_ns.div_ceil(SECOND_NS));
        }
        if let Some(log) = &mut self.collector.phases {
            log.works(began);
        }
    }

    fn begin(&mut self) {
        // An error here comes again in the next drain, which reports it.
        let _ = self.drain_session(self.go.epoch);
        let is_primary = self.probe.entry.primary.by == By::Session;
        for tracks in &mut self.tracks {
            for (place, track) in tracks.iter_mut().enumerate() {
                let warmup_max_ns = track.begin(self.go.epoch);
                if is_primary && place == 0 {
                    self.warmup_max_ns = self.warmup_max_ns.max(warmup_max_ns);
                }
            }
        }
        self.begun = true;
    }

    fn collect(&mut self, files: &mut CellFiles, witness: &mut Witness) -> io::Result<bool> {
        self.team.look();
        let drained = self.drain_session(u64::MAX);
        let found = self.push_intervals(files);
        let collected = match self.times.simulated {
            true => self.collector.drain_in_turn(files, witness),
            false => self.collector.drain(files, witness, false),
        };
        drained.map(|()| found || collected)
    }

    fn seconds(&self) -> u64 {
        self.collector.seconds()
    }

    fn so_far(&self) -> Vec<ThreadProgress> {
        let plans = &self.probe.threads.threads;
        let so_far = self.collector.primary().map(|track| {
            let plan = plans.get(track.thread as usize);
            let cpus = plan.and_then(|plan| plan.affinity.as_ref());
            let cpu = cpus.filter(|cpus| cpus.len() == 1).and_then(|cpus| cpus.iter().next());
            let scheduling = self.scheduling.clone();
            ThreadProgress { cpu, scheduling, moments: track.moments, last: track.last }
        });
        so_far.collect()
    }

    fn is_broken(&self) -> bool {
        self.team.stop.broken().is_some()
    }

    fn finish(
        self: Box<Self>,
        files: &mut CellFiles,
        cell: &mut Cell,
        journal: &mut Journal,
        witness: &mut Witness,
    ) -> Closing {
        let mut this = *self;
        let last = this.drain_session(u64::MAX);
        this.push_intervals(files);
        let stop = Arc::clone(&this.team.stop);
        let ends = this.team.join();
        stop.trace().inspect(|trace| trace.disarm());
        let by_session: Vec<Vec<_>> = this
            .tracks
            .into_iter()
            .map(|tracks| tracks.into_iter().map(Recorder::finish).collect())
            .collect();
        this.collector.drain(files, witness, true);
        witness.tell(cell);
        let ideal = this.session.ideal();
        if let Some(latency) = cell.latency_mut() {
            latency.ideal = ideal;
        }
        let closed = this.session.close();
        if let Err(error) = last {
            outcome::failed(cell, error.to_string());
        }
        let mut on_disk = CellData::default();
        if ends.iter().any(|fate| fate.end().is_none()) {
            let read = files.read_back(MOST_READ_BACK);
            outcome::note_read_back(cell, &read);
            on_disk.read(&read.unwrap_or_default().0);
        }
        let left = Left {
            probe: this.probe,
            ends,
            on_disk,
            limits: this.limits,
            by_session,
            tracks: this.collector.tracks,
            course: this.collector.course,
            helpers: this.helpers,
            closed,
            warmup_max_ns: this.warmup_max_ns,
        };
        let closing = left.assemble(cell);
        let broken = stop.broken();
        let saved = stop.trace().and_then(|trace| {
            trace.end(broken.is_some(), || files.make_file(layout::TRACE), journal)
        });
        if let Some(broken) = broken {
            outcome::note_break(cell, this.probe.break_ns, this.go.epoch, &broken);
            outcome::note_trace(cell, saved.or(this.trace_refused.map(Err)));
        }
        closing
    }
}
