//! A whole run in memory: `run.json` and what its cells recorded.

use crate::block::{Block, Late, Moments, Outlier};
use crate::format::{Part, Reader, Record};
use crate::histogram::{Histogram, SignedHistogram};
use crate::schema::Run;

/// A run directory, read.
#[derive(Debug, Clone)]
pub struct LoadedRun {
    /// `run.json`.
    pub run: Run,
    /// The recordings of `run.cells`, in the same order.
    pub cells: Vec<CellData>,
    /// What was missing or damaged, one sentence each.
    pub damage: Vec<String>,
}

/// What one cell recorded.
#[derive(Debug, Clone, Default)]
pub struct CellData {
    /// By thread.
    pub threads: Vec<ThreadData>,
    /// `(second, part of the load, cumulative counters)`.
    pub work: Vec<(u64, u32, Vec<u64>)>,
    /// `(second, busy, steal)`, thousandths of all CPUs' time.
    pub system: Vec<(u64, u32, u32)>,
    /// Stretches of the cell's files that could not be read.
    pub damaged: u64,
}

/// What one thread recorded.
#[derive(Debug, Clone, Default)]
pub struct ThreadData {
    /// The samples of the first series; absent where the cell was cut short.
    pub histogram: Option<SignedHistogram>,
    /// What the releases missed behind late samples would have seen.
    pub behind: Option<Histogram>,
    /// Blocks, in ascending order of their indices.
    pub blocks: Vec<Block>,
    /// The worst samples.
    pub outliers: Vec<Outlier>,
    /// Samples that missed releases.
    pub late: Vec<Late>,
}

impl ThreadData {
    /// Exact moments over all blocks.
    #[must_use]
    pub fn moments(&self) -> Moments {
        let mut all = Moments::EMPTY;
        self.blocks.iter().for_each(|block| all.merge(&block.moments));
        all
    }
}

/// The most threads that a file may name: bounds what a damaged one allocates.
const MAX_THREADS: u32 = 1 << 16;

impl CellData {
    /// Adds the records of one of the cell's files.
    pub fn read(&mut self, bytes: &[u8]) {
        let mut reader = Reader::new(bytes);
        for record in reader.by_ref() {
            self.add(record);
        }
        self.damaged += reader.damaged;
    }

    fn thread(&mut self, number: u32) -> Option<&mut ThreadData> {
        if number >= MAX_THREADS {
            return None;
        }
        let number = number as usize;
        if self.threads.len() <= number {
            self.threads.resize_with(number + 1, ThreadData::default);
        }
        self.threads.get_mut(number)
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Block(block) => {
                if let Some(thread) = self.thread(block.thread) {
                    thread.blocks.push(block);
                }
            }
            Record::Late(late) => {
                if let Some(thread) = self.thread(late.thread) {
                    thread.late.push(late);
                }
            }
            Record::Work { second, part, totals } => self.work.push((second, part, totals)),
            Record::System { second, busy, steal } => self.system.push((second, busy, steal)),
            Record::Histogram { thread, series: 0, part, counts } => {
                let Some(thread) = self.thread(thread) else {
                    return;
                };
                match part {
                    Part::Positive => thread.histogram.get_or_insert_default().positive = counts,
                    Part::Negative => thread.histogram.get_or_insert_default().negative = counts,
                    Part::Behind => thread.behind = Some(counts),
                }
            }
            // Further series are read by the probes that bring them.
            Record::Histogram { .. } => {}
            Record::Outliers { thread, samples } => {
                if let Some(thread) = self.thread(thread) {
                    thread.outliers = samples;
                }
            }
        }
    }
}
