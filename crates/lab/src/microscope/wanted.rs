//! Which samples of a run are explained.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use punctual_core::block::Outlier;
use punctual_core::explanation::{Chosen, Unexplained};
use punctual_core::run::{LoadedRun, ThreadData};
use punctual_core::schema::{Cell, CellState};

use super::sample::Recorded;

/// Probes whose samples can be explained: latencies of threads that a timer wakes.
const EXPLAINED: [&str; 3] = ["wakeup", "pulse", "timer-irq"];

/// Which samples of a cell are to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// The typical one, and the latest ones.
    Latest {
        /// How many, at most.
        most: usize,
        /// Only later ones, ns.
        above_ns: Option<u64>,
    },
    /// Those that read the clock at these times, ns since the start of the cell, or next after.
    At(Vec<u64>),
}

/// A sample to explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Index of its cell.
    pub cell: usize,
    /// How many recorders had begun, that of its thread included.
    pub(super) begin: u64,
    /// Its number among the primary samples of its thread, from 1.
    pub(super) ordinal: u64,
    /// How many of them had been taken when it was released.
    pub(super) known_from: u64,
    pub(super) recorded: Recorded,
}

impl Wanted {
    /// The sample, if it could not be explained, and why; as the first of its cell.
    #[must_use]
    pub fn unexplained(&self, why: &anyhow::Error) -> Unexplained {
        let Recorded { chosen, at_ns, latency_ns, .. } = self.recorded;
        Unexplained { chosen, after: 0, at_ns, latency_ns, why: format!("{why:#}") }
    }
}

/// The selected samples of each cell, or of one.
///
/// # Errors
/// No cell can be explained, and why.
pub fn wanted(run: &LoadedRun, cell: Option<&str>, selection: &Selection) -> Result<Vec<Wanted>> {
    let mut all = Vec::new();
    let mut begin = 0;
    let mut refused = Vec::new();
    for (number, of) in run.run.cells.iter().enumerate() {
        begin += begins(of);
        if cell.is_some_and(|key| key != of.key) {
            continue;
        }
        match of_cell(run, number, begin, selection) {
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

/// The thread of a cell of `wakeup`, all samples of which are known.
///
/// # Errors
/// It is no such cell, and why.
pub(super) fn kept(run: &LoadedRun, number: usize) -> Result<&ThreadData> {
    kept_of(run, number, &["wakeup"])
}

/// The thread of a cell of one of these probes, all samples of which are known.
fn kept_of<'r>(run: &'r LoadedRun, number: usize, probes: &[&str]) -> Result<&'r ThreadData> {
    let cell = &run.run.cells[number];
    let latency = cell.latency().filter(|latency| probes.contains(&latency.probe.as_str()));
    // The threads of another tracer are the kernel's.
    let latency = latency.filter(|of| of.params.get("tracer").is_none_or(|one| one == "events"));
    let latency = match latency {
        Some(latency) if cell.state == CellState::Complete => latency,
        Some(_) => bail!("it was not measured to its end"),
        None => bail!(
            "only the probes wakeup, pulse and timer-irq (with its own threads) can be explained"
        ),
    };
    ensure!(latency.threads.len() == 1, "it has several threads, and only one can be explained");
    let Some(thread) = run.cells.get(number).and_then(|data| data.threads.first()) else {
        bail!("its samples are missing");
    };
    let (samples, kept) = (latency.stats.samples, thread.primary().outliers.len());
    ensure!(samples == kept as u64, "not all of its samples are kept: {kept} of {samples}");
    Ok(thread)
}

fn of_cell(
    run: &LoadedRun,
    number: usize,
    begin: u64,
    selection: &Selection,
) -> Result<Vec<Wanted>> {
    let thread = kept_of(run, number, &EXPLAINED)?;
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
        known_from: taken_before(samples, place),
        recorded: Recorded {
            chosen,
            at_ns: samples[place].at,
            latency_ns: latency_ns(&samples[place]),
            missed: missed(&samples[place]),
        },
    };
    let places = match selection {
        Selection::Latest { most, above_ns } => latest(samples, *most, *above_ns),
        Selection::At(times) => at(samples, times),
    };
    Ok(places.into_iter().map(|(chosen, place)| wanted(chosen, place)).collect())
}

/// How many samples had read the clock before the one at this place was released.
fn taken_before(samples: &[Outlier], place: usize) -> u64 {
    let released = samples[place].at.saturating_sub(latency_ns(&samples[place]));
    samples[..place].partition_point(|sample| sample.at <= released) as u64
}

/// The places of the typical sample and of the `most` latest ones, the latest first.
fn latest(samples: &[Outlier], most: usize, above_ns: Option<u64>) -> Vec<(Chosen, usize)> {
    let mut by_latency: Vec<usize> = (0..samples.len()).collect();
    by_latency.sort_by_key(|place| samples[*place].latency);
    let typical = by_latency.get(samples.len().saturating_sub(1) / 2).copied();
    let limit = above_ns.map(|ns| i64::try_from(ns).unwrap_or(i64::MAX));
    let is_above = |place: &&usize| limit.is_none_or(|limit| samples[**place].latency > limit);
    // The first of equal ones, as the table of all legs has it.
    by_latency.sort_by_key(|place| (Reverse(samples[*place].latency), *place));
    let latest = by_latency.iter().filter(is_above).take(most);
    let typical = typical.map(|place| (Chosen::Typical, place)).into_iter();
    typical.chain(latest.map(|place| (Chosen::Worst, *place))).collect()
}

/// The places of the samples taken at these times or next after, in their order, each once.
fn at(samples: &[Outlier], times: &[u64]) -> Vec<(Chosen, usize)> {
    let place = |at: &u64| samples.partition_point(|sample| sample.at < *at);
    let places: BTreeSet<usize> = times.iter().map(place).collect();
    let there = places.into_iter().filter(|place| *place < samples.len());
    there.map(|place| (Chosen::At, place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Outlier> {
        let all = [(1_000, 7), (2_000, 9), (3_000, 5), (4_000, 8)];
        all.map(|(at, latency)| Outlier { at, latency }).into()
    }

    #[test]
    fn the_median_and_the_latest_come_with_the_latest_first() {
        let (samples, worst) = (samples(), Chosen::Worst);
        assert_eq!(latest(&samples, 2, None), [(Chosen::Typical, 0), (worst, 1), (worst, 3)]);
        assert_eq!(latest(&samples, 9, Some(8)), [(Chosen::Typical, 0), (worst, 1)]);
        assert_eq!(latest(&[], 3, None), []);
        let equal = [5, 9, 9, 9].map(|latency| Outlier { at: 0, latency });
        assert_eq!(latest(&equal, 2, None)[1..], [(worst, 1), (worst, 2)]);
    }

    #[test]
    fn the_course_of_a_sample_begins_after_those_before_its_release() {
        let all = [(1_000, 7), (2_000, 9), (5_000, 2_500), (5_100, 1_600), (6_000, 3)];
        let samples = all.map(|(at, latency)| Outlier { at, latency });
        assert_eq!([0, 1, 2, 3, 4].map(|place| taken_before(&samples, place)), [0, 1, 2, 2, 4]);
    }

    #[test]
    fn a_time_stands_for_the_sample_taken_then_or_next_after() {
        let at = |times: &[u64]| super::at(&samples(), times);
        assert_eq!(at(&[3_000, 1_500, 1_001, 2_000]), [(Chosen::At, 1), (Chosen::At, 2)]);
        assert_eq!(at(&[0, 4_000, 4_001]), [(Chosen::At, 0), (Chosen::At, 3)]);
        assert_eq!(at(&[4_001]), []);
    }
}
