//! How much a run can have. A reader holds foreign run directories to these limits, so that what
//! it takes to read one is in proportion to its size.

use super::CellData;
use crate::block::Late;
use crate::histogram::bin_of;
use crate::phases::MAX_PHASES;
use crate::plan::MAX_CELLS;
use crate::schema::{Cell, Run};
use crate::units::grouped;

/// The most threads of a probe.
pub const MAX_THREADS: u64 = 4_096;

/// The most series per thread; probes have fewer than five.
pub const MAX_SERIES: u32 = 16;

/// The most series, over all threads of all cells, that records may name in addition to the
/// threads of `run.json`, which come there when a cell has ended: those of a cell of 4,096
/// threads with four series that was cut short.
const MAX_UNLISTED: usize = 1 << 14;

/// The most bins that the missed releases of cells without a histogram of them may be expanded
/// into, beyond [`FREE_STEPS`] for each late sample: 3,000 stalls of 1 s at 10 kHz, and 64 MiB of
/// memory if each is of a thread of its own.
const MAX_STEPS: u64 = 1 << 22;

/// As many bins per late sample as are not counted.
const FREE_STEPS: u64 = 16;

/// The largest `run.json` that is read, bytes.
pub const MAX_RUN_JSON: u64 = 64 << 20;

/// The most values in a `run.json`: ten cells of 4,096 threads have as many.
const MAX_VALUES: usize = 2_000_000;

/// The largest file of a cell that is read, bytes: eight threads write as much in eleven days
/// at 1 kHz on an idle machine, and in 27 hours at 10 kHz under hackbench. A run that may write
/// more says so beforehand.
pub const MAX_CELL_FILE: u64 = 1 << 30;

/// Whether a `run.json` has more values than any run: what is parsed takes up to 32 bytes for
/// each of them, however short they are.
#[must_use]
pub fn has_too_many_values(json: &[u8]) -> bool {
    json.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() > MAX_VALUES
}

/// What a run has more of than a run can have; `None` if nothing.
#[must_use]
pub fn exceeded(run: &Run) -> Option<String> {
    let above = |what: &str, count: usize, most: usize| {
        let (shown, bound) = (grouped(count as u64), grouped(most as u64));
        (count > most).then(|| format!("it has {shown} {what}; at most {bound} are possible"))
    };
    let threads = usize::try_from(MAX_THREADS).unwrap_or(usize::MAX);
    above("cells", run.cells.len().max(run.plan.cells.len()), MAX_CELLS)
        .or_else(|| {
            run.cells.iter().find_map(|cell| above("threads", cell.threads().len(), threads))
        })
        .or_else(|| {
            let most = MAX_SERIES as usize;
            run.cells.iter().find_map(|cell| above("series", series_of(cell), most))
        })
        .or_else(|| {
            let phases = |cell: &Cell| above("phases of a load", cell.phases.len(), MAX_PHASES);
            run.cells.iter().find_map(phases)
        })
}

/// The number of series of a cell's threads.
fn series_of(cell: &Cell) -> usize {
    1 + cell.latency().map_or(0, |latency| latency.series.len())
}

/// What the records of a run may still name and cost.
#[derive(Debug, Clone)]
pub struct Budget {
    unlisted: usize,
    steps: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { unlisted: MAX_UNLISTED, steps: MAX_STEPS }
    }
}

impl Budget {
    /// Takes what a cell recorded off the budget. What exceeds it is removed from `data`; the
    /// result then says so, in words that follow the cell's folder.
    #[must_use]
    pub fn admit(&mut self, cell: &Cell, data: &mut CellData) -> Option<String> {
        let unlisted = data.threads.len().saturating_sub(cell.threads().len());
        let Some(left) = self.unlisted.checked_sub(unlisted * series_of(cell)) else {
            *data = CellData::default();
            return Some(format!(
                "its records are left out: they name more threads than a run can have ({} series \
                 that run.json does not list)",
                grouped(MAX_UNLISTED as u64)
            ));
        };
        self.unlisted = left;
        let unexpanded = data.threads.iter().map(super::ThreadData::primary);
        let late = unexpanded.filter(|series| series.behind.is_none()).flat_map(|s| &s.late);
        let steps = late.fold(0_u64, |sum, late| sum.saturating_add(steps_of(late)));
        let Some(left) = self.steps.checked_sub(steps) else {
            data.threads.iter_mut().for_each(|thread| thread.series_mut(0).late.clear());
            return Some(
                "its late samples are left out: more releases were missed than can be counted \
                 one by one"
                    .to_owned(),
            );
        };
        self.steps = left;
        None
    }
}

/// The bins that a late sample is expanded into, beyond those that are free.
fn steps_of(late: &Late) -> u64 {
    late.missed.min(bin_of(late.latency) as u64 + 1).saturating_sub(FREE_STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{SeriesData, ThreadData};
    use crate::schema::{Latency, Thread, What};

    fn cell() -> Cell {
        let what = What::Latency(Latency::default());
        Cell::new("k".to_owned(), "00-k".to_owned(), "none".to_owned(), 1, what)
    }

    #[test]
    fn cells_share_what_their_threads_may_have() {
        let (mut budget, cell) = (Budget::default(), cell());
        let threads =
            || CellData { threads: vec![ThreadData::default(); 4_096], ..CellData::default() };
        let admitted = (0..100).take_while(|_| budget.admit(&cell, &mut threads()).is_none());
        assert_eq!(admitted.count(), 4);
        let mut data = threads();
        let said = budget.admit(&cell, &mut data).unwrap();
        assert!(said.contains("16,384 series") && data.threads.is_empty(), "{said}");
        // Those that run.json lists are in proportion to it.
        let mut listed = cell;
        listed.latency_mut().unwrap().threads = vec![Thread::default(); 4_096];
        assert_eq!(budget.admit(&listed, &mut threads()), None);
    }

    #[test]
    fn missed_releases_that_cost_much_are_left_out() {
        let late = |missed| Late { thread: 0, series: 0, at: 0, latency: u64::MAX, missed };
        let of = |missed, count| {
            let series = SeriesData { late: vec![late(missed); count], ..SeriesData::EMPTY };
            CellData { threads: vec![ThreadData::of(series)], ..CellData::default() }
        };
        let mut cheap = of(16, 100_000);
        assert_eq!(Budget::default().admit(&cell(), &mut cheap), None);
        let mut dear = of(1 << 48, 10_000);
        let said = Budget::default().admit(&cell(), &mut dear).unwrap();
        assert!(said.contains("late samples") && dear.threads[0].primary().late.is_empty());
        // If the histogram of the missed releases is there, they are not needed.
        let mut ended = of(1 << 48, 10_000);
        ended.threads[0].series_mut(0).behind = Some(crate::histogram::Sparse::default());
        assert_eq!(Budget::default().admit(&cell(), &mut ended), None);
    }

    #[test]
    fn values_are_counted_before_they_are_parsed() {
        assert!(!has_too_many_values(b"{\"a\":[1,2,3]}"));
        assert!(has_too_many_values(format!("[0{}]", ",0".repeat(MAX_VALUES)).as_bytes()));
    }
}
