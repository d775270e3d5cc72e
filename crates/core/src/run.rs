//! A whole run in memory: `run.json` and what its cells recorded.

pub mod appended;
pub mod limits;

use std::collections::BTreeMap;

use crate::block::{Block, Late, Moments, Outlier, Spell, System};
use crate::format::{Part, Reader, Record};
use crate::histogram::{SignedSparse, Sparse};
use crate::interval::Interval;
use crate::legs::Legs;
use crate::schema::{Run, Stop};
use limits::{MAX_SERIES, MAX_THREADS};
/// A run directory that has been read.
#[derive(Debug, Clone)]
pub struct LoadedRun {
    /// `run.json`.
    pub run: Run,
    /// The recordings of `run.cells`, in the same order.
    pub cells: Vec<CellData>,
    /// What its samples consist of, if it was repeated and watched for that.
    pub legs: Option<Legs>,
    /// What was missing or damaged, one sentence each.
    pub damage: Vec<String>,
    /// What its reader calls it, if that tells it from the other runs: a path as it was given.
    pub label: Option<String>,
    /// The side of a comparison that it belongs to, if its reader has made sides.
    pub side: Option<crate::compare::ComparedSide>,
}

/// What one cell recorded.
#[derive(Debug, Clone, Default)]
pub struct CellData {
    /// By thread.
    pub threads: Vec<ThreadData>,
    /// `(second, part of the load, cumulative counters)`.
    pub work: Vec<(u64, u32, Vec<u64>)>,
    /// The machine, second by second.
    pub system: Vec<System>,
    /// Which actor had a CPU and when, as recorded.
    pub intervals: Vec<Interval>,
    /// `(phase, from, to)`: when the load of a phase was at work, ns after the cell's start.
    pub phases: Vec<(u32, u64, u64)>,
    /// When the process was stopped, by number of the stop.
    pub stops: BTreeMap<u32, Stop>,
    /// Names of the actors, by number.
    pub actors: BTreeMap<u32, String>,
    /// Unreadable stretches of the cell's files, and records of threads and series that no
    /// cell can have.
    pub damaged: u64,
}

/// What one thread recorded.
#[derive(Debug, Clone, Default)]
pub struct ThreadData {
    /// By number: first the primary series, then series n, which is `series[n - 1]` of the cell.
    pub series: Vec<SeriesData>,
    /// Spells of lateness of its primary series, in the order of time.
    pub spells: Vec<Spell>,
}

/// What one thread recorded of one series.
#[derive(Debug, Clone, Default)]
pub struct SeriesData {
    /// The samples; `None` if the cell was cut short.
    pub histogram: Option<SignedSparse>,
    /// What the releases missed by late samples would have seen.
    pub behind: Option<Sparse>,
    /// Blocks, in ascending order of their indices.
    pub blocks: Vec<Block>,
    /// The worst samples.
    pub outliers: Vec<Outlier>,
    /// Samples that missed releases.
    pub late: Vec<Late>,
}

impl SeriesData {
    /// No recording.
    pub const EMPTY: Self = Self {
        histogram: None,
        behind: None,
        blocks: Vec::new(),
        outliers: Vec::new(),
        late: Vec::new(),
    };

    /// Exact moments over all blocks.
    #[must_use]
    pub fn moments(&self) -> Moments {
        let mut all = Moments::EMPTY;
        self.blocks.iter().for_each(|block| all.merge(&block.moments));
        all
    }
}

static NOTHING: SeriesData = SeriesData::EMPTY;

impl ThreadData {
    /// A thread with only a primary series.
    #[must_use]
    pub fn of(primary: SeriesData) -> Self {
        Self { series: vec![primary], spells: Vec::new() }
    }

    /// Its recording of the primary series; empty if there is none.
    #[must_use]
    pub fn primary(&self) -> &SeriesData {
        self.series(0)
    }

    /// Its recording of a series, 0 for the primary one; empty if there is none.
    #[must_use]
    pub fn series(&self, number: usize) -> &SeriesData {
        self.series.get(number).unwrap_or(&NOTHING)
    }

    /// The same, mutable. A number beyond the recorded series adds empty ones up to it.
    pub fn series_mut(&mut self, number: usize) -> &mut SeriesData {
        if self.series.len() <= number {
            self.series.resize_with(number + 1, SeriesData::default);
        }
        &mut self.series[number]
    }
}

impl CellData {
    /// Adds the records of one of the cell's files.
    pub fn read(&mut self, bytes: &[u8]) {
        let mut reader = Reader::new(bytes);
        for record in reader.by_ref() {
            self.add(record);
        }
        self.damaged += reader.damaged;
    }

