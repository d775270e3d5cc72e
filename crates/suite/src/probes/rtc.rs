//! `rtc`: how even the periodic interrupts of the real-time clock reach user space (as RealFeel).

use std::io;
use std::path::Path;
use std::sync::Arc;

use punctual_core::schema::Condition;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::error::text;
use punctual_sys::rtc::Rtc;
use punctual_sys::sched;

use super::handover::Handover;
use crate::recorder::Recorder;
use crate::registry::need::REAL_TIME_CLOCK;
use crate::registry::param::any_text;
use crate::registry::probe::{
    By, Closed, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage, State, Stop, Window,
};
use crate::registry::{Default, Kind, Param, Values};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "rtc",
    summary: "intervals between periodic interrupts of the real-time clock (as RealFeel)",
    help: "The real-time clock interrupts rate times a second; a thread waits for that in a blocking \
read, reads CLOCK_MONOTONIC, and records the time since the interrupt before minus 1 / rate. The sign \
stays: one that comes late makes the next interval too short by as much, so half of the samples are \
below zero, and a deadline bounds how much too long an interval may be. The read also tells how many \
interrupts there were; more than one are missed periods. Rates above the clock's max_user_freq \
(/sys/class/rtc) need CAP_SYS_RESOURCE. In today's Linux a high-resolution timer of the \
kernel stands for the clock's own periodic interrupt (drivers/rtc/interface.c). Follows RealFeel.",
    params: PARAMS,
    overrides: &[],
    without: &[],
    check,
    needs: &[REAL_TIME_CLOCK],
    device: Some("rtc"),
    pace: Pace::Ticks,
    dithers: |_| false,
    primary: Primary {
        name: "deviation",
        meaning: "time between two reads that return minus 1 / rate",
        nouns: ("interval", "intervals"),
        by: By::Thread,
    },
    series: &[],
    counters: &[],
    state: State::There(open),
};

pub(super) fn check(values: &Values) -> Result<(), String> {
    if !values.number("rate").is_power_of_two() {
        return Err(values.wrong("rate", "the clock needs a power of two"));
    }
    if values.known_number("threads") != Some(1) {
        let why = "the probe needs the clock for itself, so it has one thread";
        return Err(values.wrong("threads", why));
    }
    Ok(())
}

/// Those of every probe of the clock.
pub(super) const PARAMS: &[Param] = &[
    Param {
        name: "rate",
        kind: Kind::Count { low: 64, high: 8_192 },
        default: Default::Value("2048"),
        help: "interrupts a second, a power of two",
    },
    Param {
        name: "device",
        kind: Kind::Text { value: "FILE", check: any_text },
        default: Default::Value("/dev/rtc0"),
        help: "the clock",
    },
];

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let clock = RealTimeClock::open(values, stage)?;
    let (period_ns, break_ns) = (stage.interval_ns, stage.break_ns);
    Ok(Box::new(Ticking { clock, period_ns, break_ns }))
}

/// A real-time clock that interrupts. All but waiting is done in the main thread: see [`Rtc`].
pub(super) struct RealTimeClock(Arc<Rtc>);

impl RealTimeClock {
    /// Opens the clock of the parameters and lets it interrupt.
    ///
    /// # Errors
    /// Why it does not, and what would help.
    pub(super) fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Self, String> {
        let (device, rate) = (values.text("device"), values.number("rate"));
        let (policy, _) = sched::get().map_err(|error| format!("sched_getattr: {error}"))?;
        if policy.is_real_time() {
            return Err(
                "punctual itself has real-time priority, with which turning the interrupt off \
                        can hang a kernel with PREEMPT_RT; start it without chrt"
                    .to_owned(),
            );
        }
        let rtc = Rtc::open(Path::new(device)).map_err(|error| not_opened(device, &error))?;
        stage
            .journal
            .rtc_rate(Path::new(device), &rtc, rate)
            .and_then(|()| rtc.start())
            .map_err(|error| not_started(device, rate, &error))?;
        Ok(Self(Arc::new(rtc)))
    }

    /// What a thread waits for; it hands over how many ticks were missed and when it ran.
    pub(super) fn listener(
        &self,
        period_ns: u64,
        break_ns: i64,
        handed: Option<Arc<Handover<2>>>,
    ) -> Listener<Rtc> {
        Listener { ticks: Arc::clone(&self.0), period_ns, break_ns, handed }
    }

