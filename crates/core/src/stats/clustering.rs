//! Whether exceedances cluster: the extremal index at every threshold that the blocks know.

use super::bounds::real;
use super::special::{gamma_tails, normal_upper};
use crate::block::{Block, CoarseBin, coarse_range};
use crate::histogram::COARSE_BINS;

/// The probability with which exceedances that come singly are said to cluster.
const LEVEL: f64 = 0.01;

/// With more than this by chance, the number of those that share a second, or of seconds without
/// any, is nearly normal.
const MANY: f64 = 30.0;

/// The samples of a cell above one threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exceeding {
    /// The threshold, ns: the upper end of a coarse bin.
    pub above_ns: i64,
    /// N: samples above it.
    pub samples: u64,
    /// K: seconds that hold one.
    pub seconds: u64,
}

/// How the exceedances of a cell are spread over its seconds, at every threshold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Clustering {
    /// m: seconds with samples.
    pub seconds: u64,
    /// n: samples in them.
    pub samples: u64,
    /// By threshold, ascending; those that no sample or every one exceeds are left out.
    pub thresholds: Vec<Exceeding>,
}

impl Clustering {
    /// Of the blocks of all threads of a cell, in any order. A second counts once, however many
    /// threads exceed the threshold in it.
    #[must_use]
    pub fn of<'a>(blocks: impl IntoIterator<Item = &'a Block>) -> Self {
        let mut counts = vec![0_u64; 2 * COARSE_BINS];
        let mut highest: Vec<(u64, usize)> = Vec::new();
        for block in blocks {
            let mut most = None;
            for (bin, count) in block.coarse.iter().filter(|(_, count)| *count > 0) {
                let place = place(*bin);
                counts[place] = counts[place].saturating_add(u64::from(*count));
                most = most.max(Some(place));
            }
            highest.extend(most.map(|most| (block.index, most)));
        }
        // Of one thread they are in order.
        highest.sort();
        let mut by_highest = vec![0_u64; counts.len()];
        for second in highest.chunk_by(|a, b| a.0 == b.0) {
            by_highest[second[second.len() - 1].1] += 1;
        }
        let samples = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let seconds = by_highest.iter().sum();
        let (mut above, mut held) = (samples, seconds);
        let mut thresholds = Vec::new();
        for (place, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            above = above.saturating_sub(*count);
            held -= by_highest[place];
            if above > 0 {
                let (_, above_ns) = coarse_range(bin_at(place));
                thresholds.push(Exceeding { above_ns, samples: above, seconds: held });
            }
        }
        Self { seconds, samples, thresholds }
    }

    /// The extremal index of K of m seconds and N of n samples: `ln(1 - K/m) / (r ln(1 - N/n))`
    /// with r = n / m. About 1 if exceedances come singly; 1 / theta is the mean number of those
    /// that come together. Above 1 by chance. None if no second is without one.
    ///
    /// P. Embrechts, C. Klüppelberg, T. Mikosch, Modelling Extremal Events (1997), section 8.1:
    /// the blocks method.
    #[must_use]
    pub fn extremal_index(&self, exceeding: &Exceeding) -> Option<f64> {
        let Exceeding { samples, seconds, .. } = *exceeding;
        self.index(real(seconds), samples).filter(|_| seconds > 0)
    }

    /// The range in which the extremal index is with a probability of 95 % if exceedances come
    /// singly, from the mean and the variance of the number of seconds that hold one
    /// ([`seconds_by_chance`]). The upper end is infinite if all seconds may.
    #[must_use]
    pub fn index_by_chance(&self, exceeding: &Exceeding) -> Option<(f64, f64)> {
        let (mean, variance) = seconds_by_chance(exceeding.samples, self.seconds);
        let half = 1.96 * variance.sqrt();
        let most = real(exceeding.samples.min(self.seconds));
        let low = self.index((mean - half).max(1.0), exceeding.samples)?;
        let high = self.index((mean + half).min(most), exceeding.samples);
        Some((low, high.unwrap_or(f64::INFINITY)))
    }

    fn index(&self, seconds: f64, samples: u64) -> Option<f64> {
        let (m, n) = (real(self.seconds), real(self.samples));
        if seconds >= m || samples == 0 || samples >= self.samples {
            return None;
        }
        Some((-seconds / m).ln_1p() / (n / m * (-real(samples) / n).ln_1p()))
    }
}

