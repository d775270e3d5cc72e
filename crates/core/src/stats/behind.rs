//! What the releases missed after a late start would have seen: the one place that knows.

use std::borrow::Cow;

use crate::block::Late;
use crate::histogram::{Histogram, Sparse, bin_high};
use crate::run::SeriesData;

/// From what latency on a sample is one to count, and one to keep.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Samples above this count as exceedances, ns; `i64::MAX` without a deadline.
    pub deadline: i64,
    /// Samples above this are all kept up to the recorder's cap, ns; `i64::MAX` for none.
    pub threshold: i64,
    /// Time between two releases, ns; 0 if there is none, and then none can be missed.
    pub interval: u64,
}

impl Limits {
    /// Neither deadline nor threshold, and no releases.
    pub const NONE: Self = Self { deadline: i64::MAX, threshold: i64::MAX, interval: 0 };

    /// A deadline in ns, if there is one, and no threshold.
    #[must_use]
    pub fn of_deadline(deadline_ns: Option<u64>) -> Self {
        let deadline = deadline_ns.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(i64::MAX);
        Self { deadline, ..Self::NONE }
    }

    /// How many of the releases that a late start missed were later than the deadline.
    #[must_use]
    pub fn exceeded(&self, latency: u64, missed: u64) -> u64 {
        let deadline = self.deadline.unsigned_abs();
        if latency <= deadline || self.interval == 0 {
            return 0;
        }
        // latency - j * interval > deadline for j from 1.
        ((latency - deadline - 1) / self.interval).min(missed)
    }
}

/// Late samples for which there was no room one by one: their latencies in bins, and exactly
/// how many releases they missed. It has a fixed size, and adding allocates nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    latencies: Histogram,
    /// Releases that they missed.
    pub missed: u64,
    /// How many of those were later than the deadline.
    pub exceeded: u64,
}

impl Refused {
    /// Adds one late sample.
    pub fn add(&mut self, latency: u64, missed: u64, limits: &Limits) {
        self.latencies.record(latency);
        self.missed = self.missed.saturating_add(missed);
        self.exceeded = self.exceeded.saturating_add(limits.exceeded(latency, missed));
    }

    /// Removes all, without allocating or freeing memory.
    pub fn clear(&mut self) {
        self.latencies.clear();
        (self.missed, self.exceeded) = (0, 0);
    }
}

/// The releases that were missed after late samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Behind {
    /// What those releases would have seen.
    pub counts: Histogram,
    /// How many of them would have been later than the deadline.
    pub exceeded: u64,
}

impl Behind {
    /// Adds one late sample: `missed` releases after a start that was `latency` ns late.
    /// Without an interval no release can be missed.
    pub fn add(&mut self, latency: u64, missed: u64, limits: &Limits) {
        self.counts.expand_late(latency, limits.interval, missed, 1);
        self.exceeded = self.exceeded.saturating_add(limits.exceeded(latency, missed));
    }

    /// All of what is known one by one.
    #[must_use]
    pub fn from_late(late: &[Late], limits: &Limits) -> Self {
        let mut behind = Self::default();
        for late in late {
            behind.add(late.latency, late.missed, limits);
        }
        behind
    }

    /// Adds late samples that are known in bins only. Their numbers are exact; each bin counts
    /// as its upper end, so that values are at most 0.8 % of the stall too high.
    pub fn add_refused(&mut self, refused: &Refused, limits: &Limits) {
        // A histogram for each thread and series would be much for nothing.
        if refused.missed == 0 {
            return;
        }
        let mut counts = Histogram::new();
        for (bin, times) in refused.latencies.iter() {
            counts.expand_late(bin_high(bin), limits.interval, u64::MAX, times);
        }
        // Rounding up a latency beyond a release adds that release, at the lowest value.
        counts.remove_lowest(counts.total().saturating_sub(refused.missed));
        self.counts.merge(&counts.sparse());
        self.exceeded = self.exceeded.saturating_add(refused.exceeded);
    }
}

