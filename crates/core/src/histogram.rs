//! Log-linear histogram over all of u64 nanoseconds, and its signed pair.
//!
//! The layout is that of HdrHistogram (Gil Tene) with 7 sub-bits and no upper bound: exact
//! below 256 ns, bins under 0.8 % wide above. There is no overflow bucket, and nothing is
//! clamped.

mod sparse;

pub use sparse::{SignedBin, SignedSparse, Sparse};

const SUB_BITS: u32 = 7;
const LINEAR: usize = 1 << (SUB_BITS + 1);

/// Number of bins that cover every u64: 256 exact ones, then 128 for each of 56 octaves.
pub const BINS: usize = LINEAR + (64 - SUB_BITS as usize - 1) * (LINEAR / 2);

/// The number of fine bins in one coarse bin, as a shift. Blocks and crash recovery use 4 bins
/// per octave (32 ns wide below 256 ns, under 25 % above).
pub const COARSE_SHIFT: u32 = 5;

/// Number of coarse bins that cover every u64.
pub const COARSE_BINS: usize = BINS >> COARSE_SHIFT;

/// The bin of `value`, in `0..BINS`.
#[inline(always)]
#[must_use]
#[allow(clippy::cast_possible_truncation, reason = "what the shift leaves is below 256")]
pub const fn bin_of(value: u64) -> usize {
    let shift = (value | (1 << SUB_BITS)).ilog2() - SUB_BITS;
    ((shift as usize) << SUB_BITS) + (value >> shift) as usize
}

/// The smallest value of `bin`.
///
/// # Panics
/// `bin` is not below [`BINS`].
#[must_use]
pub const fn bin_low(bin: usize) -> u64 {
    assert!(bin < BINS);
    let small = bin < LINEAR;
    let bin = bin as u64;
    if small {
        return bin;
    }
    let shift = (bin >> SUB_BITS) - 1;
    (bin - (shift << SUB_BITS)) << shift
}

/// The largest value of `bin`.
///
/// # Panics
/// `bin` is not below [`BINS`].
#[must_use]
pub const fn bin_high(bin: usize) -> u64 {
    if bin + 1 < BINS { bin_low(bin + 1) - 1 } else { u64::MAX }
}

/// The smallest value of a coarse bin (see [`COARSE_SHIFT`]).
///
/// # Panics
/// `coarse` is not below [`COARSE_BINS`].
#[must_use]
pub const fn coarse_low(coarse: usize) -> u64 {
    bin_low(coarse << COARSE_SHIFT)
}

/// The largest value of a coarse bin.
///
/// # Panics
/// `coarse` is not below [`COARSE_BINS`].
#[must_use]
pub const fn coarse_high(coarse: usize) -> u64 {
    bin_high(((coarse + 1) << COARSE_SHIFT) - 1)
}

/// Counts of unsigned values, one per bin.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    /// An array, because its constant length spares the hot path bounds checks.
    counts: Box<[u64; BINS]>,
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().map(|(bin, n)| (bin_low(bin), n))).finish()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram; allocates 58 KiB.
    #[must_use]
    pub fn new() -> Self {
        // Built on the heap: on the stack of a probe's thread it would take up half.
        match vec![0; BINS].into_boxed_slice().try_into() {
            Ok(counts) => Self { counts },
            Err(_) => unreachable!("it has the length of its bins"),
        }
    }

    /// Counts one value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.record_bin(bin_of(value));
    }

    /// Counts one value, given its bin.
    #[inline(always)]
    pub fn record_bin(&mut self, bin: usize) {
        self.counts[bin] += 1;
    }

    /// Adds `count` values to `bin`.
    ///
    /// # Panics
    /// `bin` is not below [`BINS`].
    pub fn add(&mut self, bin: usize, count: u64) {
        self.counts[bin] += count;
    }

    /// Adds all counts of another histogram.
    pub fn merge(&mut self, other: &Sparse) {
        for (bin, count) in other.iter() {
            self.counts[bin] = self.counts[bin].saturating_add(count);
        }
    }

    /// The same counts in as little memory as they need.
    #[must_use]
    pub fn sparse(&self) -> Sparse {
        Sparse::of(self.iter())
    }

    /// Removes all values in place, without allocating or freeing memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// Removes the `count` lowest values, or all if there are fewer.
    pub fn remove_lowest(&mut self, count: u64) {
        let mut left = count;
        for n in self.counts.iter_mut() {
            let removed = left.min(*n);
            *n -= removed;
            left -= removed;
        }
    }

    /// The number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The non-empty bins in ascending order, with their counts.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, n)| **n != 0).map(|(bin, n)| (bin, *n))
    }

    /// Adds the values `latency - period, latency - 2 period, …` of `missed` releases, `times`
    /// times: what the releases missed by a late start would have seen (METHODOLOGY.md,
    /// "Corrected distribution"). Works bin by bin, so the cost does not grow with the number
    /// of missed periods.
    pub fn expand_late(&mut self, latency: u64, period: u64, missed: u64, times: u64) {
        let count = missed.min(missed_behind(latency, period));
        let mut done = 0;
        while done < count {
            // The j-th value (from 1) is latency - j * period; all values in one bin are added
            // at once.
            let value = latency - (done + 1) * period;
            let bin = bin_of(value);
            let in_bin = (value - bin_low(bin)) / period + 1;
            let step = in_bin.min(count - done);
            self.counts[bin] += step * times;
            done += step;
        }
    }
}

