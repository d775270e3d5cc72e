//! The records and the limits on their numbers.

use crate::block::{Block, Late, Outlier, Spell, System};
use crate::histogram::Sparse;
use crate::interval::{Actor, Interval};
use crate::schema::Stop;
use crate::units::SECOND_NS;

pub(super) const MARKER: [u8; 2] = [0xB5, 0x1A];
pub(super) const HEAD: usize = 10;
/// More than any record takes: the largest is that of 16,448 outliers of up to 20 bytes each.
pub(super) const MAX_PAYLOAD: usize = 1 << 19;
/// More than any counter of a block or bin can reach (a century at 50 kHz). Larger values are
/// damage; the limit keeps sums over a run within u64.
pub(super) const MAX_COUNT: u64 = 1 << 48;
/// Largest second whose nanoseconds fit in u64.
pub(super) const MAX_SECOND: u64 = u64::MAX / SECOND_NS - 1;

/// Which of a thread's distributions a histogram record contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Samples of zero and above.
    Positive,
    /// Magnitudes of the samples below zero.
    Negative,
    /// Latencies of missed releases; together with the other two, the corrected distribution.
    Behind,
}

/// One record of a cell's files.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// A finished block.
    Block(Block),
    /// A sample that missed releases.
    Late(Late),
    /// The cumulative work of one part of the load at the end of a second.
    Work {
        /// Seconds since the cell's start.
        second: u64,
        /// Number of the part of the load.
        part: u32,
        /// Its counters, in the order of `load_work[].counters`.
        totals: Vec<u64>,
    },
    /// How the CPUs' time was spent in one second, and what strained the machine.
    System(System),
    /// A histogram, lossless.
    Histogram {
        /// Number of the thread.
        thread: u32,
        /// Number of the series.
        series: u32,
        /// Which distribution.
        part: Part,
        /// The counts.
        counts: Sparse,
    },
    /// The worst samples of a thread, in no particular order.
    Outliers {
        /// Number of the thread.
        thread: u32,
        /// Number of the series.
        series: u32,
        /// The samples.
        samples: Vec<Outlier>,
    },
    /// Which actor had a CPU, and when.
    Interval(Interval),
    /// The name of an interval's actor.
    Actor(Actor),
    /// A spell of lateness.
    Spell(Spell),
    /// The load of a phase is at work.
    Phase {
        /// Number of the phase.
        phase: u32,
        /// Since when, ns after the cell's start.
        from: u64,
        /// Until when at the latest, ns after the cell's start.
        to: u64,
    },
    /// The process was stopped. A later one with the same number replaces it.
    Stop {
        /// Number of the stop in its cell.
        number: u32,
        /// What is known of it.
        stop: Stop,
    },
}

/// First byte of a payload.
pub(super) mod kind {
    pub const BLOCK: u8 = 1;
    pub const LATE: u8 = 2;
    pub const WORK: u8 = 3;
    pub const SYSTEM: u8 = 4;
    pub const HISTOGRAM: u8 = 5;
    pub const OUTLIERS: u8 = 6;
    pub const INTERVAL: u8 = 7;
    pub const ACTOR: u8 = 8;
    pub const SPELL: u8 = 9;
    pub const PHASE: u8 = 10;
    pub const STOP: u8 = 11;
}

/// The checksum of a frame, over its length and its payload.
pub(super) fn checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length);
    hasher.update(payload);
    hasher.finalize()
}
