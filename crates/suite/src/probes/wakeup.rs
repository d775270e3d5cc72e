//! `wakeup`: how late a sleeping thread starts to run, measured as in cyclictest.

use std::io;
use std::sync::Arc;

use punctual_core::schema::Condition;
use punctual_core::units::BareNumber;
use punctual_sys::sched::{Policy, Reservation};
use punctual_sys::timer::{
    AbsoluteSleep, AlarmsBlocked, EpollTimer, FutexTimeout, IntervalTimer, PosixTimer,
    RelativeSleep, RingTimeout, TimerFd,
};

use super::deadline::reserve;
use super::serve::Serve;
use crate::recorder::Recorder;
use crate::registry::need::IO_URING;
use crate::registry::probe::{
    By, Closed, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage, State, Stop, Window,
};
use crate::registry::threads::POLICY_OR_DEADLINE;
use crate::registry::{Choice, Default, Kind, Param, Values};
use crate::schedule::Schedule;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "wakeup",
    summary: "how late a sleeping thread starts to run after its release (as cyclictest)",
    help: "Each thread waits for its next release on CLOCK_MONOTONIC, reads the clock when it \
runs, and records now - release. Releases are at start + k x interval, whatever happened before; \
those that pass while the thread is late are counted as missed. Follows cyclictest (rt-tests). \
If releases are dithered (run --dither, and on virtual boards always), each is moved within its \
interval; those of timer=posix, timerfd, epoll and itimer, which the kernel repeats, cannot be. \
timer=relative is a common mistake: its latencies include the time between reading the clock and \
going to sleep. timer=itimer is set relative to now in whole microseconds: all its releases come late \
by up to 1 us and the time of that call. With policy=deadline each thread reserves runtime=TIME in each \
interval (SCHED_DEADLINE; the interval is its period and its deadline), and its latency is that of a job: \
the kernel refuses reservations that could not all be kept (sysctl kernel.sched_rt_runtime_us), and \
threads that may not run on every CPU of their root domain.",
    params: &[
        Param {
            name: "timer",
            kind: Kind::Choice(&[
                Choice::of("nanosleep", "absolute clock_nanosleep"),
                Choice::of("posix", "timer_create and sigwaitinfo"),
                Choice::of("timerfd", "read of a timerfd"),
                Choice::of("relative", "clock_nanosleep for the time left"),
                Choice::of("epoll", "epoll_wait for a timerfd, then its read"),
                Choice::of("futex", "FUTEX_WAIT_BITSET with an absolute timeout"),
                Choice::of("itimer", "setitimer and sigtimedwait, one thread"),
                Choice { value: "io_uring", help: "IORING_OP_TIMEOUT", needs: &[IO_URING] },
            ]),
            default: Default::Value("nanosleep"),
            help: "way to wait",
        },
        POLICY_OR_DEADLINE,
        Param {
            name: "runtime",
            kind: Kind::Or(
                &[Choice::of(AUTO, "a fifth of the interval")],
                &Kind::Time { bare: BareNumber::Microseconds, low: 1_024, high: HOUR_NS },
            ),
            default: Default::Value(AUTO),
            help: "CPU time that policy=deadline reserves in each interval",
        },
    ],
    overrides: &[],
    without: &[],
    check,
    needs: &[],
    device: None,
    pace: Pace::Periodic,
    // The kernel repeats the other timers by itself.
    dithers: |values| !["posix", "timerfd", "epoll", "itimer"].contains(&values.text("timer")),
    primary: Primary {
        name: "latency",
        meaning: "start of the work minus its release",
        nouns: ("activation", "activations"),
        by: By::Thread,
    },
    series: &[],
    counters: &[],
    state: State::There(open),
};

const AUTO: &str = "auto";

const HOUR_NS: u64 = 3_600_000_000_000;

