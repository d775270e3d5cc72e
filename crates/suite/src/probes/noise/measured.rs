//! Gaps that threads of the kernel measure, for tracers that do so.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use punctual_sys::clock::{Clock, monotonic_ns};

use super::super::counts::Counts;
use super::super::tracer::{Relay, Tracer};
use super::Watched;
use super::events::Measured;
use super::stretches::{Actor, CpuPast, NOBODYS, Stretch};

/// A gap and what had the CPU in it.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) cpu: u32,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) pieces: Vec<Stretch>,
}

/// What was measured on a CPU and is not recorded yet.
#[derive(Debug, Default)]
pub(super) struct Measurements {
    gaps: VecDeque<Gap>,
    /// When so many us had been measured.
    spun: VecDeque<(u64, u64)>,
}

impl Measurements {
    /// Takes the next one of a CPU. `hardware` is the actor of what happens with interrupts off.
    pub(super) fn add(
        &mut self,
        (cpu, at): (u32, u64),
        past: &mut CpuPast,
        found: Measured,
        hardware: Actor,
    ) {
        let mut pieces = Vec::new();
        let (from, to) = match found {
            Measured::Spun(us) => {
                // No gap spans two of these.
                past.forget(at);
                return self.spun.push_back((at, us));
            }
            Measured::Gap(length) => {
                let gap = (at.saturating_sub(length), at);
                // These threads are in no event of their own.
                past.cut(gap, Actor::MAX, &mut |piece| pieces.push(piece));
                gap
            }
            Measured::Hardware(length, since) => {
                let ago = Clock::Realtime.now_ns().saturating_sub(since);
                let from = monotonic_ns().saturating_sub(ago);
                let (to, actor) = (from + length, Some(hardware));
                pieces.push(Stretch { from, to, actor, ..NOBODYS });
                (from, to)
            }
        };
        self.gaps.push_back(Gap { cpu, from, to, pieces });
    }
}

/// The thread of a cell that records what the kernel's thread on its CPU measures.
pub(super) fn relay(
    (number, tracer): (u32, Tracer),
    watched: Arc<Mutex<Watched>>,
    spun_us: Arc<Counts<1>>,
    break_ns: i64,
) -> Relay {
    let cpu = tracer.cpu(number);
    let mut began = 0;
    let take: Box<super::super::tracer::Take> = Box::new(move |window, recorder, stop| {
        if std::mem::replace(&mut began, window.first) != window.first {
            spun_us.begin();
        }
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = &mut *watched;
        let Some(traced) = &mut watched.traced else {
            return Err(io::Error::other("nothing is traced"));
        };
        traced.follow(&mut watched.actors, &|_| Actor::MAX)?;
        let found = traced.measured.entry(cpu).or_default();
        while let Some((at, us)) = first_of(&mut found.spun, |(at, _)| *at < window.end) {
            if at >= window.first {
                spun_us.add(0, us);
            }
        }
        while let Some(gap) = first_of(&mut found.gaps, |gap| gap.from < window.end) {
            if recorder.samples() >= window.samples {
                return Ok(false);
            }
            if gap.from >= window.first {
                let length = (gap.to - gap.from).cast_signed();
                recorder.record(gap.to, length, 0);
                if length > break_ns {
                    stop.set_broken(gap.from, length);
                }
                watched.recorded.push((number, gap));
            }
        }
        Ok(!stop.is_set())
    });
    Relay { number, tracer, take }
}

fn first_of<T>(all: &mut VecDeque<T>, wanted: impl Fn(&T) -> bool) -> Option<T> {
    all.front().is_some_and(wanted).then(|| all.pop_front()).flatten()
}
