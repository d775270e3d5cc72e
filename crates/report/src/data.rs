//! Distributions of cells, at the best resolution that was recorded.

use std::collections::BTreeMap;

use punctual_core::block::{CoarseBin, coarse_range};
use punctual_core::histogram::{SignedBin, SignedHistogram, SignedSparse};
use punctual_core::legs::CellLegs;
use punctual_core::run::{CellData, LoadedRun, SeriesData, ThreadData};
use punctual_core::schema::{Cell, Latency, Stats};
use punctual_core::stats::behind_of;

/// The distribution of a cell over all of its threads.
#[derive(Debug, Clone, Default)]
pub struct Bins {
    /// Non-empty bins, ascending; the outer ends are the exact extremes.
    pub bins: Vec<SignedBin>,
    /// Whether the bins are those of blocks (under 25 % wide), for want of the histogram.
    pub coarse: bool,
}

impl Bins {
    /// The samples of a cell's primary series.
    #[must_use]
    pub fn of_samples(latency: &Latency, data: &CellData) -> Self {
        Self::of(primaries(data), &latency.stats)
    }

    /// The samples of another series of a cell, by its index there; none if it has no such series.
    #[must_use]
    pub fn of_series(latency: &Latency, data: &CellData, index: usize) -> Self {
        let series = latency.series.get(index);
        series.map_or_else(Self::default, |series| Self::of(others(data, index), &series.stats))
    }

    /// The samples of one thread's primary series.
    #[must_use]
    pub fn of_thread(stats: &Stats, data: &ThreadData) -> Self {
        Self::of(std::iter::once(data.primary()), stats)
    }

    fn of<'a>(all: impl Iterator<Item = &'a SeriesData> + Clone, stats: &Stats) -> Self {
        let mut each = all.clone();
        let coarse = each.any(|one| one.histogram.is_none() && !one.blocks.is_empty());
        let bins = if coarse { coarse_bins(all) } else { merged(all).bins().collect() };
        Self { bins, coarse }.ending_at(stats)
    }

    /// A bin reaches past the sample in it; the extremes are known exactly.
    fn ending_at(mut self, stats: &Stats) -> Self {
        if let (Some(first), Some(min)) = (self.bins.first_mut(), stats.min) {
            first.low = min.clamp(first.low, first.high);
        }
        if let (Some(last), Some(max)) = (self.bins.last_mut(), stats.max) {
            last.high = max.clamp(last.low, last.high);
        }
        self
    }

    /// The corrected distribution: the samples, and every missed release with its actual
    /// delay (METHODOLOGY.md, "Corrected distribution").
    #[must_use]
    pub fn corrected(latency: &Latency, data: &CellData) -> Self {
        let mut all = Self::of_samples(latency, data);
        let parts = primaries(data).filter_map(|series| behind_of(series, latency.interval_ns));
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        // A histogram is large: none for nothing, as there may be a thousand cells.
        if parts.is_empty() {
            return all;
        }
        let mut missed = SignedHistogram::new();
        parts.iter().for_each(|part| missed.positive.merge(part));
        all.bins.extend(missed.sparse().bins());
        all.bins.sort_unstable_by_key(|bin| (bin.high, bin.low));
        all
    }

    /// The number of values.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bins.iter().fold(0, |sum, bin| sum.saturating_add(bin.count))
    }
}

/// Whether a quantity has a sign: more than 0.1 % of its samples are below zero. Of a latency a few
/// may be, by the error of a clock.
#[must_use]
pub fn is_signed(stats: &Stats) -> bool {
    stats.early > stats.samples / 1_000
}

/// What every thread recorded of the primary series.
pub fn primaries(data: &CellData) -> impl Iterator<Item = &SeriesData> + Clone {
    data.threads.iter().map(ThreadData::primary)
}

/// What every thread recorded of another series, by its index in the cell.
pub fn others(data: &CellData, index: usize) -> impl Iterator<Item = &SeriesData> + Clone {
    data.threads.iter().map(move |thread| thread.series(index + 1))
}

fn merged<'a>(all: impl Iterator<Item = &'a SeriesData>) -> SignedSparse {
    let histograms: Vec<_> = all.filter_map(|series| series.histogram.as_ref()).collect();
    match histograms[..] {
        [] => SignedSparse::default(),
        [only] => only.clone(),
        _ => {
            let mut all = SignedHistogram::new();
            histograms.into_iter().for_each(|histogram| all.merge(histogram));
            all.sparse()
        }
    }
}

fn coarse_bins<'a>(all: impl Iterator<Item = &'a SeriesData>) -> Vec<SignedBin> {
    let mut counts: BTreeMap<CoarseBin, u64> = BTreeMap::new();
    for block in all.flat_map(|series| &series.blocks) {
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

/// The cells of a run with their recordings; an empty recording if there is none.
pub fn cells(run: &LoadedRun) -> impl Iterator<Item = (&Cell, &CellData)> {
    const NOTHING: &CellData = &CellData {
        threads: Vec::new(),
        work: Vec::new(),
        phases: Vec::new(),
        system: Vec::new(),
        intervals: Vec::new(),
        actors: BTreeMap::new(),
        stops: BTreeMap::new(),
        damaged: 0,
    };
    run.run.cells.iter().enumerate().map(|(i, cell)| (cell, run.cells.get(i).unwrap_or(NOTHING)))
}

/// The legs of a cell's samples, if somebody has looked for them.
pub fn legs<'a>(run: &'a LoadedRun, cell: &Cell) -> Option<&'a CellLegs> {
    run.legs.as_ref()?.cells.iter().find(|legs| legs.key == cell.key)
}
