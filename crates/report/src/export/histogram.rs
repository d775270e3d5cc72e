//! Histograms of threads, at the best resolution that was recorded.

use std::collections::BTreeMap;

use punctual_core::block::{CoarseBin, coarse_range};
use punctual_core::histogram::{SignedBin, SignedSparse};
use punctual_core::run::SeriesData;
use punctual_core::stats::behind_of;

use super::{Block, Field, TrackOf};

/// The non-empty bins of a series, ascending. Those of a cell that was cut short come from its
/// blocks.
pub(super) fn bins(data: &SeriesData) -> Vec<SignedBin> {
    if let Some(histogram) = &data.histogram {
        return histogram.bins().collect();
    }
    let mut counts: BTreeMap<CoarseBin, u64> = BTreeMap::new();
    for (bin, count) in data.blocks.iter().flat_map(|block| &block.coarse) {
        *counts.entry(*bin).or_default() += u64::from(*count);
    }
    let bins = counts.into_iter().map(|(bin, count)| {
        let (low, high) = coarse_range(bin);
        SignedBin { low, high, count }
    });
    bins.collect()
}

pub(super) fn block(recording: &TrackOf<'_>) -> Option<Block> {
    let mut counts: BTreeMap<(i64, i64), [u64; 2]> = BTreeMap::new();
    for bin in bins(recording.data) {
        counts.entry((bin.low, bin.high)).or_default()[0] += bin.count;
    }
    let interval = recording.latency.interval_ns.filter(|_| recording.is_primary);
    if let Some(positive) = behind_of(recording.data, interval) {
        let missed = SignedSparse { positive: positive.into_owned(), ..SignedSparse::default() };
        for bin in missed.bins() {
            counts.entry((bin.low, bin.high)).or_default()[1] += bin.count;
        }
    }
    let rows = counts.into_iter().map(|((low, high), [samples, missed])| {
        vec![low.into(), high.into(), samples.into(), missed.into()]
    });
    let rows: Vec<Vec<Field>> = rows.collect();
    recording.block(&["low_UNIT", "high_UNIT", "samples", "missed"], rows)
}