/// How many releases were missed by a start that was `latency` late. A release that is due
/// exactly now is not missed.
#[inline(always)]
#[must_use]
pub const fn missed_behind(latency: u64, period: u64) -> u64 {
    if latency == 0 || period == 0 { 0 } else { (latency - 1) / period }
}

/// Counts of signed values: one histogram for zero and above, another for the magnitudes below
/// zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignedHistogram {
    /// Values of zero and above.
    pub positive: Histogram,
    /// Magnitudes of the values below zero.
    pub negative: Histogram,
}

impl SignedHistogram {
    /// An empty pair; allocates 116 KiB.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes all values in place, without allocating or freeing memory.
    pub fn clear(&mut self) {
        self.positive.clear();
        self.negative.clear();
    }

    /// Counts one value.
    #[inline(always)]
    pub fn record(&mut self, value: i64) {
        if value >= 0 {
            self.positive.record(value.unsigned_abs());
        } else {
            self.negative.record(value.unsigned_abs());
        }
    }

    /// Adds all counts of a pair.
    pub fn merge(&mut self, other: &SignedSparse) {
        self.positive.merge(&other.positive);
        self.negative.merge(&other.negative);
    }

    /// The same counts in as little memory as they need.
    #[must_use]
    pub fn sparse(&self) -> SignedSparse {
        SignedSparse { positive: self.positive.sparse(), negative: self.negative.sparse() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_are_a_partition_of_u64() {
        assert_eq!(BINS, 7_424);
        assert_eq!(COARSE_BINS, 232);
        assert_eq!(bin_of(0), 0);
        assert_eq!(bin_of(u64::MAX), BINS - 1);
        for bin in 0..BINS {
            assert_eq!(bin_of(bin_low(bin)), bin);
            assert_eq!(bin_of(bin_high(bin)), bin);
            if bin > 0 {
                assert_eq!(bin_high(bin - 1) + 1, bin_low(bin));
            }
        }
        for coarse in 1..COARSE_BINS {
            assert_eq!(coarse_high(coarse - 1) + 1, coarse_low(coarse));
        }
        assert_eq!(coarse_high(COARSE_BINS - 1), u64::MAX);
    }

    #[test]
    fn a_stall_of_100_ms_leaves_99_missed_releases() {
        let mut h = Histogram::new();
        h.expand_late(100_000_000, 1_000_000, u64::MAX, 1);
        assert_eq!(h.iter().next(), Some((bin_of(1_000_000), 1)));
        assert_eq!(h.total(), 99);
    }

    #[test]
    fn the_last_positive_value_is_kept() {
        let mut h = Histogram::new();
        h.expand_late(100_500_000, 1_000_000, u64::MAX, 1);
        assert_eq!(h.iter().next(), Some((bin_of(500_000), 1)));
    }

    proptest! {
        #[test]
        fn bins_are_narrow(value in any::<u64>()) {
            let bin = bin_of(value);
            prop_assert!(bin_low(bin) <= value && value <= bin_high(bin));
            let width = bin_high(bin) - bin_low(bin);
            if value < 256 { prop_assert_eq!(width, 0) } else { prop_assert!(width < value / 127) }
        }

        #[test]
        fn expansion_by_bins_equals_expansion_by_loop(
            latency in 1_u64..1_000_000, period in 1_u64..10_000,
        ) {
            let mut by_bins = Histogram::new();
            by_bins.expand_late(latency, period, u64::MAX, 1);
            let mut by_loop = Histogram::new();
            let mut value = latency;
            while value > period {
                value -= period;
                by_loop.record(value);
            }
            prop_assert_eq!(missed_behind(latency, period), by_loop.total());
            prop_assert_eq!(by_bins, by_loop);
        }

        #[test]
        fn counts_agree_with_hdrhistogram(values in prop::collection::vec(1_u64..1 << 60, 1..500)) {
            let mut ours = Histogram::new();
            // Two significant digits is HdrHistogram's name for 7 sub-bits.
            let mut theirs = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 61, 2).unwrap();
            for v in &values {
                ours.record(*v);
                theirs.record(*v).unwrap();
            }
            for v in &values {
                let bin = bin_of(*v);
                prop_assert_eq!(theirs.count_between(bin_low(bin), bin_high(bin)),
                    ours.iter().find(|(b, _)| *b == bin).unwrap().1);
            }
        }
    }
}
