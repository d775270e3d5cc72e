//! `wakeup`: how late a sleeping thread starts to run, measured as in cyclictest.

use std::io;
use std::sync::Arc;

use punctual_core::schema::Condition;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::timer::{
    AbsoluteSleep, EpollTimer, FutexTimeout, PosixTimer, RelativeSleep, RingTimeout, TimerFd, Wait,
    Waited,
};

use crate::recorder::Recorder;
use crate::registry::need::IO_URING;
use crate::registry::probe::{
    By, Closed, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage, State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};
use crate::schedule::Schedule;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "wakeup",
    summary: "how late a sleeping thread starts to run after its release (as cyclictest)",
    help: "Each thread waits for its next release on CLOCK_MONOTONIC, reads the clock when it \
runs, and records now - release. Releases are at start + k x interval, whatever happened before; \
those that pass while the thread is late are counted as missed. Follows cyclictest (rt-tests). \
If releases are dithered (run --dither, and on virtual boards always), each is moved within its \
interval; those of timer=posix, timerfd and epoll, which the kernel repeats, cannot be. \
timer=relative is a common mistake: its latencies include the time between reading the clock and \
going to sleep.",
    params: &[Param {
        name: "timer",
        kind: Kind::Choice(&[
            Choice::of("nanosleep", "absolute clock_nanosleep"),
            Choice::of("posix", "timer_create and sigwaitinfo"),
            Choice::of("timerfd", "read of a timerfd"),
            Choice::of("relative", "clock_nanosleep for the time left"),
            Choice::of("epoll", "epoll_wait for a timerfd, then its read"),
            Choice::of("futex", "FUTEX_WAIT_BITSET with an absolute timeout"),
            Choice { value: "io_uring", help: "IORING_OP_TIMEOUT", needs: &[IO_URING] },
        ]),
        default: Default::Value("nanosleep"),
        help: "way to wait",
    }],
    overrides: &[],
    without: &[],
    check: |_| Ok(()),
    needs: &[],
    device: None,
    pace: Pace::Periodic,
    // The kernel repeats the other timers by itself.
    dithers: |values| !["posix", "timerfd", "epoll"].contains(&values.text("timer")),
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

#[derive(Clone, Copy)]
enum Timer {
    Nanosleep,
    Posix,
    Descriptor,
    Relative,
    Epoll,
    Futex,
    Ring,
}

#[allow(clippy::unnecessary_wraps, reason = "sessions can fail to open; this one does not")]
fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let timer = match values.text("timer") {
        "posix" => Timer::Posix,
        "timerfd" => Timer::Descriptor,
        "relative" => Timer::Relative,
        "epoll" => Timer::Epoll,
        "futex" => Timer::Futex,
        "io_uring" => Timer::Ring,
        _ => Timer::Nanosleep,
    };
    let interval_ns = stage.interval_ns;
    let offsets = stage.dither.map(|dither| dither.offsets_ns(interval_ns));
    let offsets = offsets.map_or_else(|| Arc::new([]) as Arc<[u64]>, Arc::from);
    Ok(Box::new(Wakeups { timer, interval_ns, offsets, break_ns: stage.break_ns }))
}

struct Wakeups {
    timer: Timer,
    interval_ns: u64,
    /// By how much releases are moved, ns; empty if they are not.
    offsets: Arc<[u64]>,
    break_ns: i64,
}

impl Session for Wakeups {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let Self { timer, interval_ns, ref offsets, break_ns } = *self;
        let offsets = Arc::clone(offsets);
        Ok(Box::new(Wakeup { timer, interval_ns, offsets, break_ns, disagreement: None }))
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
    /// Releases by our count and expirations by the timerfd's, if they differ.
    disagreement: Option<(u64, u64)>,
}

