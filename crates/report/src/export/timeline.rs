//! Every second of a thread.

use super::{Block, Field, TrackOf};

pub(super) fn block(recording: &TrackOf<'_>) -> Option<Block> {
    let rows = recording.data.blocks.iter().map(|block| {
        let moments = &block.moments;
        let known = |value: i64| if moments.count == 0 { Field::Absent } else { value.into() };
        vec![
            block.index.into(),
            moments.count.into(),
            moments.missed.into(),
            moments.early.into(),
            moments.exceeded.into(),
            known(moments.min),
            moments.mean().map_or(Field::Absent, Field::Mean),
            known(moments.max),
            if moments.count == 0 { Field::Absent } else { moments.max_at.into() },
        ]
    });
    let columns = [
        "second",
        "samples",
        "missed",
        "early",
        "above_deadline",
        "min_UNIT",
        "avg_UNIT",
        "max_UNIT",
        "max_at_ns",
    ];
    recording.block(&columns, rows.collect())
}
