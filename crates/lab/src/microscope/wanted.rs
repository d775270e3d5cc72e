//! Which samples of a run are explained.

use anyhow::{Context, Result, bail, ensure};
use punctual_core::block::Outlier;
use punctual_core::explanation::Chosen;
use punctual_core::run::{LoadedRun, ThreadData};
use punctual_core::schema::{Cell, CellState};

use super::sample::Recorded;

/// A sample to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Index of its cell.
    pub cell: usize,
    /// How many recorders had begun, that of its thread included.
    pub(super) begin: u64,
    /// Its number among the samples of its thread, from 1.
    pub(super) ordinal: u64,
    pub(super) recorded: Recorded,
}

/// The typical sample and the `worst` latest ones of each cell, or of one, or all above a limit, ns.
///
/// # Errors
/// No cell can be explained, and why.
pub fn wanted(
    run: &LoadedRun,
    cell: Option<&str>,
    worst: usize,
    above_ns: Option<u64>,
) -> Result<Vec<Wanted>> {
    let mut all = Vec::new();
    let mut begin = 0;
    let mut refused = Vec::new();
    for (number, of) in run.run.cells.iter().enumerate() {
        begin += begins(of);
        if cell.is_some_and(|key| key != of.key) {
            continue;
        }
        match of_cell(run, number, begin, worst, above_ns) {
            Ok(found) => all.extend(found),
            Err(error) => refused.push(format!("{}: {error}", of.key)),
        }
    }
    if let (Some(key), true, true) = (cell, all.is_empty(), refused.is_empty()) {
        let keys: Vec<&str> = run.run.cells.iter().map(|cell| cell.key.as_str()).collect();
        bail!("--cell {key}: the run has no such cell; it has {}", keys.join("; "));
    }
    ensure!(!all.is_empty() || refused.is_empty(), "{}", refused.join("; "));
    Ok(all)
}

/// How many recorders begin in a cell.
fn begins(cell: &Cell) -> u64 {
    cell.latency()
        .map_or(0, |latency| latency.threads.len() as u64 * (1 + latency.series.len() as u64))
}

/// The times at which the samples of a cell read the clock, ns since its start.
///
/// # Errors
/// They are not known, and why.
pub(super) fn read_ns(run: &LoadedRun, cell: usize) -> Result<Vec<u64>> {
    Ok(kept(run, cell)?.primary().outliers.iter().map(|sample| sample.at).collect())
}

/// The samples of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CellSamples {
    /// How many recorders had begun, that of its thread included.
    pub(super) begin: u64,
    /// The latency of each, ns, in the order of time.
    pub(super) latencies_ns: Vec<u64>,
}

/// All samples of each cell of a run.
///
/// # Errors
/// Those of a cell are not all known, and why.
pub(super) fn all(run: &LoadedRun) -> Result<Vec<CellSamples>> {
    let mut begin = 0;
    let of_cell = |(number, cell): (usize, &Cell)| {
        begin += begins(cell);
        let samples = &kept(run, number).with_context(|| cell.key.clone())?.primary().outliers;
        let latencies_ns = samples.iter().map(latency_ns).collect();
        Ok(CellSamples { begin, latencies_ns })
    };
    run.run.cells.iter().enumerate().map(of_cell).collect()
}

fn latency_ns(sample: &Outlier) -> u64 {
    sample.latency.max(0).unsigned_abs()
}

/// The thread of a cell, all samples of which are known.
pub(super) fn kept(run: &LoadedRun, number: usize) -> Result<&ThreadData> {
    let cell = &run.run.cells[number];
    let latency = cell.latency().filter(|latency| latency.probe == "wakeup");
    let latency = match latency {
        Some(latency) if cell.state == CellState::Complete => latency,
        Some(_) => bail!("it was not measured to its end"),
        None => bail!("only the probe wakeup can be explained"),
    };
    ensure!(latency.threads.len() == 1, "it has several threads, and only one can be explained");
    let Some(thread) = run.cells.get(number).and_then(|data| data.threads.first()) else {
        bail!("its samples are missing");
    };
    let kept = thread.primary().outliers.len();
    ensure!(
        latency.stats.samples == kept as u64,
        "not all of its samples are kept: {kept} of {}",
        latency.stats.samples
    );
    Ok(thread)
}

fn of_cell(
    run: &LoadedRun,
    number: usize,
    begin: u64,
    worst: usize,
    above_ns: Option<u64>,
) -> Result<Vec<Wanted>> {
    let thread = kept(run, number)?;
    let samples = &thread.primary().outliers;
    // If releases are dithered, those that a sample missed are put down one by one.
    let missed = |sample: &Outlier| {
        let late = thread.primary().late.iter().filter(|late| late.at == sample.at);
        late.fold(0_u64, |all, late| all.saturating_add(late.missed))
    };
    let wanted = |chosen: Chosen, place: usize| Wanted {
        cell: number,
        begin,
        ordinal: place as u64 + 1,
        recorded: Recorded {
            chosen,
            at_ns: samples[place].at,
            latency_ns: latency_ns(&samples[place]),
            missed: missed(&samples[place]),
        },
    };
    let mut by_latency: Vec<usize> = (0..samples.len()).collect();
    by_latency.sort_by_key(|place| samples[*place].latency);
    let typical = by_latency.get(samples.len().saturating_sub(1) / 2).copied();
    let limit = above_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
    let is_above = |place: &&usize| limit.is_none_or(|limit| samples[**place].latency > limit);
    let latest = by_latency.iter().rev().filter(is_above).take(worst);
    Ok(typical
        .map(|place| wanted(Chosen::Typical, place))
        .into_iter()
        .chain(latest.map(|place| wanted(Chosen::Worst, *place)))
        .collect())
}
