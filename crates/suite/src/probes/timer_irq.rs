//! `timer-irq`: what a wake-up by a timer consists of, from the kernel's own trace.

mod timerlat;

use std::io;
use std::sync::Arc;

use punctual_core::schema::Tells;
use punctual_core::units::SECOND_NS;
use punctual_sys::timer::AbsoluteSleep;

use self::timerlat::TIMERLAT;
use super::followed::Followed;
use super::handover::Handover;
use super::serve::Serve;
use super::traced::{SECONDS, TracedThreads, leg};
use super::tracer;
use crate::recorder::Recorder;
use crate::registry::need::TRACE;
use crate::registry::probe::{
    By, Closed, CounterEntry, Drained, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage,
    State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};
use crate::schedule::Schedule;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "timer-irq",
    summary: "timer expiry to interrupt to wake-up to user space (as rtla timerlat)",
    help: "Each thread waits for its release as wakeup does (clock_nanosleep), and the kernel's trace \
says what happened on the way: the timer's interrupt handler was entered (leg interrupt, the interrupt \
latency or t1), it woke the thread (leg wakeup), the scheduler switched to it (leg switch), and it read \
the clock in user space (leg user). The legs of a sample add up to its latency (t2). If the handler \
was already running at the release, the leg interrupt is 0. The trace is read in binary form from an \
instance of its own, so nobody else's tracing is disturbed. A note names what had the CPU in the longest leg of \
the latest activation. Tracing takes time itself: compare with wakeup. With tracer=timerlat threads of the \
kernel wait instead, if it has that tracer: the legs are then interrupt (its timer's function runs) and \
thread (from there until its thread runs). Follows t1 and t2 of Mitsubishi's measurements and rtla \
timerlat.",
    params: &[Param {
        name: "tracer",
        kind: Kind::Choice(&[
            tracer::EVENTS,
            Choice::of(TIMERLAT.0, "threads of the kernel's timerlat tracer do"),
        ]),
        default: Default::Value(tracer::EVENTS.value),
        help: "who measures",
    }],
    overrides: &[],
    without: &[],
    check: timerlat::check,
    needs: &[TRACE],
    device: None,
    pace: Pace::Periodic,
    dithers: |values| values.text("tracer") == tracer::EVENTS.value,
    primary: Primary {
        name: "latency",
        meaning: "start of the work minus its release",
        nouns: ("activation", "activations"),
        by: By::Thread,
    },
    series: &[
        leg("interrupt", "the timer's interrupt handler is entered minus the release"),
        leg("wakeup", "the thread is woken minus the handler is entered"),
        leg("switch", "the CPU is switched to the thread minus the thread is woken"),
        leg("user", "start of the work minus the CPU is switched to the thread"),
        leg("thread", "of timerlat: its thread runs minus its timer's function runs"),
    ],
    counters: &[
        CounterEntry {
            name: "unmatched",
            meaning: "activations without legs: the trace has not all steps of a wake-up at their release",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "lost",
            meaning: "events or activations for which there was no room",
            tells: Tells::Loss,
        },
    ],
    state: State::There(open),
};

/// The first thing that the timer's interrupt handler does, by architecture, with a filter.
const INTERRUPTS: [(&str, Option<&str>); 2] = [
    ("irq_vectors/local_timer_entry", None),
    ("irq/irq_handler_entry", Some("name ~ \"*timer*\"")),
];

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    if values.text("tracer") == TIMERLAT.0 {
        return timerlat::open(stage);
    }
    let second = SECOND_NS / stage.interval_ns.max(1) + 1;
    let traced = TracedThreads::open(stage, &INTERRUPTS, u64::from(stage.threads) * second)?;
    let offsets = stage.dither.map(|dither| dither.offsets_ns(stage.interval_ns));
    Ok(Box::new(Timers {
        traced,
        interval_ns: stage.interval_ns,
        offsets: offsets.map_or_else(|| Arc::new([]) as Arc<[u64]>, Arc::from),
        break_ns: stage.break_ns,
        handed: Vec::new(),
        room: second * SECONDS,
    }))
}

struct Timers {
    traced: TracedThreads,
    interval_ns: u64,
    /// By how much releases are moved, ns; empty if they are not.
    offsets: Arc<[u64]>,
    break_ns: i64,
    /// Of each thread, its releases and when it ran.
    handed: Vec<Arc<Handover<2>>>,
    /// How many samples of a thread there is room for.
    room: u64,
}

impl Session for Timers {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let handed = Handover::new(self.room);
        self.handed.push(Arc::clone(&handed));
        Ok(Box::new(Sleeper {
            number,
            interval_ns: self.interval_ns,
            offsets: Arc::clone(&self.offsets),
            break_ns: self.break_ns,
            followed: Arc::clone(&self.traced.followed),
            handed,
        }))
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        let Self { traced, handed, .. } = self;
        traced.drain(out, &mut |traced, thread, until, tracks| {
            handed[thread.number as usize].take(|[release, now]| {
                if now >= until {
                    return false;
                }
                let legs = traced.of(thread, Some(release), now).into_iter().flatten();
                for (track, leg) in tracks.iter_mut().zip(legs) {
                    track.record(now, leg.cast_signed(), 0);
                }
                true
            });
        })
    }

    fn close(self: Box<Self>) -> Closed {
        let handed = self.handed.iter().map(|handed| handed.lost());
        Closed { counts: self.traced.counts(handed.sum()), notes: self.traced.notes() }
    }
}

struct Sleeper {
    number: u32,
    interval_ns: u64,
    offsets: Arc<[u64]>,
    break_ns: i64,
    followed: Arc<Followed>,
    handed: Arc<Handover<2>>,
}

impl ProbeThread for Sleeper {
    fn prepare(&mut self) -> io::Result<()> {
        self.followed.add(self.number)
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let aim = window.aim;
        let schedule =
            Schedule::dithered(window.first, self.interval_ns, window.end, &self.offsets)
                .aimed(aim.release, window.first.saturating_add(aim.at_ns));
        let serve = Serve::new(schedule, &mut tracks[0], window.samples, stop, self.break_ns);
        let handed = &*self.handed;
        handed.begin();
        let job = |release: u64, latency: i64| {
            handed.put([release, release.wrapping_add_signed(latency)]);
        };
        serve.run(&mut AbsoluteSleep, job).map(drop)
    }
}