    /// Ends the interrupts; returns what there is to know about them.
    pub(super) fn close(self) -> Vec<Condition> {
        let mut notes = vec![Condition {
            id: "rtc-emulated".to_owned(),
            text:
                "the interrupts are those of a high-resolution timer, with which Linux stands in \
                   for the clock's own"
                    .to_owned(),
        }];
        if let Err(error) = self.0.stop() {
            let id = "rtc-not-stopped".to_owned();
            let text = format!("the interrupt could not be turned off: {}", text(&error));
            notes.push(Condition { id, text });
        }
        notes
    }
}

fn not_opened(device: &str, error: &io::Error) -> String {
    let help = match error.kind() {
        io::ErrorKind::NotFound => {
            "; the kernel has no driver for a real-time clock (CONFIG_RTC_INTF_DEV), or its name is \
             another one (device=)"
        }
        io::ErrorKind::ResourceBusy => {
            "; another program has it, such as hwclock or a daemon that sets it (fuser tells which)"
        }
        io::ErrorKind::PermissionDenied => "; run as root, or let this user read it",
        _ => "",
    };
    format!("cannot open {device}: {}{help}", text(error))
}

fn not_started(device: &str, rate: u64, error: &io::Error) -> String {
    let help = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; it takes CAP_SYS_RESOURCE, or the rate in its max_user_freq (/sys/class/rtc)"
        }
        _ => "",
    };
    format!("{device} gives no {rate} interrupts a second: {}{help}", text(error))
}

struct Ticking {
    clock: RealTimeClock,
    period_ns: u64,
    break_ns: i64,
}

impl Session for Ticking {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        Ok(Box::new(self.clock.listener(self.period_ns, self.break_ns, None)))
    }

    fn close(self: Box<Self>) -> Closed {
        Closed { counts: Vec::new(), notes: self.clock.close() }
    }
}

/// What ticks.
pub(super) trait Ticker: Send + Sync {
    /// Waits for a tick and returns how many there were since the last wait; `None` after a
    /// signal.
    fn wait(&self) -> io::Result<Option<u64>>;
}

impl Ticker for Rtc {
    #[inline(always)]
    fn wait(&self) -> io::Result<Option<u64>> {
        Rtc::wait(self)
    }
}

/// The thread that measures.
pub(super) struct Listener<T> {
    ticks: Arc<T>,
    period_ns: u64,
    break_ns: i64,
    handed: Option<Arc<Handover<2>>>,
}

impl<T: Ticker> ProbeThread for Listener<T> {
    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let Some(mut last) = self.first(window, stop)? else { return Ok(()) };
        let mut left = window.samples;
        if let Some(handed) = &self.handed {
            handed.begin();
        }
        while left > 0 && last + self.period_ns < window.end && !stop.is_set() {
            let ticks = match self.ticks.wait()? {
                Some(ticks) => ticks,
                // One that is overdue at the end counts: people end a run because it hangs.
                None if stop.is_over(window) && monotonic_ns() > last + self.period_ns => 1,
                None => continue,
            };
            let now = monotonic_ns();
            let deviation = (now - last).wrapping_sub(self.period_ns).cast_signed();
            let missed = if ticks > 1 { self.missed(last, ticks, window) } else { 0 };
            tracks[0].record(now, deviation, missed);
            if let Some(handed) = &self.handed {
                handed.put([missed, now]);
            }
            left -= 1;
            if deviation > self.break_ns {
                stop.set_broken(last + self.period_ns, deviation);
            }
            last = now;
        }
        Ok(())
    }
}

impl<T: Ticker> Listener<T> {
    /// The instant of the first tick in the window, from which the first interval is measured.
    fn first(&self, window: &Window, stop: &Stop) -> io::Result<Option<u64>> {
        loop {
            let is_tick = self.ticks.wait()?.is_some();
            let now = monotonic_ns();
            if now >= window.end || stop.is_set() {
                return Ok(None);
            }
            if is_tick && now >= window.first {
                return Ok(Some(now));
            }
        }
    }

