//! What a thread found in each phase of its load, and while the load changed.

use punctual_core::block::Moments;
use punctual_core::compare::CHANGES;
use punctual_core::schema::{PhaseFound, PhaseSeconds};

use super::timeline::{MOMENTS, moments_fields, phase_number};
use super::{Block, Field, TrackOf};
use crate::words::clean;

pub(super) fn block(recording: &TrackOf<'_>) -> Option<Block> {
    let cell = recording.cell;
    let seconds = PhaseSeconds::of(&cell.phases);
    let row = |phase: Option<usize>, load: &str, found: &PhaseFound| {
        let mut all = Moments::EMPTY;
        let blocks = recording.data.blocks.iter();
        let own = blocks.filter(|block| seconds.phase_of(block.index) == phase);
        own.for_each(|block| all.merge(&block.moments));
        let stats = &found.stats;
        // Histograms are kept of the phases of a cell, not of each of its threads.
        let quantiles = [stats.p50, stats.p99, stats.p999];
        let quantiles = quantiles.map(|value| value.filter(|_| recording.is_primary));
        let first =
            [phase_number(phase), Field::Text(clean(load).into_owned()), found.seconds.into()];
        let last = quantiles.map(|value| value.map_or(Field::Absent, Into::into));
        first.into_iter().chain(moments_fields(&all)).chain(last).collect()
    };
    let phases = cell.phases.iter().enumerate();
    let phases = phases.map(|(number, phase)| row(Some(number), &phase.load, &phase.found));
    let changes = cell.changes.iter().filter(|found| found.seconds > 0);
    let rows: Vec<_> = phases.chain(changes.map(|found| row(None, CHANGES, found))).collect();
    let columns = [&["phase", "load", "seconds"], &MOMENTS[..], &QUANTILES].concat();
    recording.block(&columns, rows)
}

const QUANTILES: [&str; 3] = ["all_p50_ns", "all_p99_ns", "all_p999_ns"];
