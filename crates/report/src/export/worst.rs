//! The worst samples of a thread, and those above the threshold of its run.

use super::{Block, TrackOf};

pub(super) fn block(recording: &TrackOf<'_>) -> Option<Block> {
    let epoch = recording.cell.epoch_ns;
    let mut samples = recording.data.outliers.clone();
    samples.sort_by_key(|sample| (std::cmp::Reverse(sample.latency), sample.at));
    let rows = samples.iter().map(|sample| {
        let monotonic = epoch.and_then(|epoch| epoch.checked_add(sample.at));
        let monotonic = monotonic.map_or(super::Field::Absent, Into::into);
        vec![sample.latency.into(), sample.at.into(), monotonic]
    });
    recording.block(&["latency_UNIT", "at_ns", "monotonic_ns"], rows.collect())
}
