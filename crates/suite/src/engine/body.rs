//! The body of a cell: the part that measures. The frame around it (load, time base, CPU
//! share, conditions) is the same for every kind of cell.

use std::io;

use punctual_core::format::Record;
use punctual_core::schema::Cell;
use punctual_core::stats::BySecond;

use super::api::ThreadProgress;
use super::run_dir::CellFiles;
use super::stops::Witness;
use crate::harness::phases::Began;
use crate::knobs::Journal;

/// When a body measures. Instants are CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// End of the warm-up.
    pub(super) warmup_end: u64,
    /// Start of the measurement.
    pub(super) epoch: u64,
    /// End of the measurement; `u64::MAX` if the body ends by itself.
    pub(super) end: u64,
    /// Whether time is simulated; progress is then counted in the seconds collected.
    pub(super) simulated: bool,
    /// Longest intended time between two samples of a thread, ns.
    pub(super) pause_ns: u64,
}

/// The part of a cell that measures. The main thread owns it and visits it once a second.
pub(super) trait Body {
    /// When it measures.
    fn times(&self) -> Times;

    /// Whether all of its threads have ended.
    fn ended(&self) -> bool;

    /// Tells its threads to end.
    fn stop(&self);

    /// Whether its threads were told to end, by [`Body::stop`] or by one of them.
    fn is_stopping(&self) -> bool;

    /// Interrupts the waits of threads that have not ended.
    fn wake(&self) {}

    /// Interrupts the waits of threads that are still in the warm-up after its end: each may be
    /// waiting for a partner that has already left it. Returns whether there are any.
    fn wake_late(&self) -> bool {
        false
    }

    /// Called when the load of a phase is at work.
    fn load_works(&mut self, _began: &Began) {}

    /// Called when the measurement begins: only what is found after this counts.
    fn begin(&mut self) {}

    /// Collects what is new, and asks the witness about long samples; returns whether there was anything.
    ///
    /// # Errors
    /// An error that ends the cell early.
    fn collect(&mut self, files: &mut CellFiles, witness: &mut Witness) -> io::Result<bool>;

    /// Seconds of simulated time for which everything was collected.
    fn seconds(&self) -> u64 {
        0
    }

    /// What each thread has found so far.
    fn so_far(&self) -> Vec<ThreadProgress>;

    /// Whether a sample was above the break value.
    fn is_broken(&self) -> bool {
        false
    }

    /// Joins its threads, takes what is left and puts into `cell` what was found. The journal is
    /// undone after it.
    fn finish(
        self: Box<Self>,
        files: &mut CellFiles,
        cell: &mut Cell,
        journal: &mut Journal,
        witness: &mut Witness,
    ) -> Closing;
}

/// What a body leaves besides what it puts into its cell.
pub(super) struct Closing {
    /// The records of the cell's end.
    pub(super) records: Vec<Record>,
    /// What the seconds of the cell were, for those who judge; none of a cost.
    pub(super) course: Option<BySecond>,
}
