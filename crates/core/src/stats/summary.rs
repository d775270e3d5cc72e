//! The statistics of a thread and of a cell.

use super::quantile::{Distribution, Quantile};
use crate::block::{Block, Moments};
use crate::histogram::{SignedSparse, Sparse, bin_high};
use crate::run::SeriesData;
use crate::schema::{Corrected, Stats};

/// Where a thread's quantiles come from.
#[derive(Debug, Clone, Copy)]
pub enum Counts<'a> {
    /// The histogram of a thread that ended.
    Fine(&'a SignedSparse),
    /// The blocks of one that was cut short.
    Coarse(&'a [Block]),
}

impl Counts<'_> {
    fn distribution(self) -> Distribution {
        match self {
            Self::Fine(histogram) => Distribution::from_histogram(histogram),
            Self::Coarse(blocks) => Distribution::from_blocks(blocks),
        }
    }
}

/// What one thread recorded of one series.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    /// Exact count, extremes and sums.
    pub moments: Moments,
    /// The samples.
    pub counts: Counts<'a>,
    /// What the missed releases would have seen.
    pub behind: Option<&'a Sparse>,
    /// Whether part of `behind` was expanded from histogram bins.
    pub from_bins: bool,
}

impl<'a> Recorded<'a> {
    /// A series read back from a run directory.
    #[must_use]
    pub fn of(series: &'a SeriesData) -> Self {
        Self {
            moments: series.moments(),
            counts: match &series.histogram {
                Some(histogram) => Counts::Fine(histogram),
                None => Counts::Coarse(&series.blocks),
            },
            behind: series.behind.as_ref(),
            from_bins: false,
        }
    }
}

