//! Distributions of cells, at the best resolution that was recorded.

use std::collections::BTreeMap;

use punctual_core::block::{CoarseBin, coarse_range};
use punctual_core::histogram::{Histogram, SignedBin, SignedHistogram};
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::Cell;

/// The distribution of a cell over all of its threads.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    /// Bins that hold something, ascending; the outer ends are the exact extremes.
    pub bins: Vec<SignedBin>,
    /// Whether the bins are those of blocks (under 25 % wide), for want of the histogram.
    pub coarse: bool,
}

impl Distribution {
    /// The samples of a cell.
    #[must_use]
    pub fn of_samples(cell: &Cell, data: &CellData) -> Self {
        let coarse = is_coarse(data);
        let mut bins: Vec<_> =
            if coarse { coarse_bins(data) } else { merged(data).bins().collect() };
        // A bin reaches past the sample in it; the extremes are known exactly.
        if let (Some(first), Some(min)) = (bins.first_mut(), cell.stats.min_ns) {
            first.low = min.clamp(first.low, first.high);
        }
        if let (Some(last), Some(max)) = (bins.last_mut(), cell.stats.max_ns) {
            last.high = max.clamp(last.low, last.high);
        }
        Self { bins, coarse }
    }

    /// The corrected distribution: the samples, and every missed release as
    /// late as it was (measurement.md, 2).
    #[must_use]
    pub fn corrected(cell: &Cell, data: &CellData) -> Self {
        let mut all = Self::of_samples(cell, data);
        let mut behind = SignedHistogram::new();
        for thread in &data.threads {
            if let Some(part) = &thread.behind {
                behind.positive.merge(part);
            } else if let Some(period) = cell.interval_ns {
                for late in &thread.late {
                    behind.positive.expand_late(late.latency, period, late.missed, 1);
                }
            }
        }
        all.bins.extend(behind.bins());
        all.bins.sort_unstable_by_key(|bin| (bin.high, bin.low));
        all
    }

    /// The number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bins.iter().map(|bin| bin.count).sum()
    }
}

fn is_coarse(data: &CellData) -> bool {
    data.threads.iter().any(|thread| thread.histogram.is_none() && !thread.blocks.is_empty())
}

fn merged(data: &CellData) -> SignedHistogram {
    let mut all = SignedHistogram { positive: Histogram::new(), negative: Histogram::new() };
    for histogram in data.threads.iter().filter_map(|t| t.histogram.as_ref()) {
        all.merge(histogram);
    }
    all
}

fn coarse_bins(data: &CellData) -> Vec<SignedBin> {
    let mut counts: BTreeMap<CoarseBin, u64> = BTreeMap::new();
    for block in data.threads.iter().flat_map(|thread| &thread.blocks) {
        for (bin, count) in &block.coarse {
            *counts.entry(*bin).or_default() += u64::from(*count);
        }
    }
    let bins = counts.into_iter().map(|(bin, count)| {
        let (low, high) = coarse_range(bin);
        SignedBin { low, high, count }
    });
    bins.collect()
}

/// The cells of a run with their recordings; an empty recording where there is none.
pub fn cells(run: &LoadedRun) -> impl Iterator<Item = (&Cell, &CellData)> {
    const NOTHING: &CellData =
        &CellData { threads: Vec::new(), work: Vec::new(), system: Vec::new(), damaged: 0 };
    run.run.cells.iter().enumerate().map(|(i, cell)| (cell, run.cells.get(i).unwrap_or(NOTHING)))
}
