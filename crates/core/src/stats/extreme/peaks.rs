//! Block maxima of a run, and the clusters of those above a threshold.
//!
//! Blocks are seconds. Those above the threshold that follow one another are one cluster: the runs
//! estimator (Smith and Weissman, J. R. Statist. Soc. B 56, 1994) with a run of one second, fixed.
//! Its largest maximum is its **peak**.
//!
//! Clusters that have nothing to do with each other meet by chance, and then the larger peak is
//! seen. The higher the threshold, the rarer; at one second in ten it would make a shape lower by
//! about 0.04. High clusters begin as a Poisson process (Hsing, Hüsler and Leadbetter, Probab.
//! Theory Relat. Fields 78, 1988), so a second that follows one below the threshold begins a
//! cluster as often as any other. With C clusters behind I seconds below it, `-ln(1 - C / I)` begin
//! per second, met ones too, and a share of those that begin is not seen by itself. The number of
//! those that met is taken as geometric, which is exact for independent seconds.

use super::pareto::{Excess, Excesses};
use crate::block::Block;
use crate::stats::bounds::real;

/// What a clock's steps differ by when they are rounded to nanoseconds.
const ROUNDING_NS: u64 = 2;

/// Cells per mean excess: wide enough to save time, narrow enough to lose nothing (the shape's
/// standard error grows by less than 1e-4 of itself).
const CELLS_PER_MEAN: f64 = 64.0;

/// The largest sample of each second of a series, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seconds {
    maxima: Vec<i64>,
    /// Steps in which values are measured, ns.
    step: u64,
}

/// The clusters of a stretch of seconds above a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Peaks {
    /// Seconds with a maximum of at least this belong to clusters, ns.
    pub threshold: i64,
    /// The largest value of each cluster, in the order of time, ns.
    pub values: Vec<i64>,
    /// How many clusters began, those that met others too.
    pub begun: f64,
    /// Steps in which values are measured, ns.
    step: u64,
}

impl Seconds {
    /// Those of recorded blocks. A block without samples is left out; one that stands for several
    /// seconds counts as one.
    #[must_use]
    pub fn of_blocks(blocks: &[Block]) -> Self {
        let held = blocks.iter().filter(|block| block.moments.count > 0);
        Self::new(held.map(|block| block.moments.max).collect())
    }

    /// These maxima, ns.
    #[must_use]
    pub fn new(maxima: Vec<i64>) -> Self {
        let step = step_of(&maxima);
        Self { maxima, step }
    }

    /// The maxima, ns.
    #[must_use]
    pub fn maxima(&self) -> &[i64] {
        &self.maxima
    }

    /// The steps in which values are measured, ns: 1, or those of a coarse clock.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The lowest threshold that at most the share `part` of all seconds reach, ns.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a number of seconds"
    )]
    pub(super) fn threshold(&self, sorted: &[i64], part: f64) -> i64 {
        let reached = (real(sorted.len() as u64) * part) as usize;
        let below = sorted.len().saturating_sub(reached + 1);
        sorted.get(below).map_or(i64::MAX, |value| value.saturating_add_unsigned(self.step))
    }

    /// The clusters of all seconds.
    #[must_use]
    pub fn peaks(&self, threshold: i64) -> Peaks {
        self.peaks_within(threshold, 0, self.maxima.len())
    }

    /// The clusters of the seconds `from..to`.
    pub(super) fn peaks_within(&self, threshold: i64, from: usize, to: usize) -> Peaks {
        let mut values: Vec<i64> = Vec::new();
        let (mut below, mut within) = (0_u64, false);
        let stretch = &self.maxima[from..to];
        for value in stretch {
            if *value < threshold {
                (below, within) = (below + 1, false);
            } else if within {
                let last = values.len() - 1;
                values[last] = values[last].max(*value);
            } else {
                values.push(*value);
                within = true;
            }
        }
        let share = real(values.len() as u64) / real(below.max(1));
        let begun = real(stretch.len() as u64) * -(-share.min(0.999)).ln_1p();
        Peaks { threshold, values, begun, step: self.step }
    }
}

impl Peaks {
    /// How many clusters are seen.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The excesses over the threshold in cells of whole steps, ns; none if one cell has them all.
    #[must_use]
    pub fn excesses(&self) -> Option<Excesses> {
        let mut above: Vec<_> = self.values.iter().map(|v| v.abs_diff(self.threshold)).collect();
        above.sort_unstable();
        let sum: f64 = above.iter().map(|excess| real(*excess)).sum();
        let seen = real(above.len() as u64);
        let steps = (sum / seen / CELLS_PER_MEAN / real(self.step)).max(1.0).floor();
        let width = steps * real(self.step);
        let mut cells: Vec<Excess> = Vec::new();
        for excess in above {
            let low = (real(excess) / width).floor() * width;
            match cells.last_mut() {
                Some(cell) if cell.low >= low => cell.count += 1.0,
                _ => cells.push(Excess { low, high: low + width, count: 1.0 }),
            }
        }
        Excesses::new(cells, (1.0 - seen / self.begun).clamp(0.0, 0.9))
    }
}

/// The steps in which values are measured: the smallest difference of two that no rounding to
/// nanoseconds makes. Of values of a fine clock this is some nanoseconds, which changes nothing.
fn step_of(maxima: &[i64]) -> u64 {
    let mut sorted = maxima.to_vec();
    sorted.sort_unstable();
    let steps = sorted.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
    steps.filter(|step| *step > ROUNDING_NS).min().unwrap_or(1)
}
