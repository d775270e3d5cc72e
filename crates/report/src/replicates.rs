//! Runs by kernel: the samples of its replicates together, and the worst of them.

use std::borrow::Cow;

use punctual_core::compare::{Comparison, MatchedCell};
use punctual_core::histogram::{Histogram, SignedHistogram, Sparse};
use punctual_core::run::{CellData, LoadedRun, SeriesData, ThreadData};
use punctual_core::schema::{Cell, Thread};
use punctual_core::stats::{Measured, Recorded, assemble, behind_of};

use crate::subject::Subject;
use crate::{data, words};

/// Runs of which a report shows kernels, not each for itself.
pub(crate) struct Kernels<'a> {
    pub runs: &'a [LoadedRun],
    pub comparison: &'a Comparison,
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
    /// None if every run is to be shown individually.
    pub fn of(runs: &'a [LoadedRun], comparison: &'a Comparison) -> Option<Self> {
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
        let measured = self.pooled.iter().filter(|pooled| pooled.cell.samples() > 0);
        let subjects = measured.filter_map(|pooled| {
            Some(Subject {
                run: &self.first(pooled.group)?.run,
                cell: &pooled.cell,
                latency: pooled.cell.latency()?,
                data: &pooled.data,
                legs: None,
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
                let Some(latency) = cell.latency() else { continue };
                subjects.push(Subject {
                    run,
                    cell,
                    latency,
                    data,
                    legs: data::legs(&self.runs[worst], cell),
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
        .filter(|(cell, _)| cell.samples() > 0)
}

/// One cell with the samples of all. Its statistics are those of the pooled samples;
/// together, and its threads are those of all; what else a cell says is that of the first.
fn pool(cells: &[(&Cell, &CellData)]) -> Option<(Cell, CellData)> {
    let (first, _) = cells.first()?;
    let mut cell = (*first).clone();
    let latency = cell.latency_mut()?;
    let recordings: Vec<Recording<'_>> = cells.iter().flat_map(recordings).collect();
    assemble(latency, recordings.iter().map(Recording::measured).collect());
    // Where a file was damaged, run.json knows more than what is left of it.
    latency.stats.max = cells.iter().filter_map(|(cell, _)| cell.max_ns()).max();
    latency.stats.min = cells.iter().filter_map(|(cell, _)| cell.latency()?.stats.min).min();
    let threads = vec![ThreadData::of(merged(&recordings))];
    Some((cell, CellData { threads, ..CellData::default() }))
}

/// What one thread of one run left.
struct Recording<'a> {
    /// As `run.json` has it.
    thread: Thread,
    data: &'a ThreadData,
    behind: Option<Cow<'a, Sparse>>,
}

fn recordings<'a>(
    (cell, data): &(&'a Cell, &'a CellData),
) -> impl Iterator<Item = Recording<'a>> + use<'a> {
    let (threads, interval_ns) = (cell.threads(), cell.interval_ns());
    data.threads.iter().enumerate().map(move |(number, data)| Recording {
        thread: threads.get(number).cloned().unwrap_or_default(),
        data,
        behind: behind_of(data.primary(), interval_ns),
    })
}

impl Recording<'_> {
    fn measured(&self) -> Measured<'_> {
        let mut series: Vec<_> = self.data.series.iter().map(Recorded::of).collect();
        if let Some(primary) = series.first_mut() {
            primary.behind = self.behind.as_deref();
        }
        Measured {
            thread: self.thread.clone(),
            series,
            exceedances: self.thread.verdict.exceedances,
        }
    }
}

/// The primary series of all, as one.
fn merged(recordings: &[Recording<'_>]) -> SeriesData {
    let primaries = || recordings.iter().map(|recording| recording.data.primary());
    let mut behind = Histogram::new();
    recordings.iter().filter_map(|one| one.behind.as_ref()).for_each(|part| behind.merge(part));
    let mut all = SeriesData { behind: Some(behind.sparse()), ..SeriesData::default() };
    if primaries().all(|series| series.histogram.is_some()) {
        let mut histogram = SignedHistogram::new();
        primaries().filter_map(|s| s.histogram.as_ref()).for_each(|one| histogram.merge(one));
        all.histogram = Some(histogram.sparse());
    } else {
        // A run that was cut short has only its blocks: so only blocks are pooled.
        all.blocks = primaries().flat_map(|series| series.blocks.iter().cloned()).collect();
    }
    all
}
