//! What the latencies of cells consist of, as tables show it: cell by cell, a row for each leg and
//! run.

use punctual_core::legs::{CellLegs, LegTimes};
use punctual_core::units::grouped;

use crate::explanation::times::length;
use crate::subject::Subject;
use crate::words;

/// Heads of the columns of numbers.
pub(crate) const HEADS: [&str; 6] = ["max", "at", "p99", "p50", "min", "samples"];

/// A leg in one run.
pub(crate) struct LegRow {
    /// What the leg is called.
    pub leg: String,
    /// Number of the run, or of the kernel if kernels are shown.
    pub run: usize,
    /// In the order of [`HEADS`].
    pub numbers: [String; 6],
}

/// The cells of which legs are known, those of equal keys together.
pub(crate) fn cells<'a, 'b>(subjects: &'b [Subject<'a>]) -> Vec<Vec<&'b Subject<'a>>> {
    let known = |of: &&Subject<'_>| of.legs.is_some_and(|legs| legs.t2.is_some());
    let same_key = subjects.chunk_by(|a, b| a.cell.key == b.cell.key);
    let cells = same_key.map(|cell| cell.iter().filter(known).collect::<Vec<_>>());
    cells.filter(|cell| !cell.is_empty()).collect()
}

/// The legs of one cell in their order, each of every run, and then the whole.
pub(crate) fn rows(cell: &[&Subject<'_>]) -> Vec<LegRow> {
    let mut rows = Vec::new();
    for until in words::LEGS {
        let of = |legs: &CellLegs| legs.legs.iter().find(|leg| leg.until == until).copied();
        push(&mut rows, cell, words::leg_title(until), of);
    }
    push(&mut rows, cell, words::ALL_LEGS, |legs| legs.t2);
    rows
}

fn push(
    rows: &mut Vec<LegRow>,
    cell: &[&Subject<'_>],
    name: &str,
    of: impl Fn(&CellLegs) -> Option<LegTimes>,
) {
    for subject in cell {
        let Some(times) = subject.legs.and_then(&of) else { continue };
        let numbers = [
            length(times.max_ns),
            at(subject, times.worst).map_or_else(|| "-".to_owned(), words::instant),
            length(times.p99_ns),
            length(times.p50_ns),
            length(times.min_ns),
            grouped(times.count),
        ];
        rows.push(LegRow { leg: name.to_owned(), run: subject.at.0, numbers });
    }
}

/// When a sample was taken, by its number from 1, ns since the start of the cell; none if not all
/// samples are kept with their times.
fn at(subject: &Subject<'_>, sample: u64) -> Option<u64> {
    let samples = &subject.data.threads.first()?.primary().outliers;
    let is_whole = subject.legs.is_some_and(|legs| legs.samples.len() == samples.len());
    let samples = Some(samples).filter(|_| is_whole)?;
    samples.get(usize::try_from(sample.checked_sub(1)?).ok()?).map(|sample| sample.at)
}
