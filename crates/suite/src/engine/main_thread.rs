//! The main thread while a body measures: it collects every second, reports progress, handles
//! signals and makes sure that the body's threads end.

use std::path::Path;
use std::time::Duration;

use punctual_core::block::{Strain, System};
use punctual_core::format::Record;
use punctual_core::schema::{Cell, CellStrain};
use punctual_core::units::SECOND_NS;
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::limits::{own_cpu_time, reaped_cpu_time};
use punctual_sys::signal::{Signal, Woken};

use super::api::Progress;
use super::body::{Body, Times};
use super::by_phase;
use super::environment::Environment;
use super::run_dir::CellFiles;
use super::stops::Witness;
use crate::facts::{FactsRoot, Share, Stolen, Ticks, Totals, Watch};
use crate::harness::phases::PhasedLoad;

/// How a cell ended.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) interrupted: bool,
    /// The error that ended it early, if there was one.
    pub(super) failed: Option<String>,
    /// When, ns after the start of the measurement.
    pub(super) at_ns: u64,
}

/// The main thread while a body measures.
pub(super) struct MainThread<'e, 'o> {
    environment: &'e mut Environment<'o>,
    cell: &'e mut Cell,
    times: Times,
    second: u64,
    /// When the threads were first found told to end.
    told: Option<u64>,
    first: Option<Ticks>,
    last: Option<Ticks>,
    /// What had come before the measurement and before this second, and when that was, ns.
    strain_first: Option<(Totals, u64)>,
    strain_last: Option<(Totals, u64)>,
    /// CPU time of this process when the measurement began, and the instant, ns.
    own_first: Option<(Duration, u64)>,
    /// What happens to the machine meanwhile; simulated time has none.
    watch: Option<Watch>,
    /// Who saw that the process was stopped.
    pub(super) witness: Witness,
}

/// How long threads may take to leave the warm-up by themselves, ns.
const WARM_UP_GRACE_NS: u64 = 5_000_000;

/// How long before the measurement the state of the machine is looked at, ns.
const LOOK_NS: u64 = 5_000_000;

/// How long a woken thread may take to end or to leave the warm-up before it is woken again,
/// ns.
const WAKE_AGAIN_NS: u64 = 10_000_000;

/// How long threads may take to end after they were told to, ns. One that takes longer is
/// stuck, and is left alone with what its blocks say.
const STUCK_NS: u64 = 10 * SECOND_NS;

/// How often a load that starts is looked at, ns.
const STARTED_NS: u64 = 5_000_000;

/// Seconds without anything new before the watchdog ends the cell.
fn patience(pause_ns: u64) -> u64 {
    30 + pause_ns.saturating_mul(3) / SECOND_NS
}

const NO_PROGRESS: &str = "no thread recorded anything for half a minute: something keeps the probe's \
threads from running (real-time throttling, a higher priority, a stopped process)";

impl<'e, 'o> MainThread<'e, 'o> {
    pub(super) fn new(
        environment: &'e mut Environment<'o>,
        cell: &'e mut Cell,
        times: Times,
    ) -> Self {
        Self {
            environment,
            cell,
            times,
            second: 0,
            told: None,
            first: None,
            last: None,
            strain_first: None,
            strain_last: None,
            own_first: None,
            watch: None,
            witness: Witness::new(times.epoch),
        }
    }

    pub(super) fn until_the_end(
        &mut self,
        body: &mut dyn Body,
        load: &mut PhasedLoad,
        files: &mut CellFiles,
    ) -> Ended {
        let mut ended = Ended::default();
        self.warm_up(body, load, &mut ended);
        body.begin();
        self.begin(body, load, files);
        self.cell.started = Some(super::time_base());
        self.cell.epoch_ns = Some(self.times.epoch).filter(|_| !self.times.simulated);
        self.first = self.environment.cpu_times();
        self.last = self.first;
        self.strain_first = Some(self.strained());
        self.strain_last = self.strain_first;
        self.own_first = self.used().map(|used| (used, monotonic_ns()));
        let mut quiet = 0;
        while !body.ended() && !self.is_stuck(body) {
            self.change(body, load, files);
            let next = self.next_visit(load);
            if self.wait(body, load, &mut ended, next) || !self.is_due() {
                continue;
            }
            let news = self.collect(body, files, &mut ended);
            quiet = if news { 0 } else { quiet + 1 };
            self.visit(body, load, files);
            if !self.times.simulated
                && quiet > patience(self.times.pause_ns)
                && ended.failed.is_none()
            {
                ended.failed = Some(NO_PROGRESS.to_owned());
                body.stop();
            }
        }
        self.collect(body, files, &mut ended);
        self.visit(body, load, files);
        if let Some(mut watch) = self.watch.take() {
            if let Some(foreign) = &mut self.environment.foreign {
                foreign.end();
            }
            watch.look(self.second);
            self.cell.conditions.extend(watch.end());
        }
        ended.at_ns = match self.times.simulated {
            true => body.seconds().saturating_mul(SECOND_NS),
            false => self.elapsed(),
        };
        ended
    }

