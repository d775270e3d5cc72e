//! Blocks, each with one second of a probe thread's results, and the exact moments.

use crate::histogram::{COARSE_SHIFT, bin_of, coarse_high, coarse_low};

/// The length of a block, ns.
pub const BLOCK_NS: u64 = crate::units::SECOND_NS;

/// Exact count, extremes and integer sums of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moments {
    /// Samples.
    pub count: u64,
    /// Releases that late samples missed.
    pub missed: u64,
    /// Samples below zero.
    pub early: u64,
    /// Samples above the deadline, if the run has one.
    pub exceeded: u64,
    /// Smallest sample, ns; `i64::MAX` without samples.
    pub min: i64,
    /// Largest sample, ns; `i64::MIN` without samples.
    pub max: i64,
    /// When the largest sample was taken, ns after the cell's start.
    pub max_at: u64,
    /// Sum of the samples.
    pub sum: i128,
    /// Sum of their squares.
    pub sum_sq: u128,
}

impl Default for Moments {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Moments {
    /// No samples.
    pub const EMPTY: Self = Self {
        count: 0,
        missed: 0,
        early: 0,
        exceeded: 0,
        min: i64::MAX,
        max: i64::MIN,
        max_at: 0,
        sum: 0,
        sum_sq: 0,
    };

    /// Adds the samples of `other`, which are later.
    pub fn merge(&mut self, other: &Self) {
        // Saturating, because blocks come from files that may be damaged.
        self.count = self.count.saturating_add(other.count);
        self.missed = self.missed.saturating_add(other.missed);
        self.early = self.early.saturating_add(other.early);
        self.exceeded = self.exceeded.saturating_add(other.exceeded);
        self.min = self.min.min(other.min);
        if other.max > self.max {
            self.max = other.max;
            self.max_at = other.max_at;
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_sq = self.sum_sq.saturating_add(other.sum_sq);
    }

    /// Adds one sample, `latency` ns taken `at`, ns after the cell's start, wherever it is in the order
    /// of time.
    pub fn insert(&mut self, at: u64, latency: i64, deadline: i64) {
        self.count = self.count.saturating_add(1);
        self.early = self.early.saturating_add(u64::from(latency < 0));
        self.exceeded = self.exceeded.saturating_add(u64::from(latency > deadline));
        self.min = self.min.min(latency);
        // The first one of those that are equal.
        if latency > self.max || (latency == self.max && at < self.max_at) {
            (self.max, self.max_at) = (latency, at);
        }
        let square = u128::from(latency.unsigned_abs()).pow(2);
        self.sum = self.sum.saturating_add(i128::from(latency));
        self.sum_sq = self.sum_sq.saturating_add(square);
    }

    /// Mean, ns; `None` without samples.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        reason = "a mean of more than 2^53 ns needs no last digit"
    )]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| {
            let count = i128::from(self.count);
            (self.sum / count) as f64 + (self.sum % count) as f64 / count as f64
        })
    }

    /// Population standard deviation, ns; `None` without samples. Computed as `n sum(x^2) -
    /// sum(x)^2` in integers, which avoids cancellation. Only sums beyond 128 bits (a mean of
    /// hours over billions of samples) use floats.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "the result is a float")]
    pub fn stddev(&self) -> Option<f64> {
        (self.count > 0).then(|| {
            let n = u128::from(self.count);
            let sum = self.sum.unsigned_abs();
            let exact = n
                .checked_mul(self.sum_sq)
                .zip(sum.checked_mul(sum))
                .map(|(a, b)| a.saturating_sub(b) as f64);
            let spread = exact.unwrap_or_else(|| {
                let n = n as f64;
                (n * self.sum_sq as f64 - (sum as f64) * (sum as f64)).max(0.0)
            });
            spread.sqrt() / n as f64
        })
    }
}

/// A coarse bin of signed values: 4 per octave, 32 ns wide below 256 ns. `0..232` are for zero
/// and above, `-1..=-232` for the magnitudes below zero.
pub type CoarseBin = i16;

/// The coarse bin of a value.
#[must_use]
pub fn coarse_bin(value: i64) -> CoarseBin {
    let bin = i16::try_from(bin_of(value.unsigned_abs()) >> COARSE_SHIFT).unwrap_or(i16::MAX);
    if value < 0 { -bin - 1 } else { bin }
}

/// The smallest and the largest value of a coarse bin, ns.
///
/// # Panics
/// There is no such bin.
#[must_use]
pub fn coarse_range(bin: CoarseBin) -> (i64, i64) {
    let clamp = |v: u64| i64::try_from(v).unwrap_or(i64::MAX);
    if bin >= 0 {
        let bin = usize::from(bin.unsigned_abs());
        (clamp(coarse_low(bin)), clamp(coarse_high(bin)))
    } else {
        let bin = usize::from((bin + 1).unsigned_abs());
        (-clamp(coarse_high(bin)), -clamp(coarse_low(bin)))
    }
}

