//! Releases of a periodic probe: when the next one is due, and which were missed.

use std::hint::black_box;

/// The offsets of releases that are not dithered.
const NONE: &[u64] = &[0];

/// No instant.
const NEVER: u64 = u64::MAX;

/// The releases of one thread: `first + k x interval + offsets[k]`, as long as they are before
/// `end`. The list of offsets is repeated.
#[derive(Debug, Clone, Copy)]
pub struct Schedule<'a> {
    /// The release that is due next.
    release: u64,
    /// It without its offset.
    base: u64,
    /// The place of its offset.
    place: usize,
    offsets: &'a [u64],
    interval: u64,
    end: u64,
    /// When the release happens that the others end before; [`NEVER`] if there is none.
    aimed: u64,
}

impl<'a> Schedule<'a> {
    /// The releases from `first` on, every `interval` (at least 1), before `end`; all ns.
    #[must_use]
    pub fn new(first: u64, interval: u64, end: u64) -> Self {
        Self::dithered(first, interval, end, NONE)
    }

    /// The same with each release moved by its offset, which is less than an interval; without
    /// any offset none is moved.
    #[must_use]
    pub fn dithered(first: u64, interval: u64, end: u64, offsets: &'a [u64]) -> Self {
        let offsets = if offsets.is_empty() { NONE } else { offsets };
        let release = first + offsets[0];
        let interval = interval.max(1);
        Self { release, base: first, place: 0, offsets, interval, end, aimed: NEVER }
    }

    /// The same up to the release with this number, from 1, which happens at the instant `at`
    /// (ns, after the release before it) and is the last; all of it, if it ends before that
    /// release or the number is 0.
    ///
    /// The others are served as without it: they have another end, and nothing else. No branch
    /// depends on the number: whatever it is, this takes the same instructions.
    #[must_use]
    pub fn aimed(self, number: u64, at: u64) -> Self {
        let places = self.end.saturating_sub(self.base).div_ceil(self.interval);
        let before = number.wrapping_sub(1);
        // A compiler that sees through the mask makes a branch of it.
        let all = black_box(u64::from(before >= places).wrapping_neg());
        let end = self.base.wrapping_add(before.wrapping_mul(self.interval));
        Self { aimed: at | all, end: (end & !all) | (self.end & all), ..self }
    }

    /// Turns to the aimed release once the others have ended; `false` if there is none, or none
    /// any more.
    #[cold]
    #[inline(never)]
    pub fn turn_to_aimed(&mut self) -> bool {
        let at = std::mem::replace(&mut self.aimed, NEVER);
        if at == NEVER {
            return false;
        }
        (self.release, self.base, self.end) = (at, at, at.saturating_add(1));
        true
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
        self.advance();
        if self.release < now {
            return (latency, self.skip(now));
        }
        (latency, 0)
    }

    #[inline(always)]
    fn advance(&mut self) {
        self.base += self.interval;
        self.place += 1;
        if self.place >= self.offsets.len() {
            self.place = 0;
        }
        self.release = self.base + self.offsets[self.place];
    }

    /// Passes over the releases before `now`, and returns how many there were before the end.
    #[cold]
    fn skip(&mut self, now: u64) -> u64 {
        let until = now.min(self.end);
        if self.release >= until {
            return 0;
        }
        // An offset is less than an interval: every release of a whole interval has passed.
        let whole = (until - self.base) / self.interval;
        self.base += whole * self.interval;
        let length = self.offsets.len();
        let on = usize::try_from(whole % length as u64).unwrap_or(0);
        self.place = (self.place + on) % length;
        self.release = self.base + self.offsets[self.place];
        let one_more = self.release < until;
        if one_more {
            self.advance();
        }
        whole + u64::from(one_more)
    }

