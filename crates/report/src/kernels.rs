//! Runs by kernel: the samples of its replicates together, and the worst of them.

use punctual_core::block::Moments;
use punctual_core::compare::{Comparison, MatchedCell, compare};
use punctual_core::histogram::{Histogram, SignedHistogram};
use punctual_core::run::{CellData, LoadedRun, ThreadData};
use punctual_core::schema::Cell;
use punctual_core::stats::{Recorded, behind_from_late, summarise};

use crate::figure::Subject;
use crate::{data, words};

/// Runs of which a report shows kernels, not each for itself.
pub(crate) struct Kernels<'a> {
    pub runs: &'a [LoadedRun],
    pub comparison: Comparison,
    /// By kernel.
    pub names: Vec<String>,
    pooled: Vec<Pooled>,
}

/// What all runs of one kernel recorded in one cell.
struct Pooled {
    group: usize,
    /// Index of the matched cell.
    at: usize,
    runs: usize,
    cell: Cell,
    data: CellData,
}

impl<'a> Kernels<'a> {
    /// None where every run is to be shown for itself.
    pub fn of(runs: &'a [LoadedRun]) -> Option<Self> {
        if runs.len() < 3 {
            return None;
        }
        let comparison = compare(runs);
        if !comparison.is_replicated() {
            return None;
        }
        let names = words::kernel_names(&comparison.groups);
        let mut pooled = Vec::new();
        for (at, matched) in comparison.cells.iter().enumerate() {
            for (group, side) in comparison.groups.iter().enumerate() {
                let cells: Vec<_> = recorded(runs, matched, &side.runs).collect();
                pooled.extend(pool(&cells).map(|(cell, data)| Pooled {
                    group,
                    at,
                    runs: cells.len(),
                    cell,
                    data,
                }));
            }
        }
        Some(Self { runs, comparison, names, pooled })
    }

    /// The first run of a kernel.
    pub fn first(&self, group: usize) -> Option<&'a LoadedRun> {
        self.runs.get(*self.comparison.groups.get(group)?.runs.first()?)
    }

    /// Whether a run has latencies of the cell.
    pub fn has_samples(&self, matched: &MatchedCell) -> bool {
        matched.rows.iter().any(|row| recorded(self.runs, matched, &[row.run]).next().is_some())
    }

    fn label(&self, group: usize, cell: &Cell) -> String {
        format!("{}: {}", self.name(group), words::cell_name(cell))
    }

    /// What a kernel is called.
    pub fn name(&self, group: usize) -> &str {
        self.names.get(group).map_or("", String::as_str)
    }

    /// For every cell and kernel the samples of all of its runs as one.
    pub fn pooled(&self) -> Vec<Subject<'_>> {
        let measured = self.pooled.iter().filter(|pooled| pooled.cell.stats.samples > 0);
        let subjects = measured.filter_map(|pooled| {
            Some(Subject {
                run: &self.first(pooled.group)?.run,
                cell: &pooled.cell,
                data: &pooled.data,
                at: (pooled.group, pooled.at),
                label: self.label(pooled.group, &pooled.cell),
                note: Some(format!("{} pooled", words::runs(pooled.runs))),
            })
        });
        subjects.collect()
    }

    /// For every cell and kernel the run that has the largest sample.
    pub fn worst(&self) -> Vec<Subject<'a>> {
        let mut subjects = Vec::new();
        for (at, matched) in self.comparison.cells.iter().enumerate() {
            for spread in &matched.spreads {
                let Some(worst) = spread.worst else { continue };
                let Some((cell, data)) = recorded(self.runs, matched, &[worst]).next() else {
                    continue;
                };
                let run = &self.runs[worst].run;
                subjects.push(Subject {
                    run,
                    cell,
                    data,
                    at: (spread.group, at),
                    label: self.label(spread.group, cell),
                    note: Some(format!(
                        "{} (worst of {})",
                        words::clean(&run.run_id),
                        words::runs(spread.runs)
                    )),
                });
            }
        }
        subjects
    }
}

/// The cells of these runs, with their recordings; latency cells with samples only.
fn recorded<'a>(
    runs: &'a [LoadedRun],
    matched: &MatchedCell,
    members: &[usize],
) -> impl Iterator<Item = (&'a Cell, &'a CellData)> {
    let rows = matched.rows.iter().filter(|row| members.contains(&row.run));
    rows.filter_map(|row| data::cells(runs.get(row.run)?).nth(row.cell))
        .filter(|(cell, _)| cell.kind != "cost" && cell.stats.samples > 0)
}

/// One cell that holds the samples of all. Its statistics are those of the samples
/// together; what else a cell says, as its threads, is that of the first.
fn pool(cells: &[(&Cell, &CellData)]) -> Option<(Cell, CellData)> {
    let (first, _) = cells.first()?;
    let threads = || {
        cells.iter().flat_map(|(cell, data)| data.threads.iter().map(move |thread| (cell, thread)))
    };
    let mut moments = Moments::EMPTY;
    let mut behind = Histogram::new();
    for (cell, thread) in threads() {
        moments.merge(&thread.moments());
        match &thread.behind {
            Some(part) => behind.merge(part),
            None => {
                behind.merge(&behind_from_late(&thread.late, cell.interval_ns.unwrap_or(u64::MAX)));
            }
        }
    }
    let mut all = ThreadData { behind: Some(behind), ..ThreadData::default() };
    if threads().all(|(_, thread)| thread.histogram.is_some()) {
        let mut merged = SignedHistogram::new();
        threads().filter_map(|(_, t)| t.histogram.as_ref()).for_each(|h| merged.merge(h));
        all.histogram = Some(merged);
    } else {
        // A run that was cut short has its blocks alone: so have all of them.
        all.blocks = threads().flat_map(|(_, thread)| thread.blocks.iter().cloned()).collect();
    }
    let mut stats = summarise(&[Recorded::of(&all, &moments)]);
    // Where a file was damaged, run.json knows more than what is left of it.
    stats.max_ns = cells.iter().filter_map(|(cell, _)| cell.stats.max_ns).max();
    stats.min_ns = cells.iter().filter_map(|(cell, _)| cell.stats.min_ns).min();
    let cell = Cell { stats, ..(*first).clone() };
    Some((cell, CellData { threads: vec![all], ..CellData::default() }))
}
