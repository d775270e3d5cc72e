//! Every second of a thread.

use punctual_core::block::Moments;
use punctual_core::schema::PhaseSeconds;

use super::{Block, Field, TrackOf};

/// Columns of [`moments_fields`].
pub(super) const MOMENTS: [&str; 8] = [
    "samples",
    "missed",
    "early",
    "above_deadline",
    "min_UNIT",
    "avg_UNIT",
    "max_UNIT",
    "max_at_ns",
];

pub(super) fn block(recording: &TrackOf<'_>) -> Option<Block> {
    let phases = PhaseSeconds::of(&recording.cell.phases);
    let rows = recording.data.blocks.iter().map(|block| {
        let mut row = vec![block.index.into()];
        row.extend(moments_fields(&block.moments));
        row.push(phase_number(phases.phase_of(block.index)));
        row
    });
    // The last one came last: scripts count columns.
    let columns = [&["second"], &MOMENTS[..], &["phase"]].concat();
    recording.block(&columns, rows.collect())
}

/// A phase as it is counted in reports, from 1; absent if the load changed.
pub(super) fn phase_number(phase: Option<usize>) -> Field {
    phase.map_or(Field::Absent, |phase| Field::from(phase as u64 + 1))
}

/// Exact numbers of one second or of several.
pub(super) fn moments_fields(moments: &Moments) -> [Field; 8] {
    let known = |value: Field| if moments.count == 0 { Field::Absent } else { value };
    [
        moments.count.into(),
        moments.missed.into(),
        moments.early.into(),
        moments.exceeded.into(),
        known(moments.min.into()),
        moments.mean().map_or(Field::Absent, Field::Mean),
        known(moments.max.into()),
        known(moments.max_at.into()),
    ]
}