/// One second of a probe thread's results. A block can stand for several seconds if nothing
/// was released (long intervals) or if the collector was starved for longer than the ring
/// lasts; a gap between indices shows that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Number of the thread.
    pub thread: u32,
    /// Number of the series: 0 for the primary one.
    pub series: u32,
    /// The second since the cell's start in which its first sample fell.
    pub index: u64,
    /// Exact results.
    pub moments: Moments,
    /// Coarse histogram: bins in ascending order with their counts.
    pub coarse: Vec<(CoarseBin, u32)>,
}

impl Block {
    /// Adds one sample, as [`Moments::insert`] does.
    pub fn insert(&mut self, at: u64, latency: i64, deadline: i64) {
        self.moments.insert(at, latency, deadline);
        let bin = coarse_bin(latency);
        match self.coarse.binary_search_by_key(&bin, |(bin, _)| *bin) {
            Ok(place) => self.coarse[place].1 = self.coarse[place].1.saturating_add(1),
            Err(place) => self.coarse.insert(place, (bin, 1)),
        }
    }

    /// How many samples may be above `limit`, ns: a coarse bin that contains it counts as a whole.
    #[must_use]
    pub fn above(&self, limit: i64) -> u64 {
        if self.moments.max <= limit {
            return 0;
        }
        let above = self.coarse.iter().filter(|(bin, _)| coarse_range(*bin).1 > limit);
        above.map(|(_, count)| u64::from(*count)).sum()
    }

    /// How many samples are above `limit`, ns, at least: a coarse bin that contains it does not count.
    #[must_use]
    pub fn surely_above(&self, limit: i64) -> u64 {
        let above = self.coarse.iter().filter(|(bin, _)| coarse_range(*bin).0 > limit);
        above.map(|(_, count)| u64::from(*count)).sum()
    }
}

/// A sample so late that further releases were missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Late {
    /// Number of the thread.
    pub thread: u32,
    /// Number of the series: 0 for the primary one.
    pub series: u32,
    /// When the sample was taken, ns after the cell's start.
    pub at: u64,
    /// Its latency, ns.
    pub latency: u64,
    /// Releases that passed meanwhile.
    pub missed: u64,
}

/// Late activations of one thread at most [`SPELL_GAP_NS`] apart that started in one second: what
/// late episodes are made of, for any gap that is not shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spell {
    /// Number of the thread.
    pub thread: u32,
    /// The first release, ns after the cell's start; 0 if that was before it.
    pub from: u64,
    /// The last start, ns after the cell's start.
    pub to: u64,
    /// Activations later than the deadline, missed ones included.
    pub late: u64,
}

/// What a load puts on the machine; `None` for what the kernel does not tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strain {
    /// Interrupts served, of all CPUs.
    pub interrupts: Option<u64>,
    /// Context switches, of all CPUs.
    pub switches: Option<u64>,
    /// Share of the time in which at least one task waited for a CPU, for memory and for I/O,
    /// thousandths (`some` of Documentation/accounting/psi.rst).
    pub pressure: [Option<u32>; 3],
}

/// The machine in one second of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct System {
    /// Seconds since the cell's start.
    pub second: u64,
    /// Time that was not idle, thousandths of all CPUs' time.
    pub busy: u32,
    /// Time given to others by the hypervisor, part of `busy`.
    pub steal: u32,
    /// What came besides.
    pub strain: Strain,
}

/// The longest time from a late start to the release of the next late activation that belongs to
/// the same spell, ns.
pub const SPELL_GAP_NS: u64 = crate::units::SECOND_NS / 10;

/// One of the worst samples of a thread, kept exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlier {
    /// When it was taken, ns after the cell's start.
    pub at: u64,
    /// Its latency, ns.
    pub latency: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moments(values: &[i64]) -> Moments {
        let mut m = Moments::EMPTY;
        for (at, v) in values.iter().enumerate() {
            m.merge(&Moments {
                count: 1,
                min: *v,
                max: *v,
                max_at: at as u64,
                sum: i128::from(*v),
                sum_sq: u128::from(v.unsigned_abs()).pow(2),
                ..Moments::EMPTY
            });
        }
        m
    }

    #[test]
    fn no_samples_have_no_mean() {
        assert_eq!(Moments::EMPTY.mean(), None);
        assert_eq!(Moments::EMPTY.stddev(), None);
    }

    #[test]
    fn the_first_largest_sample_keeps_its_time() {
        assert_eq!(moments(&[3, 9, 9, 1]).max_at, 1);
    }

    proptest! {
        #[test]
        fn mean_and_deviation_agree_with_floats(values in prop::collection::vec(-1_000_000_000_i64..1_000_000_000, 1..300)) {
            let m = moments(&values);
            let n = values.len() as f64;
            let mean = values.iter().map(|v| *v as f64).sum::<f64>() / n;
            let var = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert!((m.mean().unwrap() - mean).abs() < 1e-3);
            prop_assert!((m.stddev().unwrap() - var.sqrt()).abs() < 1e-3 * (1.0 + var.sqrt()));
        }

        #[test]
        fn coarse_bins_hold_their_values(value in any::<i64>()) {
            let (low, high) = coarse_range(coarse_bin(value));
            prop_assert!(low <= value && value <= high || value == i64::MIN);
            if value.unsigned_abs() >= 256 {
                prop_assert!((high - low) as f64 <= 0.25 * value.unsigned_abs() as f64);
            }
        }
    }
}
