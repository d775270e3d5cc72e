//! Releases of a periodic probe: when the next one is due, and which were missed.

use punctual_core::histogram::missed_behind;

/// The releases of one thread: `first + k x interval`, as long as they are before `end`.
#[derive(Debug, Clone, Copy)]
pub struct Schedule {
    release: u64,
    interval: u64,
    end: u64,
}

impl Schedule {
    /// The releases from `first` on, every `interval` (at least 1), before `end`; all ns.
    #[must_use]
    pub fn new(first: u64, interval: u64, end: u64) -> Self {
        Self { release: first, interval: interval.max(1), end }
    }

    /// The release that is due next; `None` after the end.
    #[inline(always)]
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        (self.release < self.end).then_some(self.release)
    }

    /// The work of the current release started at `now`: returns its signed latency and how
    /// many later releases have passed meanwhile. Advances to the first release that has not
    /// passed; one that is due exactly now has not.
    #[inline(always)]
    pub fn serve(&mut self, now: u64) -> (i64, u64) {
        let latency = now.wrapping_sub(self.release).cast_signed();
        self.release += self.interval;
        if self.release < now {
            return (latency, self.skip(now));
        }
        (latency, 0)
    }

    #[cold]
    fn skip(&mut self, now: u64) -> u64 {
        // `release` already points at the one after the release that was served.
        let passed = missed_behind(now - self.release, self.interval) + 1;
        let left = self.end.saturating_sub(self.release).div_ceil(self.interval);
        self.release = self.release.saturating_add(passed * self.interval);
        passed.min(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_release_that_is_due_now_is_not_missed() {
        let mut schedule = Schedule::new(1_000, 100, 10_000);
        assert_eq!(schedule.serve(1_100), (100, 0));
        assert_eq!(schedule.next(), Some(1_100));
        assert_eq!(schedule.serve(1_301), (201, 2));
        assert_eq!(schedule.next(), Some(1_400));
        assert_eq!(schedule.serve(1_390), (-10, 0));
    }

    #[test]
    fn releases_behind_the_end_are_not_missed() {
        let mut schedule = Schedule::new(0, 100, 500);
        assert_eq!(schedule.serve(10_000), (10_000, 4));
        assert_eq!(schedule.next(), None);
    }

    proptest! {
        #[test]
        fn every_release_is_served_or_missed(
            interval in 1_u64..1_000, releases in 1_u64..2_000, delays in prop::collection::vec(0_u64..5_000, 1..50),
        ) {
            let end = 7 + releases * interval;
            let mut schedule = Schedule::new(7, interval, end);
            let (mut served, mut missed) = (0, 0);
            for delay in delays.iter().cycle() {
                let Some(release) = schedule.next() else { break };
                let (latency, skipped) = schedule.serve(release + delay);
                prop_assert_eq!(latency.unsigned_abs(), *delay);
                served += 1;
                missed += skipped;
            }
            prop_assert_eq!(served + missed, releases);
        }
    }
}