    /// How many of the ticks since the instant `last` were missed before the end.
    #[cold]
    fn missed(&self, last: u64, ticks: u64, window: &Window) -> u64 {
        (ticks - 1).min((window.end - last) / self.period_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::aim::Aim;
    use punctual_core::stats::Limits;
    use punctual_sys::timer::{AbsoluteSleep, Wait};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    const PERIOD_NS: u64 = 10_000_000;

    /// Ticks of the system's timer, one of which comes late.
    struct Stalling {
        first: u64,
        /// How many have come.
        come: AtomicU64,
        /// After so many, or more on a busy machine, one wait is this much longer, ns.
        stall: (u64, u64),
        stalled: AtomicBool,
        stop: Arc<Stop>,
        /// After so many, signals come instead.
        signals: u64,
    }

    impl Ticker for Stalling {
        fn wait(&self) -> io::Result<Option<u64>> {
            let come = self.come.load(Ordering::Relaxed);
            let stalls = come >= self.stall.0 && !self.stalled.swap(true, Ordering::Relaxed);
            let due = self.first + come * PERIOD_NS;
            // Counted from now, since the tick before may have come late itself.
            let until =
                if stalls { due.max(monotonic_ns() + PERIOD_NS) + self.stall.1 } else { due };
            AbsoluteSleep.until(until)?;
            if come >= self.signals {
                self.stop.set();
                return Ok(None);
            }
            let due = (monotonic_ns() - self.first) / PERIOD_NS + 1;
            self.come.store(due, Ordering::Relaxed);
            Ok(Some(due - come))
        }
    }

    fn run(stall: (u64, u64), signals: u64, long_ns: u64) -> (crate::recorder::Recording, u64) {
        let stop = Arc::new(Stop::default());
        let first = monotonic_ns() + PERIOD_NS;
        let timer = Stalling {
            first,
            come: AtomicU64::new(0),
            stall,
            stalled: AtomicBool::new(false),
            stop: Arc::clone(&stop),
            signals,
        };
        let mut listener = Listener {
            ticks: Arc::new(timer),
            period_ns: PERIOD_NS,
            break_ns: i64::MAX,
            handed: None,
        };
        let end = first + long_ns;
        let window = Window { first, end, samples: u64::MAX, aim: Aim::NONE };
        let mut recorder = [Recorder::new(Limits::NONE)];
        recorder[0].begin(first);
        listener.run(&window, &mut recorder, &stop).unwrap();
        let [recorder] = recorder;
        (recorder.finish(), listener.ticks.come.load(Ordering::Relaxed))
    }

    #[test]
    fn a_late_interval_is_followed_by_a_short_one() {
        let (found, come) = run((4, 5_000_000), u64::MAX, 20 * PERIOD_NS);
        let Some(late) = found.outliers.iter().max_by_key(|one| one.latency) else { panic!() };
        assert!(late.latency >= 5_000_000, "{found:?}");
        assert!(found.moments.min < 0, "{found:?}");
        // All ticks but the first end an interval, or are missed on a busy machine.
        assert_eq!(found.moments.count + found.moments.missed, come - 1, "{found:?}");
        // Over all intervals, what is late makes up for what is early, but for how late the last is:
        // less than a period, unless a busy machine missed some.
        let sum = found.moments.sum;
        let most = 10_000_000 + i128::from(PERIOD_NS);
        assert!(found.moments.missed > 0 || sum.abs() < most, "{found:?}");
    }

    #[test]
    fn ticks_that_passed_meanwhile_are_missed_and_those_behind_the_end_are_not() {
        let (found, come) = run((4, 55_000_000), u64::MAX, 40 * PERIOD_NS);
        assert!(found.moments.missed >= 5 && found.moments.max >= 50_000_000, "{found:?}");
        assert_eq!(found.moments.count + found.moments.missed, come - 1);
        // It lasts until 250 ms, and the window until 100 ms.
        let (found, come) = run((4, 210_000_000), u64::MAX, 10 * PERIOD_NS);
        assert!(come >= 25, "{come}");
        assert!(found.moments.count + found.moments.missed <= 10, "{found:?}");
    }

    #[test]
    fn a_tick_that_does_not_come_counts_at_the_end() {
        let (found, _) = run((3, 300_000_000), 3, 1_000 * PERIOD_NS);
        assert!(found.moments.max >= 280_000_000, "{found:?}");
    }

    #[test]
    fn the_rate_is_a_power_of_two_and_there_is_one_thread() {
        let read = |name: &str, value: &str| {
            ENTRY.read(&[(name.to_owned(), value.to_owned())].into()).map(drop)
        };
        assert_eq!((read("rate", "64"), read("rate", "8192")), (Ok(()), Ok(())));
        assert!(read("rate", "1000").unwrap_err().contains("power of two"));
        assert!(read("threads", "2").unwrap_err().contains("one thread"));
        assert!(read("threads", "per-cpu").unwrap_err().contains("one thread"));
    }
}