    /// How late each release would have been served at `now` that [`Schedule::serve`] has just
    /// passed over, the first one first; `missed` is what it returned.
    pub fn missed_by(&self, now: u64, missed: u64) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let Self { offsets, interval, base, place, .. } = *self;
        let missed = usize::try_from(missed).unwrap_or(usize::MAX);
        (0..missed).map(move |number| {
            let before = missed - number;
            let place = (place + offsets.len() - before % offsets.len()) % offsets.len();
            now.saturating_sub(base - before as u64 * interval + offsets[place])
        })
    }

    /// Whether releases are moved.
    #[must_use]
    pub fn is_dithered(&self) -> bool {
        self.offsets.len() > 1
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

    #[test]
    fn releases_are_moved_by_their_offsets() {
        let mut schedule = Schedule::dithered(1_000, 100, 1_500, &[0, 70, 10]);
        let mut releases = Vec::new();
        while let Some(release) = schedule.next() {
            releases.push(release);
            assert_eq!(schedule.serve(release + 1), (1, 0));
        }
        assert_eq!(releases, [1_000, 1_170, 1_210, 1_300, 1_470]);
        // Served at 1,290: 1,170 and 1,210 have passed, by 120 and 80.
        let mut schedule = Schedule::dithered(1_000, 100, 1_500, &[0, 70, 10]);
        assert_eq!(schedule.serve(1_290), (290, 2));
        assert_eq!(schedule.missed_by(1_290, 2).collect::<Vec<_>>(), [120, 80]);
        assert_eq!(schedule.next(), Some(1_300));
    }

    #[test]
    fn the_aimed_release_is_the_last_one_wherever_it_is() {
        // The fourth is at 1,300 otherwise; 1,700 is behind the end of the others.
        for at in [1_211, 1_299, 1_300, 1_301, 1_400, 1_700] {
            let mut schedule = Schedule::dithered(1_000, 100, 1_500, &[0, 70, 10]).aimed(4, at);
            let before = [1_000, 1_170, 1_210];
            for release in before {
                assert_eq!(schedule.next(), Some(release));
                assert_eq!(schedule.serve(release), (0, 0));
            }
            assert_eq!(schedule.next(), None, "it is asked for in no other step");
            assert!(schedule.turn_to_aimed());
            assert_eq!(schedule.next(), Some(at));
            assert_eq!(schedule.serve(at + 9_000), (9_000, 0), "nothing is missed behind it");
            assert!(schedule.next().is_none() && !schedule.turn_to_aimed());
        }
    }

    #[test]
    fn what_passes_with_the_aimed_release_is_not_missed_but_it_is_served() {
        let mut schedule = Schedule::new(1_000, 100, 9_000).aimed(4, 1_350);
        assert_eq!(schedule.serve(1_370), (370, 2), "the second and the third");
        assert_eq!(schedule.missed_by(1_370, 2).collect::<Vec<_>>(), [270, 170]);
        assert!(schedule.next().is_none() && schedule.turn_to_aimed());
        assert_eq!(schedule.next(), Some(1_350));
        assert_eq!(schedule.serve(1_375), (25, 0));
        // The first release can be aimed too.
        let mut schedule = Schedule::new(1_000, 100, 9_000).aimed(1, 1_020);
        assert!(schedule.next().is_none() && schedule.turn_to_aimed());
        assert_eq!(schedule.serve(1_020), (0, 0));
        assert!(schedule.next().is_none() && !schedule.turn_to_aimed());
    }

    #[test]
    fn releases_that_end_before_the_aimed_one_are_all() {
        for number in [0, 6, 7, u64::MAX] {
            let mut schedule = Schedule::new(1_000, 100, 1_500).aimed(number, 1_450);
            assert_eq!(schedule.serve(9_000), (8_000, 4), "{number}");
            assert!(schedule.next().is_none() && !schedule.turn_to_aimed(), "{number}");
        }
    }

    proptest! {
        #[test]
        fn releases_before_the_aimed_one_are_served_or_missed_as_without_it(
            interval in 1_u64..1_000,
            fractions in prop::collection::vec(0.0..1.0_f64, 1..20),
            delays in prop::collection::vec(0_u64..5_000, 1..50),
            number in 1_usize..200,
            later in 1_u64..100_000,
        ) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let offset = |fraction: &f64| (interval as f64 * fraction) as u64;
            let offsets: Vec<u64> = fractions.iter().map(offset).collect();
            let end = 7 + 500 * interval;
            let plain = Schedule::dithered(7, interval, end, &offsets);
            // All releases, one by one: each is served before the next one.
            let mut one_by_one = plain;
            let all: Vec<u64> = std::iter::from_fn(|| {
                let release = one_by_one.next()?;
                one_by_one.serve(release);
                Some(release)
            }).collect();
            let before = &all[..number - 1];
            let at = before.last().copied().unwrap_or(7) + later;
            let mut aimed = plain.aimed(number as u64, at);
            let mut without = plain;
            let mut due = before.iter().copied().peekable();
            let mut delays = delays.iter().cycle();
            while let Some(release) = aimed.next() {
                prop_assert_eq!((due.next(), without.next()), (Some(release), Some(release)));
                let now = release + delays.next().unwrap();
                let (latency, missed) = aimed.serve(now);
                let (same, missed_without) = without.serve(now);
                prop_assert_eq!(latency, same);
                let mut late = Vec::new();
                while let Some(passed) = due.next_if(|release| *release < now) {
                    late.push(now - passed);
                }
                prop_assert_eq!(aimed.missed_by(now, missed).collect::<Vec<_>>(), late);
                prop_assert!(missed <= missed_without);
            }
            prop_assert_eq!(due.next(), None);
            prop_assert!(aimed.turn_to_aimed());
            prop_assert_eq!(aimed.next(), Some(at));
            let delay = delays.next().unwrap();
            prop_assert_eq!(aimed.serve(at + delay), (delay.cast_signed(), 0));
            prop_assert!(aimed.next().is_none() && !aimed.turn_to_aimed());
        }

        #[test]
        fn dithered_releases_are_served_or_missed_one_by_one(
            interval in 1_u64..1_000,
            fractions in prop::collection::vec(0.0..1.0_f64, 1..20),
            delays in prop::collection::vec(0_u64..5_000, 1..50),
        ) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let offset = |fraction: &f64| (interval as f64 * fraction) as u64;
            let offsets: Vec<u64> = fractions.iter().map(offset).collect();
            let (first, end) = (7, 7 + 500 * interval);
            let moved = offsets.iter().cycle();
            let all: Vec<u64> =
                (0..500).zip(moved).map(|(k, offset)| first + k * interval + offset).collect();
            let mut schedule = Schedule::dithered(first, interval, end, &offsets);
            let mut all = all.into_iter().peekable();
            for delay in delays.iter().cycle() {
                let Some(release) = schedule.next() else { break };
                prop_assert_eq!(Some(release), all.next());
                let now = release + delay;
                let (latency, missed) = schedule.serve(now);
                prop_assert_eq!(latency.unsigned_abs(), *delay);
                let mut late = Vec::new();
                while let Some(passed) = all.next_if(|release| *release < now) {
                    late.push(now - passed);
                }
                prop_assert_eq!(schedule.missed_by(now, missed).collect::<Vec<_>>(), late);
            }
            prop_assert_eq!(all.next(), None);
        }

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