/// The statistics of one thread, or of a cell over all its threads.
///
/// Quantiles follow [`Distribution::quantile`], and are none above the exact
/// maximum. Those of the corrected distribution (samples and what the missed
/// releases would have seen) are absent if releases were missed and their delay is
/// not known.
#[must_use]
pub fn summarise(threads: &[Recorded<'_>]) -> Stats {
    let mut moments = Moments::EMPTY;
    let mut raw = Distribution::default();
    let mut behind = Distribution::default();
    for thread in threads {
        moments.merge(&thread.moments);
        raw = raw.with(thread.counts.distribution());
        if let Some(missed) = thread.behind {
            behind = behind.with(Distribution::from_unsigned(missed));
        }
    }
    let any = moments.count > 0;
    let scheduled = moments.count.saturating_add(moments.missed);
    // A bin's end can be above the maximum. If the counts differ, a file was damaged,
    // and the remaining maximum may not be that of the samples.
    let limit = if raw.total() == moments.count { moments.max } else { i64::MAX };
    let four = |values: &Distribution, releases| {
        [Quantile::P50, Quantile::P99, Quantile::P999, Quantile::P9999]
            .map(|q| values.quantile(q, releases).map(|value| value.min(limit)))
    };
    let [p50, p99, p999, p9999] = four(&raw, scheduled);
    let unknown = moments.missed > 0 && behind.total() == 0;
    let all = raw.with(behind);
    let corrected = if unknown { [None; 4] } else { four(&all, all.total()) };
    Stats {
        scheduled,
        samples: moments.count,
        missed: moments.missed,
        early: moments.early,
        min: any.then_some(moments.min),
        avg: moments.mean(),
        max: any.then_some(moments.max),
        stddev: moments.stddev(),
        p50,
        p99,
        p999,
        p9999,
        corrected: Corrected {
            samples: if unknown { scheduled } else { all.total() },
            p50: corrected[0],
            p99: corrected[1],
            p999: corrected[2],
            p9999: corrected[3],
            from_bins: threads.iter().any(|thread| thread.from_bins),
        },
    }
}

/// Releases later than the deadline: samples, and missed periods whose
/// corrected latency exceeds it. A bin of missed periods that contains the deadline
/// counts as a whole: under 0.8 % too many, and only after a sample that was itself
/// later than the deadline.
#[must_use]
pub fn exceedances(moments: &Moments, behind: Option<&Sparse>, deadline_ns: u64) -> u64 {
    let missed = behind.into_iter().flat_map(Sparse::iter);
    missed
        .filter(|(bin, _)| bin_high(*bin) > deadline_ns)
        .fold(moments.exceeded, |sum, (_, n)| sum.saturating_add(n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Late;
    use crate::histogram::{Histogram, SignedHistogram, missed_behind};
    use crate::stats::{Behind, Limits};
    use proptest::prelude::*;

    const US: i64 = 1_000;
    const MS: i64 = 1_000_000;

    struct Thread {
        moments: Moments,
        samples: SignedSparse,
        behind: Sparse,
    }

    impl Thread {
        fn new(values: impl IntoIterator<Item = i64>, period: u64) -> Self {
            let mut moments = Moments::EMPTY;
            let (mut samples, mut behind) = (SignedHistogram::new(), Histogram::new());
            for value in values {
                samples.record(value);
                let late = u64::try_from(value).unwrap_or(0);
                let missed = missed_behind(late, period);
                behind.expand_late(late, period, missed, 1);
                moments.merge(&Moments {
                    count: 1,
                    missed,
                    early: u64::from(value < 0),
                    exceeded: 0,
                    min: value,
                    max: value,
                    max_at: 0,
                    sum: i128::from(value),
                    sum_sq: u128::from(value.unsigned_abs()).pow(2),
                });
            }
            Self { moments, samples: samples.sparse(), behind: behind.sparse() }
        }

        fn recorded(&self) -> Recorded<'_> {
            Recorded {
                moments: self.moments,
                counts: Counts::Fine(&self.samples),
                behind: Some(&self.behind),
                from_bins: false,
            }
        }

        fn corrected(&self) -> Distribution {
            Distribution::from_histogram(&self.samples)
                .with(Distribution::from_unsigned(&self.behind))
        }
    }

    fn stall(ns: i64) -> Thread {
        Thread::new((0..900).map(|_| 10 * US).chain([ns]), 1_000_000)
    }

    fn within_a_bin(value: Option<i64>, truth: i64) -> bool {
        value.is_some_and(|v| v >= truth && (v - truth) as f64 <= 0.008 * truth as f64)
    }

    #[test]
    fn one_stall_of_100_ms_in_900_samples() {
        let thread = stall(100 * MS);
        let stats = summarise(&[thread.recorded()]);
        assert_eq!((stats.scheduled, stats.samples, stats.missed), (1_000, 901, 99));
        assert!(within_a_bin(stats.p99, 10 * US));
        assert_eq!(stats.p999, Some(100 * MS));
        assert_eq!(stats.p9999, None);
        assert_eq!(stats.max, Some(100 * MS));
        assert_eq!(stats.corrected.samples, 1_000);
        assert!(within_a_bin(stats.corrected.p99, 90 * MS));
        let p95 = Quantile::parts_per_million(950_000).unwrap();
        assert!(within_a_bin(thread.corrected().quantile(p95, 1_000), 50 * MS));
    }

    #[test]
    fn a_stall_of_100_5_ms_has_101_corrected_values() {
        let stats = summarise(&[stall(100_500_000).recorded()]);
        assert_eq!(stats.corrected.samples, 900 + 101);
        assert_eq!(stats.scheduled, 1_001);
    }

    #[test]
    fn no_samples_have_no_numbers() {
        let stats = summarise(&[Thread::new([], 1).recorded()]);
        assert_eq!(stats, Stats::default());
        assert_eq!(summarise(&[]), Stats::default());
    }

    #[test]
    fn missed_releases_of_unknown_lateness_leave_no_corrected_quantile() {
        let thread = stall(100 * MS);
        let stats = summarise(&[Recorded { behind: None, ..thread.recorded() }]);
        assert_eq!(stats.corrected.samples, 1_000);
        assert_eq!(stats.corrected.p99, None);
        assert!(stats.p99.is_some());
    }

    #[test]
    fn a_damaged_file_does_not_hide_the_worst() {
        let mut thread = stall(100 * MS);
        thread.moments = stall(10 * US).moments;
        thread.moments.count = 900;
        thread.moments.missed = 100;
        let stats = summarise(&[thread.recorded()]);
        assert!(within_a_bin(stats.p999, 100 * MS));
    }

    #[test]
    fn late_records_rebuild_what_was_missed() {
        let late = Late { thread: 0, series: 0, at: 0, latency: 100_500_000, missed: 100 };
        let behind = Behind::from_late(&[late], &Limits { interval: 1_000_000, ..Limits::NONE });
        assert_eq!(behind.counts.sparse(), stall(100_500_000).behind);
    }

    #[test]
    fn missed_periods_exceed_as_well() {
        let mut thread = stall(100 * MS);
        thread.moments.exceeded = 1;
        let late = |deadline| exceedances(&thread.moments, Some(&thread.behind), deadline);
        // 100 ms, 99 ms, … 51 ms are later than 50.5 ms.
        assert_eq!(late(50_500_000), 50);
        assert_eq!(exceedances(&thread.moments, None, 50_500_000), 1);
    }

    proptest! {
        #[test]
        fn a_cell_is_its_threads_together(
            a in prop::collection::vec(-50_000_i64..5_000_000, 1..200), b in prop::collection::vec(-50_000_i64..5_000_000, 1..200),
        ) {
            let (one, two) = (Thread::new(a.clone(), 100_000), Thread::new(b.clone(), 100_000));
            let both = Thread::new(a.into_iter().chain(b), 100_000);
            let cell = summarise(&[one.recorded(), two.recorded()]);
            prop_assert_eq!(&cell, &summarise(&[both.recorded()]));
            prop_assert_eq!(cell.corrected.samples, cell.scheduled);
            for value in [cell.p50, cell.p99, cell.corrected.p50, cell.corrected.p99].into_iter().flatten() {
                prop_assert!(Some(value) <= cell.max);
            }
            prop_assert!(cell.p50 >= cell.min);
            prop_assert!(cell.p50 <= cell.p99 || cell.p99.is_none());
        }
    }
}
