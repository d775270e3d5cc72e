//! How long a load did nothing, from visits to its counters.

use std::collections::BTreeMap;

use crate::units::SECOND_NS;

/// A load that does nothing for less than this is not idle, ns.
const SHORTEST_NS: u64 = 5 * SECOND_NS;
/// Nor is one that does nothing for less than this many times its usual time a unit.
const UNITS: u64 = 5;
/// Visits are a second apart: a stretch of five of them is known to half of one, ns.
const HALF_A_VISIT_NS: u64 = SECOND_NS / 2;
const MS_NS: u64 = 1_000_000;

/// How work is told from idleness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It does unit after unit, each of which may take long.
    Units,
    /// What is counted goes on all the time, such as CPU time.
    Steady,
}

/// The stretches of a measurement without work, as seen by visits about a second apart.
#[derive(Debug, Clone)]
pub struct Pauses {
    pace: Pace,
    /// How often it took so many ms from work to work.
    apart: BTreeMap<u64, u64>,
    /// How often a stretch without work lasted so many ms.
    stretches: BTreeMap<u64, u64>,
    /// The stretch that has not ended, ns.
    quiet_ns: u64,
    visited_ns: u64,
}

impl Pauses {
    /// Nothing visited yet.
    #[must_use]
    pub fn new(pace: Pace) -> Self {
        let (apart, stretches) = (BTreeMap::new(), BTreeMap::new());
        Self { pace, apart, stretches, quiet_ns: 0, visited_ns: 0 }
    }

    /// A visit `elapsed_ns` after the one before (or the start), which found that work was
    /// done meanwhile, or not. A visit that came late counts as work for all of its time.
    pub fn visit(&mut self, elapsed_ns: u64, worked: bool) {
        self.visited_ns = self.visited_ns.saturating_add(elapsed_ns);
        if !worked {
            self.quiet_ns = self.quiet_ns.saturating_add(elapsed_ns);
            return;
        }
        let apart_ns = self.quiet_ns.saturating_add(elapsed_ns);
        *self.apart.entry(apart_ns / MS_NS).or_default() += 1;
        if self.quiet_ns > 0 {
            *self.stretches.entry(self.quiet_ns / MS_NS).or_default() += 1;
        }
        self.quiet_ns = 0;
    }

    /// Median time from work to work, ns; no less than the time between two visits. `None` if
    /// no work was seen, and at a steady pace.
    #[must_use]
    pub fn unit_ns(&self) -> Option<u64> {
        if self.pace == Pace::Steady {
            return None;
        }
        let half = self.apart.values().sum::<u64>().div_ceil(2);
        let mut seen = 0;
        let mut up_to = self.apart.iter().map(|(ms, count)| {
            seen += count;
            (seen, ms)
        });
        up_to.find(|(seen, _)| *seen >= half).map(|(_, ms)| ms.saturating_mul(MS_NS))
    }

    /// Time without work, ns: stretches of at least 5 s and five times [`Pauses::unit_ns`], or
    /// everything if no work was seen in a second or more.
    #[must_use]
    pub fn idle_ns(&self) -> u64 {
        if self.apart.is_empty() && self.visited_ns >= SECOND_NS {
            return self.visited_ns;
        }
        let of_units = self.unit_ns().unwrap_or(0).saturating_mul(UNITS);
        let least_ns = SHORTEST_NS.max(of_units) - HALF_A_VISIT_NS;
        let ended = self.stretches.iter().map(|(ms, count)| (ms.saturating_mul(MS_NS), *count));
        let all = ended.chain([(self.quiet_ns, 1)]);
        let long = all.filter(|(stretch_ns, _)| *stretch_ns >= least_ns);
        long.fold(0, |sum: u64, (ns, count)| sum.saturating_add(ns.saturating_mul(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Visits a second apart, `x` for work and `.` for none.
    fn seen(pace: Pace, visits: &str) -> Pauses {
        let mut pauses = Pauses::new(pace);
        visits.chars().for_each(|visit| pauses.visit(SECOND_NS, visit == 'x'));
        pauses
    }

    fn idle_seconds(pace: Pace, visits: &str) -> u64 {
        seen(pace, visits).idle_ns() / SECOND_NS
    }

    #[test]
    fn five_seconds_without_work_are_idle_and_four_are_not() {
        for pace in [Pace::Units, Pace::Steady] {
            assert_eq!(idle_seconds(pace, "xxxx....xx"), 0);
            assert_eq!(idle_seconds(pace, "xxxx.....xx"), 5);
            assert_eq!(idle_seconds(pace, "xx.....xx....xx......"), 11);
        }
    }

    #[test]
    fn a_load_of_long_units_may_take_five_of_them() {
        let slow = "...x".repeat(6);
        assert_eq!(seen(Pace::Units, &slow).unit_ns(), Some(4 * SECOND_NS));
        let of_units =
            |quiet: usize| idle_seconds(Pace::Units, &(slow.clone() + &".".repeat(quiet)));
        assert_eq!((of_units(19), of_units(20)), (0, 20));
        // CPU time that comes in bursts 4 s apart is not idle; 8 s apart it is.
        assert_eq!(idle_seconds(Pace::Steady, &slow), 0);
        assert_eq!(idle_seconds(Pace::Steady, &".......x".repeat(3)), 21);
        assert_eq!(seen(Pace::Steady, &slow).unit_ns(), None);
    }

    #[test]
    fn a_load_that_did_nothing_was_idle_however_short_the_measurement() {
        assert_eq!(idle_seconds(Pace::Units, ".."), 2);
        assert_eq!(seen(Pace::Units, "..").unit_ns(), None);
    }

    #[test]
    fn late_visits_are_not_idleness() {
        let mut pauses = Pauses::new(Pace::Units);
        for _ in 0..4 {
            pauses.visit(20 * SECOND_NS, true);
        }
        assert_eq!(pauses.idle_ns(), 0);
    }
}
