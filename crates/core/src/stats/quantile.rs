//! Quantiles of recorded latencies, by rank and in integers.

use crate::block::{Block, coarse_range};
use crate::histogram::{SignedBin, SignedSparse, Sparse};

const MILLION: u128 = 1_000_000;

/// A quantile in parts per million, above 0 and below one million. This makes ranks
/// exact: 0.999 is not a binary fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantile(u32);

impl Quantile {
    /// The median.
    pub const P50: Self = Self(500_000);
    /// The 99 % quantile.
    pub const P99: Self = Self(990_000);
    /// The 99.9 % quantile.
    pub const P999: Self = Self(999_000);
    /// The 99.99 % quantile.
    pub const P9999: Self = Self(999_900);

    /// The quantile of so many parts per million; none at 0 and from one
    /// million.
    #[must_use]
    pub const fn parts_per_million(ppm: u32) -> Option<Self> {
        if ppm > 0 && ppm < 1_000_000 { Some(Self(ppm)) } else { None }
    }

    /// The quantile as a share, between 0 and 1.
    #[must_use]
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// The rank of the quantile among `n` values, from 1 in ascending order:
    /// `ceil(q n)`; 0 without values.
    #[must_use]
    pub fn rank(self, n: u64) -> u64 {
        let rank = (u128::from(self.0) * u128::from(n)).div_ceil(MILLION);
        u64::try_from(rank).unwrap_or(n)
    }

    /// Whether `releases` carry the quantile: `releases (1 - q) >= 1`.
    #[must_use]
    pub fn is_carried_by(self, releases: u64) -> bool {
        (MILLION - u128::from(self.0)) * u128::from(releases) >= MILLION
    }
}

/// Latencies as bins in ascending order, from fine histograms, from the coarse
/// ones of blocks, or from both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Ascending by their largest value, which is what a rank gives back.
    bins: Vec<SignedBin>,
    total: u64,
}

impl Distribution {
    /// The samples of a histogram: bins under 0.8 % wide, exact below 256 ns.
    #[must_use]
    pub fn from_histogram(histogram: &SignedSparse) -> Self {
        Self::from_bins(histogram.bins().collect())
    }

    /// Latencies that are never negative, such as those of missed releases.
    #[must_use]
    pub fn from_unsigned(histogram: &Sparse) -> Self {
        let samples = SignedSparse { positive: histogram.clone(), negative: Sparse::default() };
        Self::from_histogram(&samples)
    }

    /// The samples of blocks: all that is left of a cell that was cut short.
    /// Bins under 25 % wide, 32 ns below 256 ns.
    #[must_use]
    pub fn from_blocks(blocks: &[Block]) -> Self {
        let coarse = blocks.iter().flat_map(|block| &block.coarse);
        Self::from_bins(
            coarse
                .map(|(bin, count)| {
                    let (low, high) = coarse_range(*bin);
                    SignedBin { low, high, count: u64::from(*count) }
                })
                .collect(),
        )
    }

    fn from_bins(mut bins: Vec<SignedBin>) -> Self {
        bins.sort_by_key(|bin| (bin.high, bin.low));
        bins.dedup_by(|next, kept| {
            let same = (next.low, next.high) == (kept.low, kept.high);
            if same {
                kept.count = kept.count.saturating_add(next.count);
            }
            same
        });
        let total = bins.iter().fold(0_u64, |sum, bin| sum.saturating_add(bin.count));
        Self { bins, total }
    }