impl ProbeThread for Wakeup {
    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let interval = self.interval_ns;
        let aim = window.aim;
        let schedule = Schedule::dithered(window.first, interval, window.end, &self.offsets)
            .aimed(aim.release, window.first.saturating_add(aim.at_ns));
        let hot = Serve {
            schedule,
            recorder: &mut tracks[0],
            stop,
            samples: window.samples,
            break_ns: self.break_ns,
            broke: false,
        };
        match self.timer {
            Timer::Nanosleep => hot.run(&mut AbsoluteSleep).map(drop),
            Timer::Relative => hot.run(&mut RelativeSleep).map(drop),
            Timer::Posix => hot.run(&mut PosixTimer::new(window.first, interval)?).map(drop),
            Timer::Epoll => hot.run(&mut EpollTimer::new(window.first, interval)?).map(drop),
            Timer::Futex => hot.run(&mut FutexTimeout::default()).map(drop),
            Timer::Ring => hot.run(&mut RingTimeout::new()?).map(drop),
            Timer::Descriptor => {
                let mut timer = TimerFd::new(window.first, interval)?;
                let releases = hot.run(&mut timer)?;
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

struct Serve<'a> {
    schedule: Schedule<'a>,
    recorder: &'a mut Recorder,
    stop: &'a Stop,
    samples: u64,
    break_ns: i64,
    /// Whether a sample was above the break value.
    broke: bool,
}

impl Serve<'_> {
    /// Serves releases until the end; returns how many were served or missed before the last
    /// served one.
    #[inline(always)]
    fn run<W: Wait>(mut self, wait: &mut W) -> io::Result<u64> {
        let mut left = self.samples;
        let mut accounted = 0;
        let mut behind = 0;
        while left > 0 && !self.stop.is_set() {
            let Some(release) = self.schedule.next() else {
                // Asked here, the releases before it have no step for it.
                if self.schedule.turn_to_aimed() {
                    continue;
                }
                break;
            };
            if wait.until(release)? == Waited::Interrupted {
                continue;
            }
            accounted += 1 + behind;
            behind = self.serve(monotonic_ns());
            left -= 1;
        }
        // After its own break a thread is late because it stopped the trace.
        if left > 0 && !self.broke {
            self.serve_overdue();
        }
        Ok(accounted)
    }

    /// Records the release that is due; returns how many were missed behind it.
    #[inline(always)]
    fn serve(&mut self, now: u64) -> u64 {
        let (latency, missed) = self.schedule.serve(now);
        if missed > 0 && self.schedule.is_dithered() {
            self.recorder.record(now, latency, 0);
            self.recorder.missed(now, self.schedule.missed_by(now, missed));
        } else {
            self.recorder.record(now, latency, missed);
        }
        if latency > self.break_ns {
            self.broke = true;
            self.stop.set_broken(now.saturating_add_signed(-latency), latency);
        }
        missed
    }

    /// A thread that was told to end in a stall has a release that is overdue. It counts, with
    /// what was missed meanwhile: people end a run because it hangs.
    #[cold]
    fn serve_overdue(&mut self) {
        let now = monotonic_ns();
        if self.schedule.next().is_some_and(|release| release < now) {
            self.serve(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::stats::Limits;

    /// A timer that never fires after its first releases: after a while the thread is told to
    /// end, and a signal ends its wait.
    struct Lost<'a> {
        fires: u32,
        stop: &'a Stop,
        stall_ns: u64,
    }

    impl Wait for Lost<'_> {
        fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
            if self.fires > 0 {
                self.fires -= 1;
                return AbsoluteSleep.until(release_ns);
            }
            AbsoluteSleep.until(release_ns.saturating_add_signed(self.stall_ns.cast_signed()))?;
            self.stop.set();
            Ok(Waited::Interrupted)
        }
    }

    fn lost(stall_ns: u64, samples: u64, break_ns: i64) -> (crate::recorder::Recording, Stop) {
        const INTERVAL: u64 = 1_000_000;
        let (stop, mut recorder) = (Stop::default(), Recorder::new(Limits::NONE));
        let first = monotonic_ns() + INTERVAL;
        recorder.begin(first);
        let serve = Serve {
            schedule: Schedule::new(first, INTERVAL, first + 1_000 * INTERVAL),
            recorder: &mut recorder,
            stop: &stop,
            samples,
            break_ns,
            broke: false,
        };
        let accounted = serve.run(&mut Lost { fires: 1, stop: &stop, stall_ns }).unwrap();
        assert_eq!(accounted, 1, "what the timer has told of");
        (recorder.finish(), stop)
    }

    #[test]
    fn a_stall_in_progress_at_the_end_is_served_and_counted() {
        let (found, stop) = lost(50_000_000, u64::MAX, 40_000_000);
        // The first release may be late itself on a busy machine.
        assert_eq!(found.moments.count, 2);
        assert!(found.moments.max >= 50_000_000, "{found:?}");
        assert!(found.moments.missed >= 49, "{found:?}");
        assert!(stop.broken().is_some(), "it is above the break value");
    }

    #[test]
    fn after_its_own_break_nothing_is_overdue() {
        let (stop, mut recorder) = (Stop::default(), Recorder::new(Limits::NONE));
        let first = monotonic_ns() - 1_000;
        recorder.begin(first);
        let serve = Serve {
            // The next release is over as soon as the break is told.
            schedule: Schedule::new(first, 1, u64::MAX),
            recorder: &mut recorder,
            stop: &stop,
            samples: u64::MAX,
            break_ns: 0,
            broke: false,
        };
        serve.run(&mut AbsoluteSleep).unwrap();
        assert!(stop.broken().is_some());
        assert_eq!(recorder.finish().moments.count, 1);
    }

    /// Waits as it should, and stalls after one of the releases; notes what it was asked for.
    struct Noted {
        asked: Vec<u64>,
        stall: Option<(usize, u64)>,
    }

    impl Wait for Noted {
        fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
            self.asked.push(release_ns);
            if let Some((place, until_ns)) = self.stall
                && self.asked.len() == place
            {
                return AbsoluteSleep.until(until_ns);
            }
            // As after a signal that does not end the cell.
            AbsoluteSleep.until(release_ns)?;
            Ok(if self.asked.len() == 1 { Waited::Interrupted } else { Waited::Released })
        }
    }