    /// The recording of a thread's series. Numbers that no cell has give `None` and count as
    /// damage.
    fn series(&mut self, thread: u32, series: u32) -> Option<&mut SeriesData> {
        if series >= MAX_SERIES {
            self.damaged += 1;
            return None;
        }
        Some(self.thread(thread)?.series_mut(series as usize))
    }

    /// The recording of a thread. A number that no cell has gives `None` and counts as damage.
    fn thread(&mut self, thread: u32) -> Option<&mut ThreadData> {
        if u64::from(thread) >= MAX_THREADS {
            self.damaged += 1;
            return None;
        }
        let thread = thread as usize;
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, ThreadData::default);
        }
        Some(&mut self.threads[thread])
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Block(block) => {
                if let Some(series) = self.series(block.thread, block.series) {
                    series.blocks.push(block);
                }
            }
            Record::Late(late) => {
                if let Some(series) = self.series(late.thread, late.series) {
                    series.late.push(late);
                }
            }
            Record::Work { second, part, totals } => self.work.push((second, part, totals)),
            Record::System(system) => self.system.push(system),
            Record::Histogram { thread, series, part, counts } => {
                let Some(series) = self.series(thread, series) else {
                    return;
                };
                match part {
                    Part::Positive => series.histogram.get_or_insert_default().positive = counts,
                    Part::Negative => series.histogram.get_or_insert_default().negative = counts,
                    Part::Behind => series.behind = Some(counts),
                }
            }
            Record::Outliers { thread, series, samples } => {
                if let Some(series) = self.series(thread, series) {
                    series.outliers = samples;
                }
            }
            Record::Phase { phase, from, to } => self.phases.push((phase, from, to)),
            Record::Stop { number, stop } => {
                self.stops.insert(number, stop);
            }
            Record::Interval(interval) => self.intervals.push(interval),
            Record::Actor(actor) => {
                self.actors.insert(actor.number, actor.name);
            }
            Record::Spell(spell) => {
                if let Some(thread) = self.thread(spell.thread) {
                    thread.spells.push(spell);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::encode;
    use crate::interval::Actor;

    fn block(thread: u32, series: u32) -> Record {
        let moments = Moments::EMPTY;
        Record::Block(Block { thread, series, index: 0, moments, coarse: Vec::new() })
    }

    fn read(records: &[Record]) -> CellData {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(record, &mut bytes));
        let mut data = CellData::default();
        data.read(&bytes);
        data
    }

    #[test]
    fn every_record_finds_its_thread_and_series() {
        let late = |series| Record::Late(Late { thread: 0, series, at: 1, latency: 2, missed: 3 });
        let counts =
            |series, part| Record::Histogram { thread: 0, series, part, counts: Sparse::default() };
        let samples = vec![Outlier { at: 4, latency: 5 }];
        let interval = Interval { cpu: 1, from: 10, to: 20, actor: 7 };
        let data = read(&[
            block(1, 2),
            late(1),
            counts(1, Part::Negative),
            counts(2, Part::Behind),
            Record::Outliers { thread: 0, series: 2, samples: samples.clone() },
            Record::Actor(Actor { number: 7, name: "ksoftirqd/1".to_owned() }),
            Record::Interval(interval),
        ]);
        assert_eq!((data.damaged, data.threads.len()), (0, 2));
        assert_eq!(data.threads[1].series(2).blocks.len(), 1);
        let [primary, leg, aside] = &data.threads[0].series[..] else { panic!("three series") };
        assert!(primary.late.is_empty() && primary.histogram.is_none());
        assert_eq!(
            (leg.late.len(), leg.histogram.is_some(), leg.behind.is_some()),
            (1, true, false)
        );
        assert_eq!((&aside.outliers, aside.behind.is_some()), (&samples, true));
        assert_eq!(
            (&data.intervals[..], data.actors[&7].as_str()),
            (&[interval][..], "ksoftirqd/1")
        );
        assert!(data.threads[0].series(9).blocks.is_empty());
    }

    #[test]
    fn a_later_record_of_a_stop_replaces_the_one_before() {
        let stop = |number, samples| Record::Stop {
            number,
            stop: Stop { samples, length_ns: Some(9), ..Stop::default() },
        };
        let data = read(&[stop(0, 1), stop(1, 7), stop(0, 2)]);
        let samples: Vec<_> = data.stops.values().map(|stop| stop.samples).collect();
        assert_eq!(samples, [2, 7]);
    }

    #[test]
    fn numbers_that_no_cell_has_are_damage() {
        let data = read(&[block(4_096, 0), block(0, MAX_SERIES), block(0, 0)]);
        assert_eq!((data.damaged, data.threads.len()), (2, 1));
    }
}