    /// Whether the threads were told to end and had their time to do so.
    fn is_stuck(&mut self, body: &dyn Body) -> bool {
        if !body.is_stopping() {
            return false;
        }
        let now = monotonic_ns();
        now.saturating_sub(*self.told.get_or_insert(now)) >= STUCK_NS
    }

    fn collect(&mut self, body: &mut dyn Body, files: &mut CellFiles, ended: &mut Ended) -> bool {
        self.witness.look(self.environment.signals);
        let collected = body.collect(files, &mut self.witness);
        files.flush(self.environment.sync);
        collected.unwrap_or_else(|error| {
            ended.failed.get_or_insert(error.to_string());
            body.stop();
            true
        })
    }

    /// Waits for the measurement to begin.
    fn warm_up(&mut self, body: &mut dyn Body, load: &mut PhasedLoad, ended: &mut Ended) {
        let over = self.times.warmup_end + WARM_UP_GRACE_NS;
        // It reads many files, which the first releases are not to wait for.
        let look = self.times.epoch.saturating_sub(LOOK_NS);
        for instant in [over.min(look), look, self.times.epoch] {
            while monotonic_ns() < instant && !body.ended() && !ended.interrupted {
                self.wait(body, load, ended, instant);
            }
            if instant == look && !self.times.simulated {
                self.watch.get_or_insert_with(|| Watch::begin(FactsRoot::live()));
                self.witness.begin();
                if let Some(foreign) = &mut self.environment.foreign {
                    foreign.begin();
                }
            }
        }
    }

    /// Time since the measurement began, ns.
    fn elapsed(&self) -> u64 {
        monotonic_ns().saturating_sub(self.times.epoch)
    }

    /// Shortly after the end of the second that is due, or when the load is to change.
    fn next_visit(&self, load: &PhasedLoad) -> u64 {
        if self.times.simulated {
            return monotonic_ns() + 1_000_000;
        }
        let visit = self.times.epoch + (self.second + 1) * SECOND_NS + 50_000_000;
        match load.due_ns() {
            0 => visit.min(monotonic_ns() + STARTED_NS),
            due => visit.min(self.times.epoch.saturating_add(due)),
        }
    }

    /// Whether a second has ended since the last visit.
    fn is_due(&self) -> bool {
        self.times.simulated || self.elapsed() / SECOND_NS > self.second
    }

    /// The measurement begins: the work of the load counts from now on.
    fn begin(&mut self, body: &mut dyn Body, load: &mut PhasedLoad, files: &mut CellFiles) {
        let first = load.begin();
        if self.cell.phases.is_empty() {
            return;
        }
        let all = if self.times.simulated { load.all_turns() } else { Vec::new() };
        for began in [first].iter().chain(&all) {
            body.load_works(began);
            by_phase::record(began, files);
        }
    }

    /// Changes the load if its phase is over; nothing starts any more in a cell that ends.
    fn change(&mut self, body: &mut dyn Body, load: &mut PhasedLoad, files: &mut CellFiles) {
        if self.times.simulated || body.is_stopping() || self.elapsed() < load.due_ns() {
            return;
        }
        // The last second of a phase is recorded while its load is there.
        self.visit(body, load, files);
        let epoch = self.times.epoch;
        let elapsed = || monotonic_ns().saturating_sub(epoch);
        if let Some(began) = load.step(&elapsed, self.environment.journal) {
            body.load_works(&began);
            by_phase::record(&began, files);
        }
    }

    /// Waits until `instant` or until something happens; returns whether the cell was ended early.
    fn wait(
        &mut self,
        body: &dyn Body,
        load: &mut PhasedLoad,
        ended: &mut Ended,
        instant: u64,
    ) -> bool {
        let now = monotonic_ns();
        // Threads that were told to end, or whose time is over, may be asleep for long.
        let ending = body.is_stopping() || (!self.times.simulated && now > self.times.end);
        // A thread that was woken just before it slept sleeps on: repeat until none is left.
        let waking = if ending {
            body.wake();
            true
        } else {
            now >= self.times.warmup_end + WARM_UP_GRACE_NS && body.wake_late()
        };
        let most = if waking { WAKE_AGAIN_NS } else { u64::MAX };
        let left = instant.saturating_sub(now);
        self.handle(body, load, ended, left.min(most));
        monotonic_ns() < instant
    }

    /// Waits for a signal and does what it asks for.
    fn handle(&mut self, body: &dyn Body, load: &mut PhasedLoad, ended: &mut Ended, wait_ns: u64) {
        self.witness.look(self.environment.signals);
        let woken = self.environment.signals.wait_or_stop(wait_ns);
        self.witness.waited(woken);
        let signal = match woken {
            Woken::By(signal) => Some(signal),
            Woken::Nudged | Woken::InTime | Woken::Interrupted => None,
        };
        match signal {
            // It came to a process that ran.
            Some(Signal::Continued) => {}
            Some(Signal::User1) => self.environment.observer.snapshot(),
            Some(signal) if signal.ends_at_once(ended.interrupted) => {
                // Or it would go on to write into the folder that is removed.
                load.kill();
                self.environment.end_at_once(signal);
            }
            Some(signal) => {
                ended.interrupted = true;
                self.environment.ended_by = Some(signal);
                body.stop();
                // The threads may have ended before the next wait: a second one that is there
                // already counts all the same.
                self.handle(body, load, ended, 0);
            }
            None => {}
        }
    }

