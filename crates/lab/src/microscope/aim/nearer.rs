//! A release aimed again, in the course of one that was aimed: up to there it is known exactly, and
//! what the section did when a thread waited for its end is known too.

use std::cmp::Reverse;

use anyhow::Result;
use punctual_core::run::LoadedRun;

use super::super::WatchedGuest;
use super::super::functions::Functions;
use super::super::sections::Axis;
use super::super::tally::Sighting;
use super::{Aimed, Costs, Moved, Target, signed};

/// How far into a section a release is aimed again, in instructions: the thread asks for an instant
/// a few microseconds from the one before, so that hardly anything comes elsewhere.
const INTO_AGAIN: u64 = 125;

impl WatchedGuest {
    /// The release to aim again, of a cell by its index which ended with an aimed one: at the section
    /// that this met, or at whichever would be latest of those up to `within_ns` before. What wake-ups
    /// take is known from a cell of another guest, or from the same. `None` if there is none.
    ///
    /// # Errors
    /// As [`WatchedGuest::cells`].
    pub fn nearer(
        &self,
        (run, cell): (&LoadedRun, usize),
        within_ns: u64,
        (other, its_run, its_cell): (&Self, &LoadedRun, usize),
    ) -> Result<Option<Target>> {
        let costs = other.aimed(its_run, its_cell)?.costs();
        Ok(self.aimed(run, cell)?.nearer(within_ns, &costs, &self.functions))
    }
}

impl Aimed<'_> {
    fn nearer(&self, within_ns: u64, costs: &Costs, functions: &Functions) -> Option<Target> {
        let Self { instruction_ns, ref read_ns, .. } = *self;
        let axis = Axis { samples: &self.course.samples, read_ns, instruction_ns };
        let last = self.samples.len().checked_sub(1)?;
        let released = self.released(last);
        let first = released - signed(within_ns);
        let place = |found: &Sighting| -> Option<(u64, Moved)> {
            let (begin, exact) = axis.time(found);
            let end = begin + signed(found.length() * instruction_ns);
            if !exact || found.samples != last || begin > released || end <= first {
                return None;
            }
            let into = signed(INTO_AGAIN * instruction_ns);
            let at = (begin + into).max(self.asleep(found));
            // At the same instant it would measure the same, whatever is known of it.
            let at = if at == released { at + into } else { at };
            let left_ns = u64::try_from(end - at).ok().filter(|left| *left > 0)?;
            let at_ns = at.unsigned_abs();
            let place = Moved { aim: self.moved(at, false)?, at_ns, left_ns, is_own: false };
            // What came until the thread had read the clock is what this course had then.
            let met = read_ns.get(last).filter(|_| end > released);
            let predicted_ns = met.and_then(|read| read.checked_sub(at_ns));
            Some((predicted_ns.unwrap_or_else(|| left_ns + costs.at(self, found, place)), place))
        };
        let all = self.course.long.iter().filter_map(|found| Some((place(found)?, found)));
        let ((predicted_ns, place), found) =
            all.min_by_key(|((predicted_ns, place), _)| (Reverse(*predicted_ns), place.at_ns))?;
        Some(Target {
            aim: place.aim,
            section: axis.plain(found, functions),
            at_ns: place.at_ns,
            predicted_ns,
            begin: found.from,
        })
    }
}

#[cfg(test)]
mod tests {
    use punctual_core::aim::Aim;
    use punctual_core::block::Outlier;

    use super::super::super::functions::tests::functions;
    use super::super::tests::{COST, INTERVAL, Made, NS, Parts, made, made_of};
    use super::*;

    impl Made {
        /// Its last sample is that of an aimed release, which was at this instant and read the clock
        /// then.
        fn aimed(mut self, release: u64, read: u64) -> Self {
            let course = &mut self.watched.cells[0];
            let last = course.samples.len() - 1;
            course.samples[last].clock = read / NS;
            self.samples[last] =
                Outlier { at: read, latency: i64::try_from(read - release).unwrap() };
            for section in &mut course.long {
                section.samples = section.samples.min(last);
            }
            self
        }

        fn nearer(&self, within_ns: u64) -> Option<Target> {
            self.with(|aimed| aimed.nearer(within_ns, &aimed.costs(), &functions()))
        }
    }

    #[test]
    fn a_release_is_aimed_again_at_the_section_that_it_met() {
        let plain = made(10, &[], &[]);
        let begin = plain.release(10) - 400_000;
        let held = [(begin, 100_000)];
        // What it did after that was known of no other.
        let (release, read) = (begin + 3_000, begin + 171_000);
        let made = made_of(&Parts { count: 10, held: &held, ..Parts::default() });
        let target = made.aimed(release, read).nearer(0).unwrap();
        let at = begin + INTO_AGAIN * NS;
        assert!(target.at_ns.abs_diff(at) < 2 * NS, "{target:?}");
        assert_eq!(target.predicted_ns, read - target.at_ns);
        assert_eq!((target.aim.release, target.aim.at_ns), (10, target.at_ns - 2_000_000));
        assert_eq!(target.section.length_ns, 100_000);
    }

    #[test]
    fn it_never_goes_where_it_has_been() {
        let plain = made(10, &[], &[]);
        let begin = plain.release(10) - 400_000;
        let held = [(begin, 100_000)];
        let made = made_of(&Parts { count: 10, held: &held, ..Parts::default() });
        let into = INTO_AGAIN * NS;
        let target = made.aimed(begin + into, begin + 171_000).nearer(0).unwrap();
        assert_eq!(target.at_ns, begin + 2 * into, "{target:?}");
        assert_eq!(target.predicted_ns, 171_000 - 2 * into);
    }

    #[test]
    fn other_sections_are_near_only_if_that_is_asked_for() {
        let plain = made(10, &[], &[]);
        let begin = plain.release(10) - 400_000;
        let held = [(begin, 100_000), (begin + 120_000, 6_000)];
        let all = made_of(&Parts { count: 10, held: &held, ..Parts::default() });
        let all = all.aimed(begin + 130_000, begin + 130_000 + COST);
        assert_eq!(all.nearer(0), None);
        assert_eq!(all.nearer(10_000).unwrap().section.length_ns, 6_000);
        let target = all.nearer(40_000).unwrap();
        assert_eq!(target.section.length_ns, 100_000);
        let expected = 100_000 - INTO_AGAIN * NS + COST;
        assert!(target.predicted_ns.abs_diff(expected) < 3 * NS, "{target:?}");
        // After the release nothing is known that would be there without it.
        let later = made_of(&Parts { count: 10, held: &held, ..Parts::default() });
        assert_eq!(later.aimed(begin - 20_000, begin + 200_000).nearer(INTERVAL / 2), None);
    }

    #[test]
    fn the_first_release_of_a_cell_goes_anywhere_before_it() {
        let aim = Aim { cell: 0, release: 1, at_ns: 7_303_000 };
        let begin = 2_000_000 + 7_300_000;
        let held = [(begin, 100_000)];
        let parts = Parts { count: 1, held: &held, only: Some(aim), ..Parts::default() };
        let made = made_of(&parts);
        let target = made.nearer(0).unwrap();
        assert_eq!((target.aim.release, target.section.length_ns), (1, 100_000));
        let at_ns = begin + INTO_AGAIN * NS - 2_000_000;
        assert!(target.aim.at_ns.abs_diff(at_ns) < 2 * NS, "{target:?}");
    }
}
