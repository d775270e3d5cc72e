//! Serving releases, for every probe whose threads wait for them.

use std::io;

use punctual_sys::clock::monotonic_ns;
use punctual_sys::timer::{Wait, Waited};

use crate::recorder::Recorder;
use crate::registry::probe::Stop;
use crate::schedule::Schedule;

/// Serves the releases of a window: waits for each, records how late it is, and does its job.
pub(super) struct Serve<'a> {
    schedule: Schedule<'a>,
    recorder: &'a mut Recorder,
    stop: &'a Stop,
    samples: u64,
    break_ns: i64,
    /// Whether a sample was above the break value.
    broke: bool,
}

impl<'a> Serve<'a> {
    /// Up to so many releases. A latency above the break value ends the cell.
    pub(super) fn new(
        schedule: Schedule<'a>,
        recorder: &'a mut Recorder,
        samples: u64,
        stop: &'a Stop,
        break_ns: i64,
    ) -> Self {
        Self { schedule, recorder, stop, samples, break_ns, broke: false }
    }

    /// Serves releases until the end, with a job to do after each, told of the release and the
    /// latency, ns; returns how many were served or missed before the last served one.
    #[inline(always)]
    pub(super) fn run<W: Wait>(
        mut self,
        wait: &mut W,
        mut job: impl FnMut(u64, i64),
    ) -> io::Result<u64> {
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
            let latency;
            (latency, behind) = self.serve(monotonic_ns());
            left -= 1;
            job(release, latency);
        }
        // After its own break a thread is late because it stopped the trace.
        if left > 0 && !self.broke {
            self.serve_overdue();
        }
        Ok(accounted)
    }

    /// Records the release that is due; returns its latency and how many were missed behind it.
    #[inline(always)]
    fn serve(&mut self, now: u64) -> (i64, u64) {
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
        (latency, missed)
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
    use punctual_sys::timer::AbsoluteSleep;

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
        let accounted =
            serve.run(&mut Lost { fires: 1, stop: &stop, stall_ns }, |_, _| {}).unwrap();
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
        serve.run(&mut AbsoluteSleep, |_, _| {}).unwrap();
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
        serve.run(&mut wait, |_, _| {}).unwrap();
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
