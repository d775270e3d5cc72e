//! `wakeup`: how late a sleeping thread starts to run, as cyclictest measures it.

use std::io;

use punctual_core::schema::Condition;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::timer::{AbsoluteSleep, PosixTimer, RelativeSleep, TimerFd, Wait, Waited};

use super::{Common, Factory, Kind, ProbeEntry, ProbeThread, Stop, Window};
use crate::recorder::Recorder;
use crate::registry::{Param, Values};
use crate::schedule::Schedule;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "wakeup",
    summary: "how late a sleeping thread starts to run after its release (as cyclictest)",
    help: "Each thread waits for its next release on CLOCK_MONOTONIC, reads the clock when it \
runs, and records now - release. Releases lie at start + k x interval, whatever happened \
before; those that pass while the thread still waits are counted as missed, never skipped \
silently. Follows cyclictest (rt-tests). timer=relative is what programs do that do not know \
better: its latencies hold the time between reading the clock and sleeping.",
    params: &[Param {
        name: "timer",
        value: "HOW",
        default: "nanosleep",
        help: "way to wait: nanosleep (absolute clock_nanosleep), posix (timer_create and \
sigwaitinfo), timerfd, relative (clock_nanosleep for the time left)",
    }],
    needs: |_| &[],
    series: ("latency", "start of the work minus its release"),
    kind: Kind::Periodic,
    build,
};

#[derive(Clone, Copy)]
enum Timer {
    Nanosleep,
    Posix,
    Descriptor,
    Relative,
}

fn parse_timer(text: &str) -> Result<Timer, &'static str> {
    match text {
        "nanosleep" => Ok(Timer::Nanosleep),
        "posix" => Ok(Timer::Posix),
        "timerfd" => Ok(Timer::Descriptor),
        "relative" => Ok(Timer::Relative),
        _ => Err("must be nanosleep, posix, timerfd or relative"),
    }
}

fn build(values: &Values, common: &Common) -> Result<Factory, String> {
    let timer = values.get("timer", Timer::Nanosleep, parse_timer)?;
    let common = *common;
    Ok(Box::new(move |_| Box::new(Wakeup { timer, common, disagreement: None })))
}

struct Wakeup {
    timer: Timer,
    common: Common,
    /// Releases by our account and expirations by the timerfd's, where they differ.
    disagreement: Option<(u64, u64)>,
}

impl ProbeThread for Wakeup {
    fn run(&mut self, window: &Window, recorder: &mut Recorder, stop: &Stop) -> io::Result<()> {
        let schedule = Schedule::new(window.first, self.common.interval_ns, window.end);
        let interval = self.common.interval_ns;
        let hot = Hot {
            schedule,
            recorder,
            stop,
            samples: window.samples,
            break_ns: self.common.break_ns,
        };
        match self.timer {
            Timer::Nanosleep => hot.run(&mut AbsoluteSleep).map(drop),
            Timer::Relative => hot.run(&mut RelativeSleep).map(drop),
            Timer::Posix => hot.run(&mut PosixTimer::new(window.first, interval)?).map(drop),
            Timer::Descriptor => {
                let mut timer = TimerFd::new(window.first, interval)?;
                let releases = hot.run(&mut timer)?;
                // A read takes every expiration so far; ours is the release served last.
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
                    "the timerfd counted {expirations} expirations where {releases} releases were \
                     served or missed: the account of missed periods is wrong"
                ),
            })
            .into_iter()
            .collect()
    }
}

struct Hot<'a> {
    schedule: Schedule,
    recorder: &'a mut Recorder,
    stop: &'a Stop,
    samples: u64,
    break_ns: i64,
}

impl Hot<'_> {
    /// Serves releases until the end; returns how many were served or missed before the last one served.
    #[inline(always)]
    fn run<W: Wait>(mut self, wait: &mut W) -> io::Result<u64> {
        let mut left = self.samples;
        let mut accounted = 0;
        let mut behind = 0;
        while left > 0 && !self.stop.is_set() {
            let Some(release) = self.schedule.next() else {
                break;
            };
            if wait.until(release)? == Waited::Interrupted {
                continue;
            }
            let now = monotonic_ns();
            let (latency, missed) = self.schedule.serve(now);
            self.recorder.record(now, latency, missed);
            accounted += 1 + behind;
            behind = missed;
            left -= 1;
            if latency > self.break_ns {
                self.stop.set_broken();
            }
        }
        Ok(accounted)
    }
}
