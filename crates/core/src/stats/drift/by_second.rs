//! The course of a cell: maxima, means and late seconds, in bounded memory.

use std::collections::BTreeSet;

use super::episodes::LateOrder;
use crate::block::Moments;
use crate::run::{CellData, ThreadData};

/// With more blocks than this, two neighbours become one: about 70 minutes of seconds. They
/// take 128 KiB, and what is tested of a day takes no longer than that of an hour.
const MOST: usize = 4_096;

/// Late seconds beyond this are not kept: their order is then seen in the maxima.
const MOST_LATE: usize = 8_192;

/// The seconds of a cell over all of its threads. Blocks may come in any order of threads and
/// seconds.
#[derive(Debug, Clone, Default)]
pub struct BySecond {
    /// Of 2^`doubled` seconds each.
    spans: Vec<Stretch>,
    doubled: u32,
    late: BTreeSet<u64>,
    too_many_late: bool,
    /// The second after the last block.
    seconds: u64,
}

#[derive(Debug, Clone, Copy)]
struct Stretch {
    count: u64,
    max: i64,
    sum: i128,
}

impl Stretch {
    const EMPTY: Self = Self { count: 0, max: i64::MIN, sum: 0 };

    fn with(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            max: self.max.max(other.max),
            sum: self.sum.saturating_add(other.sum),
        }
    }
}

/// A block of equal length, over all threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merged {
    /// When it begins, s after the cell's start.
    pub(super) second: u64,
    pub(super) max: i64,
    pub(super) mean: f64,
}

impl BySecond {
    /// The primary series of a cell that was read back. Seconds are late if they hold a sample
    /// above `deadline_ns`.
    #[must_use]
    pub fn of(data: &CellData, deadline_ns: Option<u64>) -> Self {
        let deadline = deadline_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
        let mut course = Self::default();
        for block in data.threads.iter().map(ThreadData::primary).flat_map(|one| &one.blocks) {
            let late = deadline.is_some_and(|deadline| block.moments.max > deadline);
            course.add(block.index, &block.moments, late);
        }
        course
    }

    /// Adds a thread's block, the second since the cell's start that it began in, and whether
    /// it holds a sample later than the deadline.
    pub fn add(&mut self, second: u64, moments: &Moments, late: bool) {
        if moments.count == 0 {
            return;
        }
        self.seconds = self.seconds.max(second.saturating_add(1));
        let place = loop {
            match usize::try_from(second >> self.doubled) {
                Ok(place) if place < MOST => break place,
                _ => self.double(),
            }
        };
        if self.spans.len() <= place {
            self.spans.resize(place + 1, Stretch::EMPTY);
        }
        let Moments { count, max, sum, .. } = *moments;
        self.spans[place] = self.spans[place].with(Stretch { count, max, sum });
        if late && self.late.len() < MOST_LATE {
            self.late.insert(second);
        } else {
            self.too_many_late |= late && !self.late.contains(&second);
        }
    }

    /// Whether it has no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    fn double(&mut self) {
        let pair = |pair: &[Stretch]| pair.iter().fold(Stretch::EMPTY, |all, one| all.with(*one));
        self.spans = self.spans.chunks(2).map(pair).collect();
        self.doubled += 1;
    }

    /// Seconds in a block.
    pub(super) fn block_seconds(&self) -> u64 {
        1 << self.doubled
    }

    /// The blocks with samples, in the order of time. A last one with less than half of the
    /// usual number of samples is left out: the maximum of few is smaller.
    pub(super) fn blocks(&self) -> Vec<Merged> {
        let held = |stretch: &&Stretch| stretch.count > 0;
        let mut counts: Vec<u64> =
            self.spans.iter().filter(held).map(|stretch| stretch.count).collect();
        counts.sort_unstable();
        let usual = counts.get(counts.len() / 2).copied().unwrap_or(0);
        let last = self.spans.last().is_some_and(|stretch| stretch.count < usual.div_ceil(2));
        let all = (0_u64..).zip(&self.spans[..self.spans.len() - usize::from(last)]);
        #[allow(clippy::cast_precision_loss, reason = "only the order of means is used")]
        let block = |(place, stretch): (u64, &Stretch)| Merged {
            second: place << self.doubled,
            max: stretch.max,
            mean: stretch.sum as f64 / stretch.count as f64,
        };
        all.filter(|(_, stretch)| stretch.count > 0).map(block).collect()
    }

    /// The late seconds, of which those at most `gap` apart are one episode; none if they are too many
    /// to be told apart.
    pub(super) fn episodes(&self, gap: u64) -> Option<LateOrder> {
        (!self.too_many_late).then(|| LateOrder::of(&self.late, self.seconds, gap))
    }
}