    /// Both together.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        if other.bins.is_empty() {
            return self;
        }
        if self.bins.is_empty() {
            return other;
        }
        self.bins.extend(other.bins);
        Self::from_bins(self.bins)
    }

    /// The number of values.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// The bins, ascending.
    #[must_use]
    pub fn bins(&self) -> &[SignedBin] {
        &self.bins
    }

    /// The value at `rank` (from 1, ascending), ns: the largest value of its
    /// bin, hence never below the true one. None outside `1..=total`.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<i64> {
        let mut seen = 0_u64;
        let bin = self.bins.iter().find(|bin| {
            seen = seen.saturating_add(bin.count);
            seen >= rank
        })?;
        (rank > 0).then_some(bin.high)
    }

    /// The quantile `q`, ns: the value at rank `ceil(q N)` of the N values, if
    /// `releases (1 - q) >= 1`, else none.
    ///
    /// Whether there is enough evidence for a quantile is counted in releases that
    /// were due, not in samples: 901 samples and 99 missed periods are a thousand
    /// releases and have a 99.9 % quantile, which is their maximum. Without missed
    /// periods the two counts are equal. So either both the raw and the corrected
    /// distribution of a thread have a quantile, or neither does.
    #[must_use]
    pub fn quantile(&self, q: Quantile, releases: u64) -> Option<i64> {
        q.is_carried_by(releases).then(|| self.at_rank(q.rank(self.total)))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Moments, coarse_bin};
    use crate::histogram::SignedHistogram;
    use proptest::prelude::*;

    #[test]
    fn ranks_are_exact() {
        assert_eq!(Quantile::P999.rank(901), 901);
        assert_eq!(Quantile::P999.rank(1_000), 999);
        assert_eq!(Quantile::P99.rank(1_000), 990);
        // 0.999 * 10^15 in floats is one too many.
        assert_eq!(Quantile::P999.rank(1_000_000_000_000_000), 999_000_000_000_000);
        assert_eq!(Quantile::P9999.rank(u64::MAX), 18_444_899_399_302_180_660);
        assert_eq!(Quantile::P50.rank(0), 0);
    }

    #[test]
    fn too_few_releases_carry_no_quantile() {
        assert!(Quantile::P999.is_carried_by(1_000));
        assert!(!Quantile::P999.is_carried_by(999));
        assert!(!Quantile::P50.is_carried_by(1));
        assert_eq!(Quantile::parts_per_million(0), None);
        assert_eq!(Quantile::parts_per_million(1_000_000), None);
    }

    fn block(values: &[i64]) -> Block {
        let mut coarse: Vec<_> = values.iter().map(|v| (coarse_bin(*v), 1)).collect();
        coarse.sort_unstable();
        Block { thread: 0, series: 0, index: 0, moments: Moments::EMPTY, coarse }
    }

    proptest! {
        #[test]
        fn a_quantile_is_the_value_at_its_rank(
            mut values in prop::collection::vec(-1_000_000_000_i64..1_000_000_000, 1..400), ppm in 1_u32..1_000_000,
        ) {
            let mut histogram = SignedHistogram::new();
            values.iter().for_each(|v| histogram.record(*v));
            values.sort_unstable();
            let q = Quantile::parts_per_million(ppm).unwrap();
            let n = values.len() as u64;
            let truth = values[usize::try_from(q.rank(n)).unwrap() - 1];
            let fine = Distribution::from_histogram(&histogram.sparse()).at_rank(q.rank(n)).unwrap();
            prop_assert!(fine >= truth && (fine - truth) as f64 <= 0.008 * truth.unsigned_abs() as f64);
            let coarse = Distribution::from_blocks(&[block(&values)]).at_rank(q.rank(n)).unwrap();
            prop_assert!(coarse >= truth && (coarse - truth) as f64 <= 32.0 + 0.25 * truth.unsigned_abs() as f64);
        }

        #[test]
        fn quantiles_rise(values in prop::collection::vec(any::<i64>(), 1..200), mut ppm in [1_u32..1_000_000, 1_u32..1_000_000]) {
            let mut histogram = SignedHistogram::new();
            values.iter().for_each(|v| histogram.record(*v));
            let distribution = Distribution::from_histogram(&histogram.sparse());
            ppm.sort_unstable();
            let [a, b] = ppm.map(|p| distribution.at_rank(Quantile::parts_per_million(p).unwrap().rank(distribution.total())));
            prop_assert!(a <= b && a.is_some());
        }

        #[test]
        fn together_is_the_same_as_at_once(values in prop::collection::vec(any::<i64>(), 0..200), cut in 0_usize..200) {
            let of = |values: &[i64]| {
                let mut histogram = SignedHistogram::new();
                values.iter().for_each(|v| histogram.record(*v));
                Distribution::from_histogram(&histogram.sparse())
            };
            let (a, b) = values.split_at(cut.min(values.len()));
            prop_assert_eq!(of(a).with(of(b)), of(&values));
        }
    }
}
