//! What was found in the phases of a load that changes on a schedule.

use super::behind::Limits;
use super::by_blocks::missed_by_late;
use super::summary::{Recorded, summarise};
use crate::block::Block;
use crate::run::{CellData, SeriesData, ThreadData};
use crate::schema::{AtWork, Cell, LoadPhase, PhaseFound, PhaseSeconds};
use crate::units::SECOND_NS;

/// What all threads recorded in the seconds of one phase, or in those of the changes.
#[derive(Debug, Clone, Default)]
pub struct InPhase<'a> {
    /// What each thread recorded of the primary series.
    pub recorded: Vec<Recorded<'a>>,
    /// Activations later than the deadline; `None` without one, or if that is not known.
    pub late: Option<u64>,
}

impl InPhase<'_> {
    fn found(&self, seconds: u64) -> PhaseFound {
        let worst = self.recorded.iter().map(|one| one.moments).filter(|one| one.count > 0);
        let worst = worst.reduce(|a, b| if b.max > a.max { b } else { a });
        PhaseFound {
            seconds,
            stats: summarise(&self.recorded),
            max_at_ns: worst.map(|moments| moments.max_at),
            late: self.late,
        }
    }
}

/// Fills in what was found in the phases of a cell that measured until `until_ns`: `found` has an
/// element for each phase, and the last one for the changes between them.
pub fn tell_phases(cell: &mut Cell, found: &[InPhase<'_>], until_ns: u64) {
    let mut left = until_ns.div_ceil(SECOND_NS);
    for (phase, found) in cell.phases.iter_mut().zip(found) {
        let seconds = phase.seconds();
        left = left.saturating_sub(seconds);
        phase.found = found.found(seconds);
    }
    let changes = found.get(cell.phases.len());
    cell.changes = changes.filter(|_| !cell.phases.is_empty()).map(|found| found.found(left));
}

/// Tells the phases of a cell that was cut short, whose duration is what was measured, by its
/// blocks and late samples, with quantiles to the width of coarse bins.
pub fn phases_by_blocks(cell: &mut Cell, data: &CellData, limits: &Limits) {
    if cell.phases.is_empty() {
        return;
    }
    for (number, phase) in (0..).zip(&mut cell.phases) {
        let own = data.phases.iter().filter(|(phase, ..)| *phase == number);
        phase.at_work = own
            .map(|(_, from, to)| AtWork { from_ns: *from, to_ns: (*to).min(cell.duration_ns) })
            .filter(|one| one.from_ns < one.to_ns)
            .collect();
    }
    let mut split = by_phase(&cell.phases, data);
    let known: Vec<Option<u64>> = split
        .iter_mut()
        .map(|threads| {
            let later = threads.iter_mut().map(|one| missed_by_late(one, limits));
            later.sum::<Option<u64>>().filter(|_| limits.deadline != i64::MAX)
        })
        .collect();
    let found = split.iter().zip(known).map(|(threads, later)| InPhase {
        recorded: threads.iter().map(Recorded::of).collect(),
        late: later.map(|later| {
            threads.iter().map(|one| one.moments().exceeded).fold(later, u64::saturating_add)
        }),
    });
    let found: Vec<_> = found.collect();
    tell_phases(cell, &found, cell.duration_ns);
}

/// Counts the late activations of each phase again, for another deadline, as the recorded blocks
/// and late samples tell them: a coarse bin that contains the deadline counts as a whole.
pub fn late_again(cell: &mut Cell, data: &CellData, deadline_ns: Option<u64>) {
    if cell.phases.is_empty() {
        return;
    }
    let interval = cell.interval_ns().unwrap_or(0);
    let limits = Limits { interval, ..Limits::of_deadline(deadline_ns) };
    let late = |threads: &[SeriesData], found: &PhaseFound| {
        let held =
            |one: &SeriesData| one.blocks.iter().map(|block| block.moments.count).sum::<u64>();
        if deadline_ns.is_none() || threads.iter().map(held).sum::<u64>() != found.stats.samples {
            return None;
        }
        let of = |one: &SeriesData| {
            let above = one.blocks.iter().map(|block: &Block| block.above(limits.deadline));
            let missed = one.late.iter().map(|late| limits.exceeded(late.latency, late.missed));
            above.chain(missed).fold(0, u64::saturating_add)
        };
        Some(threads.iter().map(of).fold(0, u64::saturating_add))
    };
    let split = by_phase(&cell.phases, data);
    let changes = cell.changes.iter_mut();
    let found = cell.phases.iter_mut().map(|phase| &mut phase.found).chain(changes);
    for (found, threads) in found.zip(&split) {
        found.late = late(threads, found);
    }
}

/// The blocks and late samples of each thread by phase; the last ones are those of the changes.
fn by_phase(phases: &[LoadPhase], data: &CellData) -> Vec<Vec<SeriesData>> {
    let seconds = PhaseSeconds::of(phases);
    let place = |second| seconds.phase_of(second).unwrap_or(phases.len());
    let mut split = vec![vec![SeriesData::EMPTY; data.threads.len()]; phases.len() + 1];
    for (number, series) in data.threads.iter().map(ThreadData::primary).enumerate() {
        for block in &series.blocks {
            split[place(block.index)][number].blocks.push(block.clone());
        }
        for late in &series.late {
            split[place(late.at / SECOND_NS)][number].late.push(*late);
        }
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Late, Moments, coarse_bin};
    use crate::schema::{Latency, What};

    /// One thread with a sample of `value` ns in every second.
    fn data(values: &[i64]) -> CellData {
        let block = |(index, value): (u64, &i64)| Block {
            thread: 0,
            series: 0,
            index,
            moments: Moments {
                count: 1,
                missed: u64::from(*value > 1_000_000),
                exceeded: u64::from(*value > 50_000),
                min: *value,
                max: *value,
                max_at: index * SECOND_NS + 7,
                sum: i128::from(*value),
                ..Moments::EMPTY
            },
            coarse: vec![(coarse_bin(*value), 1)],
        };
        let blocks: Vec<_> = (0..).zip(values).map(block).collect();
        let missing = blocks.iter().filter(|block| block.moments.missed > 0);
        let late = missing.map(|block| Late {
            thread: 0,
            series: 0,
            at: block.moments.max_at,
            latency: block.moments.max.unsigned_abs(),
            missed: 1,
        });
        let late = late.collect();
        let thread = ThreadData::of(SeriesData { blocks, late, ..SeriesData::EMPTY });
        CellData { threads: vec![thread], ..CellData::default() }
    }

    fn cell(seconds: u64) -> Cell {
        let latency = Latency { interval_ns: Some(1_000_000), ..Latency::default() };
        let duration = seconds * SECOND_NS;
        let mut cell =
            Cell::new("k".into(), "00-k".into(), "x".into(), duration, What::Latency(latency));
        cell.phases = ["none", "copy"]
            .map(|load| LoadPhase {
                load: load.into(),
                for_ns: 3 * SECOND_NS,
                ..LoadPhase::default()
            })
            .into();
        cell
    }

    #[test]
    fn a_cell_that_was_cut_short_has_what_its_blocks_tell_of_each_phase() {
        let mut data = data(&[1_000, 2_000, 3_000, 90_000, 40_000, 1_500_000]);
        data.phases = vec![(0, 0, 3 * SECOND_NS), (1, 3 * SECOND_NS + 5, 9 * SECOND_NS), (9, 0, 1)];
        let mut cell = cell(6);
        let limits = Limits { interval: 1_000_000, ..Limits::of_deadline(Some(50_000)) };
        phases_by_blocks(&mut cell, &data, &limits);
        let [idle, copy] = &cell.phases[..] else { panic!("two phases") };
        assert_eq!(copy.at_work, [AtWork { from_ns: 3 * SECOND_NS + 5, to_ns: 6 * SECOND_NS }]);
        let told = |found: &PhaseFound| {
            let stats = &found.stats;
            (found.seconds, stats.samples, stats.missed, stats.max, found.max_at_ns, found.late)
        };
        assert_eq!(told(&idle.found), (3, 3, 0, Some(3_000), Some(2 * SECOND_NS + 7), Some(0)));
        let at = 5 * SECOND_NS + 7;
        assert_eq!(told(&copy.found), (2, 2, 1, Some(1_500_000), Some(at), Some(2)));
        let at = 3 * SECOND_NS + 7;
        let changes = cell.changes.as_ref().unwrap();
        assert_eq!(told(changes), (1, 1, 0, Some(90_000), Some(at), Some(1)));

        late_again(&mut cell, &data, Some(1_000));
        let late: Vec<_> = cell.phases.iter().map(|phase| phase.found.late).collect();
        assert_eq!((late, cell.changes.as_ref().unwrap().late), (vec![Some(2), Some(3)], Some(1)));
        late_again(&mut cell, &CellData::default(), Some(2_000));
        assert_eq!(cell.phases[0].found.late, None, "its blocks are lost");
        late_again(&mut cell, &data, None);
        assert_eq!(cell.changes.unwrap().late, None);
    }
}
