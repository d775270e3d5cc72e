//! Histograms that have ended: only the bins that count something. A recorded histogram takes
//! 16 bytes of memory per bin that its file names, whatever the bins are.

use super::{BINS, bin_high, bin_low};

/// The bins of a [`super::Histogram`] that are not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sparse {
    /// Ascending; no count is 0.
    bins: Vec<(u16, u64)>,
}

impl Sparse {
    /// The non-empty ones of these bins, which ascend.
    ///
    /// # Panics
    /// A bin is not below [`BINS`], or not above the one before it.
    #[must_use]
    pub fn of(bins: impl IntoIterator<Item = (usize, u64)>) -> Self {
        let mut sparse = Self::default();
        for (bin, count) in bins {
            assert!(sparse.push(bin, count), "bin {bin} is out of its order or of all bins");
        }
        sparse.bins.shrink_to_fit();
        sparse
    }

    /// Appends a bin; `false` if there is no such bin, or if it is not above the last one.
    #[must_use]
    pub fn push(&mut self, bin: usize, count: u64) -> bool {
        let follows = self.bins.last().is_none_or(|(last, _)| usize::from(*last) < bin);
        let Some(number) = u16::try_from(bin).ok().filter(|_| bin < BINS && follows) else {
            return false;
        };
        if count > 0 {
            self.bins.push((number, count));
        }
        true
    }

    /// Makes room for so many bins in addition.
    pub fn reserve(&mut self, bins: usize) {
        self.bins.reserve_exact(bins);
    }

    /// The number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bins.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The bins in ascending order, with their counts.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        self.bins.iter().map(|(bin, count)| (usize::from(*bin), *count))
    }

    /// The number of bins.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bins.len()
    }

    /// Whether it counts nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }
}

/// The bins of a [`super::SignedHistogram`] that are not empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedSparse {
    /// Values of zero and above.
    pub positive: Sparse,
    /// Magnitudes of the values below zero.
    pub negative: Sparse,
}

impl SignedSparse {
    /// The number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.positive.total().saturating_add(self.negative.total())
    }

    /// The bins, from the lowest value to the highest.
    pub fn bins(&self) -> impl DoubleEndedIterator<Item = SignedBin> + '_ {
        let below = self.negative.iter().rev().map(|(bin, count)| SignedBin {
            low: negated(bin_high(bin)),
            high: negated(bin_low(bin)),
            count,
        });
        let above = self.positive.iter().map(|(bin, count)| SignedBin {
            low: saturated(bin_low(bin)),
            high: saturated(bin_high(bin)),
            count,
        });
        below.chain(above)
    }

    /// How many values are above `limit`. A bin that contains `limit` counts as a whole, so
    /// the result is never too low.
    #[must_use]
    pub fn at_most_above(&self, limit: i64) -> u64 {
        let above = self.bins().filter(|bin| bin.high > limit);
        above.fold(0, |sum, bin| sum.saturating_add(bin.count))
    }
}

/// One bin of signed values, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedBin {
    /// The smallest value of the bin, ns.
    pub low: i64,
    /// The largest value of the bin, ns.
    pub high: i64,
    /// Number of values in it.
    pub count: u64,
}

fn saturated(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn negated(value: u64) -> i64 {
    0_i64.checked_sub_unsigned(value).unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{Histogram, SignedHistogram, bin_of};
    use proptest::prelude::*;

    #[test]
    fn only_ascending_bins_that_exist_are_taken() {
        let mut sparse = Sparse::default();
        assert!(sparse.push(3, 7) && !sparse.push(3, 1) && !sparse.push(2, 1));
        assert!(sparse.push(BINS - 1, 1) && !sparse.push(BINS, 1));
        assert!(Sparse::default().push(5, 0), "an empty bin is none, and no damage");
        assert_eq!(sparse.iter().collect::<Vec<_>>(), [(3, 7), (BINS - 1, 1)]);
        assert_eq!((sparse.total(), sparse.len()), (8, 2));
    }

    proptest! {
        #[test]
        fn it_counts_what_the_histogram_counted(values in prop::collection::vec(any::<i64>(), 0..200)) {
            let mut dense = SignedHistogram::new();
            for v in &values { dense.record(*v); }
            let sparse = dense.sparse();
            let mut again = SignedHistogram::new();
            again.merge(&sparse);
            prop_assert_eq!(&again, &dense);
            prop_assert_eq!(sparse.total(), values.len() as u64);
            for v in &values {
                let bin = bin_of(v.unsigned_abs());
                let side = if *v < 0 { &sparse.negative } else { &sparse.positive };
                prop_assert!(side.iter().any(|(b, _)| b == bin));
                prop_assert!(sparse.at_most_above(*v) >= values.iter().filter(|x| **x > *v).count() as u64);
            }
        }

        #[test]
        fn bins_follow_the_sorted_values(mut values in prop::collection::vec(any::<i64>(), 1..200)) {
            let mut dense = SignedHistogram::new();
            for v in &values { dense.record(*v); }
            values.sort_unstable();
            let sparse = dense.sparse();
            let mut rest = &values[..];
            for bin in sparse.bins() {
                let (of_bin, behind) = rest.split_at(usize::try_from(bin.count).unwrap());
                prop_assert!(of_bin.iter().all(|v| bin.low <= *v && *v <= bin.high));
                rest = behind;
            }
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn sums_of_damaged_counts_saturate() {
        let full = Sparse::of([(1, u64::MAX), (2, 5)]);
        assert_eq!(full.total(), u64::MAX);
        let mut dense = Histogram::new();
        dense.merge(&full);
        dense.merge(&full);
        assert_eq!(dense.sparse().iter().next(), Some((1, u64::MAX)));
    }
}