fn check(values: &Values) -> Result<(), String> {
    let interval_ns = values.number("interval");
    let reserves = values.text("policy") == "deadline";
    match values.known_number("runtime") {
        Some(_) if !reserves => {
            return Err(values.wrong("runtime", "needs policy=deadline, which reserves it"));
        }
        Some(runtime_ns) if runtime_ns > interval_ns => {
            return Err(values.wrong("runtime", "needs an interval that is not shorter"));
        }
        // The least that the kernel takes (sched(7)).
        None if reserves && interval_ns < 5 * 1_024 => {
            return Err(values.wrong("interval", "policy=deadline needs 6us or more"));
        }
        _ => {}
    }
    if values.text("timer") != "itimer" {
        return Ok(());
    }
    if values.known_number("threads") != Some(1) {
        return Err(values.wrong("timer", "needs threads=1: a process has one such timer"));
    }
    if !values.number("interval").is_multiple_of(1_000) {
        return Err(values.wrong("timer", "needs an interval of whole microseconds"));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Timer {
    Nanosleep,
    Posix,
    Descriptor,
    Relative,
    Epoll,
    Futex,
    Interval,
    Ring,
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let timer = match values.text("timer") {
        "posix" => Timer::Posix,
        "timerfd" => Timer::Descriptor,
        "relative" => Timer::Relative,
        "epoll" => Timer::Epoll,
        "futex" => Timer::Futex,
        "itimer" => Timer::Interval,
        "io_uring" => Timer::Ring,
        _ => Timer::Nanosleep,
    };
    let interval_ns = stage.interval_ns;
    let offsets = stage.dither.map(|dither| dither.offsets_ns(interval_ns));
    let offsets = offsets.map_or_else(|| Arc::new([]) as Arc<[u64]>, Arc::from);
    let alarms = matches!(timer, Timer::Interval).then(AlarmsBlocked::new).transpose();
    let alarms = alarms.map_err(|error| error.to_string())?;
    let break_ns = stage.break_ns;
    let runtime_ns = values.known_number("runtime").unwrap_or(interval_ns / 5);
    let reserved = (stage.scheduling.0 == Policy::Deadline).then_some(Reservation {
        runtime_ns,
        deadline_ns: interval_ns,
        period_ns: interval_ns,
    });
    Ok(Box::new(Wakeups { timer, interval_ns, offsets, break_ns, reserved, _alarms: alarms }))
}

struct Wakeups {
    timer: Timer,
    interval_ns: u64,
    /// By how much releases are moved, ns; empty if they are not.
    offsets: Arc<[u64]>,
    break_ns: i64,
    reserved: Option<Reservation>,
    /// Until all threads have ended.
    _alarms: Option<AlarmsBlocked>,
}

impl Session for Wakeups {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let Self { timer, interval_ns, ref offsets, break_ns, reserved, .. } = *self;
        let offsets = Arc::clone(offsets);
        let disagreement = None;
        Ok(Box::new(Wakeup { timer, interval_ns, offsets, break_ns, reserved, disagreement }))
    }

    fn close(self: Box<Self>) -> Closed {
        Closed::default()
    }
}

struct Wakeup {
    timer: Timer,
    interval_ns: u64,
    offsets: Arc<[u64]>,
    break_ns: i64,
    reserved: Option<Reservation>,
    /// Releases by our count and expirations by the timerfd's, if they differ.
    disagreement: Option<(u64, u64)>,
}

impl ProbeThread for Wakeup {
    fn prepare(&mut self) -> io::Result<()> {
        self.reserved.map_or(Ok(()), reserve)
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let interval = self.interval_ns;
        let aim = window.aim;
        let schedule = Schedule::dithered(window.first, interval, window.end, &self.offsets)
            .aimed(aim.release, window.first.saturating_add(aim.at_ns));
        let hot = Serve::new(schedule, &mut tracks[0], window.samples, stop, self.break_ns);
        match self.timer {
            Timer::Nanosleep => hot.run(&mut AbsoluteSleep, nothing).map(drop),
            Timer::Relative => hot.run(&mut RelativeSleep, nothing).map(drop),
            Timer::Posix => {
                hot.run(&mut PosixTimer::new(window.first, interval)?, nothing).map(drop)
            }
            Timer::Epoll => {
                hot.run(&mut EpollTimer::new(window.first, interval)?, nothing).map(drop)
            }
            Timer::Futex => hot.run(&mut FutexTimeout::default(), nothing).map(drop),
            Timer::Interval => {
                hot.run(&mut IntervalTimer::new(window.first, interval)?, nothing).map(drop)
            }
            Timer::Ring => hot.run(&mut RingTimeout::new()?, nothing).map(drop),
            Timer::Descriptor => {
                let mut timer = TimerFd::new(window.first, interval)?;
                let releases = hot.run(&mut timer, nothing)?;
                // A read returns all expirations so far; by our count that is the release
                // served last.
                if timer.expirations() < releases {
                    self.disagreement = Some((releases, timer.expirations()));
                }
                Ok(())
            }
        }
    }

    fn notes(&self) -> Vec<Condition> {
        self.disagreement
            .map(|(releases, expirations)| Condition {
                id: "timerfd-disagrees".to_owned(),
                text: format!(
                    "the timerfd counted {expirations} expirations although {releases} releases were \
                     served or missed: the account of missed periods is wrong"
                ),
            })
            .into_iter()
            .collect()
    }
}

/// The thread has nothing to do but to measure.
#[inline(always)]
fn nothing(_: u64, _: i64) {}