/// Where a coarse bin is among all, ascending.
fn place(bin: CoarseBin) -> usize {
    COARSE_BINS.saturating_add_signed(isize::from(bin)).min(2 * COARSE_BINS - 1)
}

fn bin_at(place: usize) -> CoarseBin {
    let from = |count: usize| CoarseBin::try_from(count).unwrap_or(CoarseBin::MAX);
    from(place) - from(COARSE_BINS)
}

/// Mean and variance of the number of `blocks` that hold one of so many exceedances, each of
/// which is in any of them with equal probability: m (1 - (1 - 1/m)^N), and that of the classical
/// occupancy problem (W. Feller, An Introduction to Probability Theory I, 1968, section IV.2).
#[must_use]
pub fn seconds_by_chance(exceedances: u64, blocks: u64) -> (f64, f64) {
    let (n, m) = (real(exceedances), real(blocks));
    if blocks < 2 {
        return (n.min(m), 0.0);
    }
    // With a = (1 - 1/m)^N and b = (1 - 2/m)^N the variance is m^2 (b - a^2) + m (a - b), where
    // b / a^2 = (1 - 1/(m - 1)^2)^N and b / a = (1 - 1/(m - 1))^N: nothing large is subtracted.
    let log = n * (-1.0 / m).ln_1p();
    let mean = -m * log.exp_m1();
    let square = m * m * (2.0 * log).exp() * (n * (-(m - 1.0).powi(-2)).ln_1p()).exp_m1();
    let variance = square - m * log.exp() * (n * (-1.0 / (m - 1.0)).ln_1p()).exp_m1();
    (mean, variance.max(0.0))
}

/// The probability that at most `seconds` of `blocks` hold one of so many exceedances if each is
/// in any of them with equal probability. If few exceedances share a second, or few seconds have
/// none, their number is nearly Poisson and varies rather less: the probability is then too large,
/// never too small. If both are more than 30 on average, it is the normal approximation with the
/// variance of [`seconds_by_chance`].
#[must_use]
pub fn probability_of_seconds(seconds: u64, blocks: u64, exceedances: u64) -> f64 {
    if seconds >= exceedances.min(blocks) {
        return 1.0;
    }
    let (mean, variance) = seconds_by_chance(exceedances, blocks);
    let shared = real(exceedances) - mean;
    if shared <= MANY {
        // P(X >= exceedances - seconds).
        return gamma_tails(real(exceedances - seconds), shared).0;
    }
    let empty = real(blocks) - mean;
    if empty <= MANY {
        return gamma_tails(real(blocks - seconds), empty).0;
    }
    let z = (mean - real(seconds) - 0.5) / variance.sqrt();
    if z > 0.0 { normal_upper(z) } else { 1.0 - normal_upper(-z) }
}

