//! `rtc-irq`: from the real-time clock's interrupt to user space (as RealFeel-ETRI).

use std::io;
use std::sync::Arc;

use punctual_core::schema::{Condition, Role, Tells, Unit};

use super::followed::Followed;
use super::handover::Handover;
use super::rtc::{Listener, PARAMS, RealTimeClock, check};
use super::traced::{SECONDS, TracedThreads, leg};
use crate::recorder::Recorder;
use crate::registry::Values;
use crate::registry::need::{REAL_TIME_CLOCK, TRACE};
use crate::registry::probe::{
    By, Closed, CounterEntry, Drained, Pace, Primary, ProbeEntry, ProbeThread, SeriesEntry,
    Session, Stage, State, Stop, Window,
};
use punctual_sys::rtc::Rtc;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "rtc-irq",
    summary: "from the real-time clock's interrupt to user space (as RealFeel-ETRI)",
    help: "The real-time clock interrupts rate times a second; a thread waits for that in a blocking \
read and reads CLOCK_MONOTONIC when it returns. The latency is this reading minus the entry of the \
interrupt's handler, for which ETRI had patched the kernel; here the kernel's trace tells when it was \
(timer:hrtimer_expire_entry: in today's Linux a high-resolution timer stands for the clock's own \
interrupt). So it does not have what made the interrupt itself late; rtc sees that as a deviation. \
The trace is read in binary form from an instance of its own, and tracing takes time itself.",
    params: PARAMS,
    overrides: &[],
    without: &[],
    check,
    needs: &[REAL_TIME_CLOCK, TRACE],
    device: Some("rtc"),
    pace: Pace::Ticks,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "the read returns minus the interrupt's handler is entered",
        nouns: ("interrupt", "interrupts"),
        by: By::Session,
    },
    series: &[
        SeriesEntry {
            name: "deviation",
            meaning: "time between two reads that return minus 1 / rate",
            role: Role::Aside,
            unit: Unit::Ns,
            by: By::Thread,
        },
        leg("wakeup", "the thread is woken minus the handler is entered"),
        leg("switch", "the CPU is switched to the thread minus the thread is woken"),
        leg("user", "the read returns minus the CPU is switched to the thread"),
    ],
    counters: &[
        CounterEntry {
            name: "unmatched",
            meaning: "reads without legs: the trace has not all steps of a wake-up before them",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "lost",
            meaning: "events or interrupts for which there was no room",
            tells: Tells::Loss,
        },
    ],
    state: State::There(open),
};

/// The handler that wakes the thread is that of the last timer before.
const TIMERS: [(&str, Option<&str>); 1] = [("timer/hrtimer_expire_entry", None)];

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let rate = values.number("rate");
    let clock = RealTimeClock::open(values, stage)?;
    let traced = TracedThreads::open(stage, &TIMERS, rate)?;
    Ok(Box::new(RtcInterrupts {
        clock,
        traced,
        handed: Handover::new(rate * SECONDS),
        period_ns: stage.interval_ns,
        break_ns: stage.break_ns,
    }))
}

struct RtcInterrupts {
    clock: RealTimeClock,
    traced: TracedThreads,
    /// How many interrupts were missed before a read that returned, and when it did.
    handed: Arc<Handover<2>>,
    period_ns: u64,
    break_ns: i64,
}

impl Session for RtcInterrupts {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let handed = Some(Arc::clone(&self.handed));
        Ok(Box::new(TracedListener {
            number,
            followed: Arc::clone(&self.traced.followed),
            listener: self.clock.listener(self.period_ns, self.break_ns, handed),
        }))
    }

    fn drain(&mut self, out: &mut Drained<'_>) -> io::Result<()> {
        let Self { traced, handed, .. } = self;
        traced.drain(out, &mut |traced, thread, until, tracks| {
            handed.take(|[missed, now]| {
                if now >= until {
                    return false;
                }
                let Some([_, legs @ ..]) = traced.of(thread, None, now) else { return true };
                let latency: u64 = legs.iter().sum();
                let [primary, tracks @ ..] = tracks else { return true };
                primary.record(now, latency.cast_signed(), missed);
                for (track, leg) in tracks.iter_mut().zip(legs) {
                    track.record(now, leg.cast_signed(), 0);
                }
                true
            });
        })
    }

    fn close(self: Box<Self>) -> Closed {
        let mut notes = [self.clock.close(), self.traced.notes()].concat();
        if self.break_ns != i64::MAX {
            // A trace that is to show what led there has to be stopped at once.
            let text = "the break value is for the deviation: a latency is known only when the trace \
                        is read, once a second";
            notes.push(Condition { id: "break-of".to_owned(), text: text.to_owned() });
        }
        Closed { counts: self.traced.counts(self.handed.lost()), notes }
    }
}

struct TracedListener {
    number: u32,
    followed: Arc<Followed>,
    listener: Listener<Rtc>,
}

impl ProbeThread for TracedListener {
    fn prepare(&mut self) -> io::Result<()> {
        self.followed.add(self.number)
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        self.listener.run(window, tracks, stop)
    }
}