/// What the missed releases of a recorded series would have seen: its histogram if the cell
/// came to its end, else made from the late samples. None if neither tells.
#[must_use]
pub fn behind_of(series: &SeriesData, interval_ns: Option<u64>) -> Option<Cow<'_, Sparse>> {
    match (&series.behind, interval_ns) {
        (Some(counts), _) => Some(Cow::Borrowed(counts)),
        (None, Some(interval)) if !series.late.is_empty() => {
            let limits = Limits { interval, ..Limits::NONE };
            let behind = Behind::from_late(&series.late, &limits);
            Some(Cow::Owned(behind.counts.sparse()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn limits(deadline: i64, interval: u64) -> Limits {
        Limits { deadline, interval, ..Limits::NONE }
    }

    #[test]
    fn a_stall_is_expanded() {
        let mut behind = Behind::default();
        behind.add(100 * MS, 99, &limits(50_000_000, MS));
        assert_eq!(behind.counts.total(), 99);
        // 99, 98, … 51 ms are later than 50 ms.
        assert_eq!(behind.exceeded, 49);
        behind.add(100 * MS, 99, &limits(50_000_000, 0));
        assert_eq!((behind.counts.total(), behind.exceeded), (99, 49), "no interval");
    }

    fn refused(samples: &[(u64, u64)], interval: u64, deadline: i64) -> (Refused, Behind) {
        let limits = limits(deadline, interval);
        let mut refused = Refused::default();
        samples.iter().for_each(|(latency, missed)| refused.add(*latency, *missed, &limits));
        let mut behind = Behind::default();
        behind.add_refused(&refused, &limits);
        (refused, behind)
    }

    #[test]
    fn what_the_ring_refused_counts_as_if_it_had_been_kept() {
        let late = Late { thread: 0, series: 0, at: 0, latency: 200, missed: 19 };
        let by_late = Behind::from_late(&[late, late], &limits(100, 10));
        // Bins below 256 ns are exact.
        let (_, behind) = refused(&[(200, 19), (200, 19)], 10, 100);
        assert_eq!(behind, by_late);
        assert_eq!((by_late.counts.total(), by_late.exceeded), (38, 18));
    }

    #[test]
    fn rounding_to_a_bin_makes_no_release_and_no_exceedance() {
        // The bin of 100.001 us reaches beyond 100.3 us; that of 200.001 us beyond the deadline
        // and one interval.
        for (latency, missed, exceeded) in [(100_001, 1, 0), (200_001, 2, 1)] {
            let times = 1_000_u16;
            let (all, behind) =
                refused(&vec![(latency, missed); usize::from(times)], 100_000, 99_900);
            let times = u64::from(times);
            assert_eq!((all.missed, behind.counts.total()), (missed * times, missed * times));
            assert_eq!(behind.exceeded, exceeded * times, "{latency}");
        }
        // A window's end cuts off what a stall missed: of 10 possible releases 3.
        assert_eq!(refused(&[(1_000_500, 3)], 100_000, i64::MAX).1.counts.total(), 3);
    }

    #[test]
    fn refused_samples_are_cleared_in_place() {
        let (mut all, _) = refused(&[(100_001, 1)], 100_000, 7);
        all.clear();
        assert_eq!(all, Refused::default());
    }

    #[test]
    fn a_series_tells_by_its_histogram_or_its_late_samples() {
        let late = Late { thread: 0, series: 0, at: 0, latency: 200, missed: 3 };
        let mut series = SeriesData { late: vec![late], ..SeriesData::default() };
        assert_eq!(behind_of(&series, Some(50)).unwrap().total(), 3);
        assert_eq!(behind_of(&series, None), None);
        series.behind = Some(Sparse::default());
        assert_eq!(behind_of(&series, Some(50)).unwrap().total(), 0);
        assert_eq!(behind_of(&SeriesData::default(), Some(50)), None);
    }
}