/// Whether the exceedances cluster: they are in fewer seconds than chance would have them in,
/// with p < 0.01, one-sided.
#[must_use]
pub fn clusters_more_than_chance(seconds: u64, blocks: u64, exceedances: u64) -> bool {
    probability_of_seconds(seconds, blocks, exceedances) < LEVEL
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::block::{Moments, coarse_bin};
    use crate::random::Random;

    fn block(thread: u32, index: u64, values: &[i64]) -> Block {
        let mut coarse: BTreeMap<CoarseBin, u32> = BTreeMap::new();
        values.iter().for_each(|value| *coarse.entry(coarse_bin(*value)).or_default() += 1);
        let coarse = coarse.into_iter().collect();
        Block { thread, series: 0, index, moments: Moments::EMPTY, coarse }
    }

    #[test]
    fn a_second_counts_once_over_all_threads() {
        let blocks = [
            block(0, 0, &[-5_000, 10, 1_000]),
            block(1, 0, &[10, 1_000]),
            block(0, 1, &[10, 10]),
            block(0, 2, &[1_000]),
        ];
        let found = Clustering::of(&blocks);
        assert_eq!((found.seconds, found.samples), (3, 8));
        let of = |threshold: &Exceeding| (threshold.samples, threshold.seconds);
        assert_eq!(found.thresholds.iter().map(of).collect::<Vec<_>>(), [(7, 3), (3, 2)]);
        let bin = |value| coarse_range(coarse_bin(value)).1;
        assert_eq!([0, 1].map(|n| found.thresholds[n].above_ns), [bin(-5_000), bin(10)]);
    }

    #[test]
    fn the_index_is_the_formula() {
        let all = Clustering { seconds: 600, samples: 600_000, thresholds: Vec::new() };
        let of =
            |seconds, samples| all.extremal_index(&Exceeding { above_ns: 0, samples, seconds });
        // Python: log(1 - 60/600) / (1000 * log(1 - 120/600000)).
        assert!((of(60, 120).unwrap() - 0.526_749_896_275_176_3).abs() < 1e-12);
        // It is K / N for K << m.
        assert!((of(2, 20).unwrap() - 0.1).abs() < 1e-3);
        assert_eq!((of(600, 6_000), of(0, 0)), (None, None));
    }

    #[test]
    fn the_occupancy_is_that_of_all_placings() {
        // All 4^3 placings of 3 exceedances in 4 blocks: 1, 2 or 3 blocks in 4, 36 and 24 of them.
        let (mean, variance) = seconds_by_chance(3, 4);
        let exact = (4.0 + 72.0 + 72.0) / 64.0;
        assert!((mean - exact).abs() < 1e-12);
        assert!(
            (variance - ((4.0 + 4.0 * 36.0 + 9.0 * 24.0) / 64.0 - exact * exact)).abs() < 1e-12
        );
        // Digits survive where nearly all is cancelled: N = 5 of m = 10^9 has N (N - 1) / 2 / m.
        let (mean, variance) = seconds_by_chance(5, 1_000_000_000);
        assert!((5.0 - mean - 1e-8).abs() < 1e-14 && (variance - 1e-8).abs() < 1e-9, "{variance}");
    }

    #[test]
    fn the_probability_is_never_much_too_small() {
        // Exact by P(K of N + 1) = P(K) K/m + P(K - 1) (m - K + 1)/m.
        for (blocks, exceedances) in
            [(20, 5), (100, 3), (60, 60), (600, 40), (600, 300), (300, 900)]
        {
            let mut exact = vec![0.0; exceedances + 1];
            exact[0] = 1.0;
            for _ in 0..exceedances {
                for k in (0..exact.len()).rev() {
                    let before =
                        if k > 0 { exact[k - 1] * (blocks as f64 - k as f64 + 1.0) } else { 0.0 };
                    exact[k] = (exact[k] * k as f64 + before.max(0.0)) / blocks as f64;
                }
            }
            let mut sum = 0.0;
            for (seconds, probability) in (0..).zip(&exact) {
                sum += probability;
                let found = probability_of_seconds(seconds, blocks, exceedances as u64);
                if sum > 1e-3 {
                    assert!(
                        found > 0.8 * sum,
                        "{seconds} of {blocks}, {exceedances}: {found} {sum}"
                    );
                }
            }
        }
    }

    #[test]
    fn pairs_cluster_and_single_exceedances_do_not() {
        let mut random = Random::new(4);
        let mut said = 0;
        for _ in 0..2_000 {
            let held: std::collections::BTreeSet<_> = (0..60).map(|_| random.below(600)).collect();
            said += u32::from(clusters_more_than_chance(held.len() as u64, 600, 60));
        }
        // 1 % and three standard deviations.
        assert!(said <= 34, "{said}");
        assert!(clusters_more_than_chance(30, 600, 60));
        // 60 s full of single ones: K = m says nothing.
        assert!(!clusters_more_than_chance(60, 60, 583));
        assert!(!clusters_more_than_chance(2, 100, 3));
        assert!(clusters_more_than_chance(1, 600, 2));
    }

    #[test]
    fn single_exceedances_are_in_the_range_of_chance() {
        let mut random = Random::new(9);
        let mut value = || 1_000_000 / i64::try_from(1 + random.below(10_000)).unwrap();
        let (mut outside, mut thresholds) = (0, 0);
        for _ in 0..20 {
            let mut second =
                |index| block(0, index, &std::array::from_fn::<_, 100, _>(|_| value()));
            let all = Clustering::of(&(0..300).map(&mut second).collect::<Vec<_>>());
            for one in all.thresholds.iter().filter(|one| (10..300).contains(&one.seconds)) {
                let index = all.extremal_index(one).unwrap();
                let (low, high) = all.index_by_chance(one).unwrap();
                assert!(low < 1.0 && high > 1.0 && (0.5..1.6).contains(&index), "{one:?} {index}");
                outside += u32::from(index < low || index > high);
                thresholds += 1;
            }
        }
        // 5 % and what the thresholds of a run have in common.
        assert!(thresholds > 100 && outside * 10 < thresholds, "{outside} of {thresholds}");
    }
}
