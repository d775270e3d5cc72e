//! State shared by the cells of a run.

use punctual_core::aim::Aim;
use punctual_core::dither::Dither;
use punctual_core::judge::Judge;
use punctual_sys::signal::{Signal, Signals, die_by_default};

use super::api::{Observer, Progress};
use super::foreign::Foreign;
use super::privileges::Privileges;
use super::run_dir::{RunDir, SyncPolicy};
use crate::facts::{CpuTimes, Interrupts, StrainReader, Ticks};
use crate::knobs::Journal;

/// State shared by the cells of a run.
pub(super) struct Environment<'a> {
    pub(super) store: &'a mut RunDir,
    pub(super) signals: &'a Signals,
    pub(super) journal: &'a mut Journal,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) judge: &'a dyn Judge,
    pub(super) privileges: Privileges,
    /// Why no cell may be measured: a privilege that the user requires is refused.
    pub(super) refused: Option<String>,
    pub(super) cpu_times: Option<CpuTimes>,
    pub(super) strain: StrainReader,
    /// What others take from the cells; `None` in a simulated run.
    pub(super) foreign: Option<Foreign>,
    pub(super) threshold_ns: i64,
    pub(super) phase_ns: u64,
    pub(super) dither: Option<&'a Dither>,
    pub(super) aim: Aim,
    pub(super) sync: SyncPolicy,
    /// Instructions per microsecond of a board that counts those of its only CPU.
    pub(super) mips: Option<u32>,
    pub(super) interrupts: Interrupts,
    /// The caller did not pass the executable's hash. Computing it takes too long to do before
    /// the cells.
    pub(super) hash_at_end: bool,
    pub(super) ended_by: Option<Signal>,
    /// Whether a thread of a cell did not end, and still runs.
    pub(super) stuck: bool,
}

impl Environment<'_> {
    pub(super) fn cpu_times(&self) -> Option<Ticks> {
        self.cpu_times.as_ref()?.read().ok()
    }

    pub(super) fn progress(&mut self, progress: &Progress<'_>) {
        self.observer.progress(progress);
    }

    /// Ends this process after a second signal, which waits for nothing.
    pub(super) fn end_at_once(&mut self, signal: Signal) {
        self.observer.ending_at_once(self.store.path());
        self.journal.undo_or_complain();
        self.store.release_reserve();
        die_by_default(signal);
    }
}