    fn visit(&mut self, body: &dyn Body, load: &mut PhasedLoad, files: &mut CellFiles) {
        let now = monotonic_ns().saturating_sub(self.times.epoch) / SECOND_NS;
        let second = if self.times.simulated { body.seconds() } else { now };
        let fresh = second > self.second;
        self.second = second;
        if fresh && let Some(watch) = &mut self.watch {
            watch.look(second);
        }
        if fresh && !self.times.simulated {
            let ended = second - 1;
            for (part, sample) in load.sample() {
                let totals = sample.counters.iter().map(|(_, total)| *total).collect();
                files.push(&Record::Work { second: ended, part, totals });
            }
            if let Some(share) = self.share() {
                let strain = self.strain();
                let Share { busy, steal } = share;
                files.push(&Record::System(System { second: ended, busy, steal, strain }));
            }
        }
        if fresh {
            let measured_ns = second.saturating_mul(SECOND_NS).min(self.cell.duration_ns);
            let so_far = body.so_far();
            self.environment.progress(&Progress {
                key: &self.cell.key,
                measured_ns,
                max_ns: so_far
                    .iter()
                    .filter(|thread| thread.moments.count > 0)
                    .map(|thread| thread.moments.max)
                    .max(),
                threads: &so_far,
            });
        }
    }

    fn share(&mut self) -> Option<Share> {
        let now = self.environment.cpu_times()?;
        let share = self.last?.until(&now);
        self.last = Some(now);
        share
    }

    fn strained(&mut self) -> (Totals, u64) {
        (self.environment.strain.read(), monotonic_ns())
    }

    fn strain(&mut self) -> Strain {
        let now = self.strained();
        self.strain_last.replace(now).map_or_else(Strain::default, |last| between(last, now))
    }

    /// What strained the machine since the measurement began.
    pub(super) fn whole_strain(&mut self) -> Option<CellStrain> {
        let (first, now) = (self.strain_first?, self.strained());
        first.0.on_average(&now.0, Duration::from_nanos(now.1.saturating_sub(first.1)))
    }

    /// What the hypervisor gave to others since the measurement began.
    pub(super) fn stolen(&self) -> Option<Stolen> {
        let now = self.environment.cpu_times()?;
        self.first?.stolen_until(&now, Duration::from_nanos(self.elapsed()))
    }

    pub(super) fn whole(&self) -> Option<Share> {
        self.first?.until(&self.environment.cpu_times()?)
    }

    /// CPU time of punctual's own so far. What a cost times in processes of its own has been reaped
    /// when the cell ends; with other cells only parts of a load may have been.
    fn used(&self) -> Option<Duration> {
        let reaped = match self.cell.cost() {
            Some(_) => reaped_cpu_time().ok()?,
            None => Duration::ZERO,
        };
        Some(own_cpu_time().ok()? + reaped)
    }

    /// CPUs that this process kept busy since the measurement began; 1.0 is one CPU.
    pub(super) fn own_cpus(&self) -> Option<f64> {
        let (used, instant) = self.own_first?;
        let elapsed = Duration::from_nanos(monotonic_ns().saturating_sub(instant));
        let used = self.used()?.saturating_sub(used);
        (elapsed > Duration::ZERO).then(|| used.as_secs_f64() / elapsed.as_secs_f64())
    }
}

fn between((first, from): (Totals, u64), (last, to): (Totals, u64)) -> Strain {
    first.until(&last, Duration::from_nanos(to.saturating_sub(from)))
}

/// Moves the collector to CPUs without probe threads and, if any remain, without their SMT
/// siblings; returns the mask to restore.
pub(super) fn keep_clear_of(probes: &CpuSet) -> Option<CpuSet> {
    let inherited = affinity::get().ok()?;
    let siblings: CpuSet = probes
        .iter()
        .filter_map(|cpu| {
            let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            CpuSet::parse(&std::fs::read_to_string(Path::new(&path)).ok()?)
        })
        .flat_map(|set| set.iter().collect::<Vec<_>>())
        .collect();
    let free = inherited.without(probes);
    let distant = free.without(&siblings);
    let chosen = if distant.is_empty() { free } else { distant };
    if probes.is_empty() || chosen.is_empty() || affinity::set(&chosen).is_err() {
        return None;
    }
    Some(inherited)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_longer_than_half_a_minute_is_not_taken_for_no_progress() {
        assert_eq!((patience(0), patience(1_000_000)), (30, 30));
        assert!(patience(60 * SECOND_NS) > 120);
        assert!(patience(u64::MAX) > 30);
    }
}