    /// What is recorded of releases every 20 ms whose sixth is aimed at `at_ns` after the first
    /// one, if the release that is asked for as the third one stalls until `stall_ns` after the
    /// first one; and what was asked for, ns after the first one.
    fn aimed(
        at_ns: u64,
        stall_ns: Option<u64>,
        samples: u64,
    ) -> (crate::recorder::Recording, Vec<u64>) {
        const INTERVAL: u64 = 20_000_000;
        let (stop, mut recorder) = (Stop::default(), Recorder::new(Limits::NONE));
        let first = monotonic_ns() + INTERVAL;
        recorder.begin(first);
        let serve = Serve {
            schedule: Schedule::new(first, INTERVAL, first + 1_000 * INTERVAL)
                .aimed(6, first + at_ns),
            recorder: &mut recorder,
            stop: &stop,
            samples,
            break_ns: i64::MAX,
            broke: false,
        };
        let mut wait = Noted { asked: Vec::new(), stall: stall_ns.map(|ns| (3, first + ns)) };
        serve.run(&mut wait).unwrap();
        let asked = wait.asked.iter().map(|release| release - first).collect();
        (recorder.finish(), asked)
    }

    #[test]
    fn the_aimed_release_is_served_where_it_is_aimed_and_nothing_after_it() {
        // Before and after its place, which is at 100 ms.
        for at_ns in [85_000_000, 173_000_000] {
            let (found, asked) = aimed(at_ns, None, u64::MAX);
            assert_eq!(asked.last(), Some(&at_ns), "{asked:?}");
            // A busy machine may miss some, but none behind it.
            assert_eq!(found.moments.count + found.moments.missed, 6, "{found:?}");
            let last = found.outliers.last().unwrap();
            assert_eq!(last.at.checked_add_signed(-last.latency), Some(at_ns), "{found:?}");
        }
    }

    #[test]
    fn an_aimed_release_that_has_passed_is_served_late() {
        let (found, asked) = aimed(110_000_000, Some(250_000_000), u64::MAX);
        assert_eq!(asked.last(), Some(&110_000_000));
        assert_eq!(found.moments.count + found.moments.missed, 6, "{found:?}");
        assert!(found.moments.missed >= 3, "{found:?}");
        let last = found.outliers.last().unwrap();
        assert_eq!(last.at.checked_add_signed(-last.latency), Some(110_000_000), "{found:?}");
        assert!(last.at >= 250_000_000, "{found:?}");
    }

    #[test]
    fn a_cell_with_all_its_samples_does_not_turn_to_an_aimed_release() {
        let (found, asked) = aimed(900_000_000, None, 2);
        assert!(found.moments.count == 2 && !asked.contains(&900_000_000), "{found:?}");
    }

    #[test]
    fn after_the_last_sample_nothing_is_overdue() {
        assert_eq!(lost(0, 1, i64::MAX).0.moments.count, 1);
    }
}
