//! The collector: drains the probes' rings every second, to disk and to the
//! account of missed releases. Runs in the main thread, not real-time.

use std::sync::Arc;

use punctual_core::block::Moments;
use punctual_core::format::Record;

use super::store::{CellFiles, Sync};
use crate::recorder::{Behind, Limits, Shared};

/// What the collector knows of one thread.
#[derive(Debug)]
pub struct Collected {
    shared: Arc<Shared>,
    blocks_taken: u64,
    late_taken: u64,
    /// Releases behind late samples.
    pub behind: Behind,
    /// All blocks so far.
    pub moments: Moments,
    /// Seconds that hold an exceedance, by the block that it landed in.
    pub clusters: u64,
    /// The second behind the last block.
    pub seconds: u64,
}

/// Drains the rings of all threads of a cell.
#[derive(Debug)]
pub struct Collector {
    /// By thread.
    pub threads: Vec<Collected>,
    interval_ns: u64,
    limits: Limits,
}

impl Collector {
    /// Collects from the threads' recorders.
    #[must_use]
    pub fn new(shared: Vec<Arc<Shared>>, interval_ns: u64, limits: Limits) -> Self {
        let threads = shared
            .into_iter()
            .map(|shared| Collected {
                shared,
                blocks_taken: 0,
                late_taken: 0,
                behind: Behind::default(),
                moments: Moments::EMPTY,
                clusters: 0,
                seconds: 0,
            })
            .collect();
        Self { threads, interval_ns, limits }
    }

    /// Takes everything that is published; returns whether there was anything.
    pub fn drain(&mut self, files: &mut CellFiles, sync: Sync) -> bool {
        let mut any = false;
        for (number, thread) in self.threads.iter_mut().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            while let Some(late) = thread.shared.late.take(thread.late_taken, number) {
                thread.late_taken += 1;
                thread.behind.add(late.latency, late.missed, self.interval_ns, &self.limits);
                files.push(&Record::Late(late));
                any = true;
            }
            while let Some(block) = thread.shared.blocks.take(thread.blocks_taken, number) {
                thread.blocks_taken += 1;
                thread.moments.merge(&block.moments);
                thread.seconds = block.index + 1;
                thread.clusters += u64::from(block.moments.exceeded > 0);
                files.push(&Record::Block(block));
                any = true;
            }
        }
        files.flush(sync);
        any
    }

    /// Seconds of the cell for which every thread has published its block.
    #[must_use]
    pub fn seconds(&self) -> u64 {
        self.threads.iter().map(|thread| thread.seconds).min().unwrap_or(0)
    }

    /// The largest sample so far.
    #[must_use]
    pub fn max_ns(&self) -> Option<i64> {
        self.threads.iter().filter(|t| t.moments.count > 0).map(|t| t.moments.max).max()
    }
}
