//! The trace of a cell of `noise`, and its map.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::super::followed::{Followed, any};
use super::super::margin::Margin;
use super::super::tracer::Tracer;
use super::events::{HWLAT, OSNOISE, SWITCH, Told};
use super::measured::{Gap, Measurements};
use super::stretches::{Actor, Actors, CpuPast, Origin, SOURCES};
use crate::recorder::Recorder;
use crate::registry::Values;
use crate::registry::probe::{Intervals, Stage};
use crate::ring::Ring;

/// A CPU's ring, KiB: some 100,000 events, which is more than a CPU has in two seconds.
const RING_KIB: u64 = 8 << 10;

/// Intervals of a cell's map; after that only those of gaps longer than any before, since a run may
/// last for days.
const MAPPED: u64 = 1 << 20;

/// Who had a CPU of which the trace tells nothing.
const NOBODY: &str = "untraced";

pub(in super::super) struct Traced {
    pub(in super::super) ring: Ring,
    events: Told,
    pub(in super::super) cpus: BTreeMap<u32, CpuPast>,
    pub(in super::super) followed: Arc<Followed>,
    /// The actor of what happens with interrupts off.
    hardware: Actor,
    /// Of each CPU, what a tracer has measured.
    pub(super) measured: BTreeMap<u32, Measurements>,
}

impl Traced {
    fn new(ring: Ring, events: Told, followed: Arc<Followed>, actors: &mut Actors) -> Self {
        let hardware = actors.number("hardware", Origin::Untraced);
        let (cpus, measured) = (BTreeMap::new(), BTreeMap::new());
        Self { ring, events, cpus, followed, hardware, measured }
    }

    /// Traces who has the CPUs. Whether of other threads it is enough to know when they take a CPU from one
    /// of the cell's priority.
    pub(in super::super) fn open(
        stage: &mut Stage<'_>,
        actors: &mut Actors,
        is_filtered: bool,
    ) -> Result<Self, String> {
        let ring = Ring::open(stage.root, stage.journal, RING_KIB)?;
        let switches = ring.switches();
        let events = Told::trace(&switches, actors)?;
        // As the kernel counts them: the lower, the more urgent (include/linux/sched/prio.h). Of
        // switches between other threads those from a more urgent one are traced: no other takes
        // the CPU from a thread that spins.
        let more_urgent = match stage.scheduling {
            (policy, priority) if is_filtered && policy.is_real_time() => {
                Some(99 - priority.min(99))
            }
            _ => None,
        };
        let filters = move |pids: &[i32]| {
            let filter = |urgent| {
                let (from, to) = (any("prev_pid", pids), any("next_pid", pids));
                (SWITCH, format!("{from} || {to} || prev_prio < {urgent}"))
            };
            more_urgent.map(filter).into_iter().collect()
        };
        let followed = Followed::new(&ring, Box::new(filters));
        Ok(Self::new(ring, events, followed, actors))
    }

    /// Starts a tracer that measures by itself.
    pub(super) fn measured(
        stage: &mut Stage<'_>,
        values: &Values,
        name: &str,
        actors: &mut Actors,
    ) -> Result<(Tracer, Self), String> {
        let us = |ns: u64| (ns / 1_000).to_string();
        let (spin, round) = (us(Margin::of(values).spin_ns()), us(Margin::ROUND_NS));
        let threshold = ("tracing_thresh", us(values.number("threshold")));
        // A part is never longer than its whole, not for a moment.
        let (kind, settings) = if name == OSNOISE.0 {
            let (part, whole) = (("osnoise/runtime_us", spin), ("osnoise/period_us", round));
            let never = |file| (file, "0".to_owned());
            let stops = ["osnoise/stop_tracing_us", "osnoise/stop_tracing_total_us"].map(never);
            let cpus = ("osnoise/cpus", stage.bound.to_string());
            (OSNOISE, [vec![threshold, cpus, part, whole], stops.to_vec()].concat())
        } else {
            let (part, whole) = (("hwlat_detector/width", spin), ("hwlat_detector/window", round));
            let mode = ("hwlat_detector/mode", "per-cpu".to_owned());
            (HWLAT, vec![threshold, mode, part, whole])
        };
        let (tracer, ring) = Tracer::start(stage, kind, &settings, RING_KIB)?;
        let switches = ring.switches();
        let events = Told::measured(name, &switches, actors)?;
        let followed = Followed::new(&ring, Box::new(|_| Vec::new()));
        Ok((tracer, Self::new(ring, events, followed, actors)))
    }

    /// Follows what was traced until now. `own` is the actor of the thread with a number.
    pub(in super::super) fn follow(
        &mut self,
        actors: &mut Actors,
        own: &dyn Fn(u32) -> Actor,
    ) -> io::Result<()> {
        let Self { ring, events, cpus, followed, hardware, measured } = self;
        for thread in followed.threads() {
            if let Ok(id) = thread.id {
                events.know(id, own(thread.number));
            }
        }
        ring.read(&mut |cpu, at, event| {
            if let Some((current, change)) = events.change(event, actors) {
                cpus.entry(cpu).or_default().change(at, current, change);
            } else if let Some(found) = events.found(event) {
                let past = cpus.entry(cpu).or_default();
                measured.entry(cpu).or_default().add((cpu, at), past, found, *hardware);
            }
        })
    }
}

#[derive(Default)]
pub(super) struct Mapped {
    /// How many intervals the map has.
    intervals: u64,
    /// The longest gap so far, ns.
    longest_ns: u64,
}

impl Mapped {
    /// Notes what had the CPU in a gap.
    pub(super) fn add(
        &mut self,
        gap: &Gap,
        actors: &mut Actors,
        intervals: &mut Intervals,
        tracks: Option<&mut Vec<Recorder>>,
    ) {
        let length = gap.to - gap.from;
        let is_mapped = self.intervals < MAPPED || length > self.longest_ns;
        self.longest_ns = length.max(self.longest_ns);
        let mut of = [0; SOURCES];
        for piece in &gap.pieces {
            let (name, source) = match piece.actor {
                Some(actor) => actors.had(actor, piece),
                None => (NOBODY, Origin::Untraced),
            };
            of[source as usize] += piece.to - piece.from;
            if is_mapped {
                let actor = intervals.actor(name);
                intervals.push(gap.cpu, piece.from, piece.to, actor);
                self.intervals += 1;
            }
        }
        for (track, ns) in tracks.into_iter().flatten().zip(of).filter(|(_, ns)| *ns > 0) {
            track.record(gap.to, i64::try_from(ns).unwrap_or(i64::MAX), 0);
        }
    }
}
