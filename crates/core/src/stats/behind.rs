//! What the releases missed after a late start would have seen: the one place that knows.

use std::borrow::Cow;

use crate::block::Late;
use crate::histogram::{Histogram, SignedSparse, Sparse};
use crate::run::SeriesData;

/// From what latency on a sample is one to count, and one to keep.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Samples above this count as exceedances, ns; `i64::MAX` without a deadline.
    pub deadline: i64,
    /// Samples above this are all kept up to the recorder's cap, ns; `i64::MAX` for none.
    pub threshold: i64,
}

impl Limits {
    /// Neither deadline nor threshold.
    pub const NONE: Self = Self { deadline: i64::MAX, threshold: i64::MAX };

    /// A deadline in ns, if there is one, and no threshold.
    #[must_use]
    pub fn of_deadline(deadline_ns: Option<u64>) -> Self {
        let deadline = deadline_ns.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(i64::MAX);
        Self { deadline, ..Self::NONE }
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
    /// Adds one late sample: `missed` releases, `interval` ns apart, after a start that was
    /// `latency` ns late. Without an interval no release can be missed.
    pub fn add(&mut self, latency: u64, missed: u64, interval: u64, limits: &Limits) {
        self.add_several(latency, missed, interval, 1, limits);
    }

    /// All of what is known one by one.
    #[must_use]
    pub fn from_late(late: &[Late], interval: u64, limits: &Limits) -> Self {
        let mut behind = Self::default();
        for late in late {
            behind.add(late.latency, late.missed, interval, limits);
        }
        behind
    }

    /// Made from a histogram because the late ring had been full: each bin counts
    /// as its upper end, which is at most 0.8 % too much.
    #[must_use]
    pub fn from_bins(histogram: &SignedSparse, interval: u64, limits: &Limits) -> Self {
        let mut behind = Self::default();
        for bin in histogram.bins().filter(|bin| bin.high > 0) {
            let latency = bin.high.unsigned_abs();
            behind.add_several(latency, u64::MAX, interval, bin.count, limits);
        }
        behind
    }

    fn add_several(
        &mut self,
        latency: u64,
        missed: u64,
        interval: u64,
        times: u64,
        limits: &Limits,
    ) {
        self.counts.expand_late(latency, interval, missed, times);
        let deadline = limits.deadline.unsigned_abs();
        if latency > deadline && interval > 0 {
            // latency - j * interval > deadline for j from 1.
            let each = ((latency - deadline - 1) / interval).min(missed);
            self.exceeded = self.exceeded.saturating_add(each.saturating_mul(times));
        }
    }
}

/// What the missed releases of a recorded series would have seen: its histogram if the cell
/// came to its end, else made from the late samples. None if neither tells.
#[must_use]
pub fn behind_of(series: &SeriesData, interval_ns: Option<u64>) -> Option<Cow<'_, Sparse>> {
    match (&series.behind, interval_ns) {
        (Some(counts), _) => Some(Cow::Borrowed(counts)),
        (None, Some(interval)) if !series.late.is_empty() => {
            let behind = Behind::from_late(&series.late, interval, &Limits::NONE);
            Some(Cow::Owned(behind.counts.sparse()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::SignedHistogram;

    const MS: u64 = 1_000_000;

    fn limits(deadline: i64) -> Limits {
        Limits { deadline, ..Limits::NONE }
    }

    #[test]
    fn a_stall_is_expanded() {
        let mut behind = Behind::default();
        behind.add(100 * MS, 99, MS, &limits(50_000_000));
        assert_eq!(behind.counts.total(), 99);
        // 99, 98, … 51 ms are later than 50 ms.
        assert_eq!(behind.exceeded, 49);
        behind.add(100 * MS, 99, 0, &limits(50_000_000));
        assert_eq!((behind.counts.total(), behind.exceeded), (99, 49), "no interval");
    }

    #[test]
    fn late_samples_and_bins_agree() {
        let late = Late { thread: 0, series: 0, at: 0, latency: 200, missed: 19 };
        let by_late = Behind::from_late(&[late, late], 10, &limits(100));
        let mut histogram = SignedHistogram::new();
        [200, 200, -300].into_iter().for_each(|value| histogram.record(value));
        // Bins below 256 ns are exact.
        assert_eq!(Behind::from_bins(&histogram.sparse(), 10, &limits(100)), by_late);
        assert_eq!((by_late.counts.total(), by_late.exceeded), (38, 18));
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
