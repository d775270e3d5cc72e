//! The main thread while the probes run: collects every second, passes on
//! progress, acts on signals, and sees to it that the threads end.

use std::path::Path;

use punctual_core::format::Record;
use punctual_core::schema::Cell;
use punctual_core::units::SECOND_NS;
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::signal::Signal;
use punctual_sys::thread::wake;

use super::cell::Prepared;
use super::collector::Collector;
use super::store::CellFiles;
use super::team::Team;
use super::thread::Go;
use super::{Environment, Progress};
use crate::facts::{Share, Ticks};
use crate::loads::{LoadSet, PartSample};

/// How a cell ended.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) interrupted: bool,
    pub(super) no_progress: bool,
}

/// The main thread while the probes run: collects every second, passes on
/// progress, acts on signals, and sees to it that the threads end.
pub(super) struct Watch<'e, 'o> {
    environment: &'e mut Environment<'o>,
    cell: &'e mut Cell,
    go: Go,
    simulated: bool,
    interval_ns: u64,
    second: u64,
    first: Option<Ticks>,
    last: Option<Ticks>,
    /// What each part of the load had done when the measurement began.
    done_before: Vec<Vec<u64>>,
}

/// Visits without anything new before the watchdog ends the cell, beside the interval.
const PATIENCE: u64 = 30;

impl<'e, 'o> Watch<'e, 'o> {
    pub(super) fn new(
        environment: &'e mut Environment<'o>,
        prepared: &Prepared,
        go: Go,
        cell: &'e mut Cell,
    ) -> Self {
        let interval_ns = prepared.threads.interval_ns;
        let simulated = prepared.is_simulated();
        Self {
            environment,
            cell,
            go,
            simulated,
            interval_ns,
            second: 0,
            first: None,
            last: None,
            done_before: Vec::new(),
        }
    }

    pub(super) fn until_the_end(
        &mut self,
        team: &Team,
        collector: &mut Collector,
        load: &mut LoadSet,
        files: &mut CellFiles,
    ) -> Ended {
        let mut ended = Ended::default();
        self.warm_up(team, &mut ended);
        self.done_before = totals(load);
        load.mark_start();
        self.cell.started = Some(super::time_base());
        self.first = self.environment.cpu_times();
        self.last = self.first;
        let mut quiet = 0;
        while !team.ended() {
            if self.wait(team, &mut ended, self.next_visit()) {
                continue;
            }
            let news = collector.drain(files, self.environment.sync);
            quiet = if news { 0 } else { quiet + 1 };
            self.visit(collector, load, files);
            if !self.simulated
                && quiet > PATIENCE + 3 * self.interval_ns / SECOND_NS
                && !ended.no_progress
            {
                ended.no_progress = true;
                team.stop.set();
            }
        }
        collector.drain(files, self.environment.sync);
        self.visit(collector, load, files);
        ended
    }

    fn warm_up(&mut self, team: &Team, ended: &mut Ended) {
        while monotonic_ns() < self.go.epoch && !team.ended() && !team.stop.is_set() {
            self.wait(team, ended, self.go.epoch);
        }
    }

    /// A little behind the end of the second that is due.
    fn next_visit(&self) -> u64 {
        if self.simulated {
            return monotonic_ns() + 1_000_000;
        }
        self.go.epoch + (self.second + 1) * SECOND_NS + 50_000_000
    }

    /// Waits until `instant`, or until something happens; whether it was ended early.
    fn wait(&mut self, team: &Team, ended: &mut Ended, instant: u64) -> bool {
        let now = monotonic_ns();
        // Threads that are told to end, or whose time is over, may sleep in a long interval: wake them.
        let ending = team.stop.is_set() || (!self.simulated && now > self.go.end);
        if ending {
            team.handles.iter().filter(|handle| !handle.is_finished()).for_each(wake);
        }
        let most = if ending { 10_000_000 } else { u64::MAX };
        let left = instant.saturating_sub(now);
        match self.environment.signals.wait(left.min(most)) {
            Some(Signal::User1) => self.environment.observer.snapshot(),
            Some(signal) if ended.interrupted => self.environment.end_at_once(signal),
            Some(signal) => {
                ended.interrupted = true;
                self.environment.ended_by = Some(signal);
                team.stop.set();
            }
            None => {}
        }
        monotonic_ns() < instant
    }

    fn visit(&mut self, collector: &Collector, load: &mut LoadSet, files: &mut CellFiles) {
        let now = monotonic_ns().saturating_sub(self.go.epoch) / SECOND_NS;
        let second = if self.simulated { collector.seconds() } else { now };
        let fresh = second > self.second;
        self.second = second;
        if fresh && !self.simulated {
            let ended = second - 1;
            for ((part, totals), before) in (0..).zip(totals(load)).zip(&self.done_before) {
                let since = |(now, before): (u64, &u64)| now.saturating_sub(*before);
                let totals = totals.into_iter().zip(before).map(since).collect();
                files.push(&Record::Work { second: ended, part, totals });
            }
            if let Some(share) = self.share() {
                files.push(&Record::System { second: ended, busy: share.busy, steal: share.steal });
            }
        }
        if fresh {
            let measured_ns = second.saturating_mul(SECOND_NS).min(self.cell.duration_ns);
            self.environment.progress(&Progress {
                key: &self.cell.key,
                measured_ns,
                max_ns: collector.max_ns(),
                threads: &collector.threads,
            });
        }
    }

    fn share(&mut self) -> Option<Share> {
        let now = self.environment.cpu_times()?;
        let share = self.last?.until(&now);
        self.last = Some(now);
        share
    }

    pub(super) fn whole(&self) -> Option<Share> {
        self.first?.until(&self.environment.cpu_times()?)
    }
}

/// The counters of every part of the load.
fn totals(load: &mut LoadSet) -> Vec<Vec<u64>> {
    let counts = |part: PartSample| part.counters.iter().map(|(_, total)| *total).collect();
    load.sample().into_iter().map(counts).collect()
}

/// Binds the collector to CPUs without probe threads, and not to their SMT
/// siblings where that leaves any; returns the mask to put back.
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
