//! The engine's interface: its options, and what it reports.

use std::path::{Path, PathBuf};

use punctual_core::aim::Aim;
use punctual_core::block::Moments;
use punctual_core::channel::VirtualBoard;
use punctual_core::dither::Dither;
use punctual_core::schema::{Cell, Condition, Run};
use punctual_sys::signal::{Signal, Signals};

use super::run_dir::{RunDir, SyncPolicy};

/// How to run a plan.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run directory; `None`: `punctual-runs/<UTC time>-<board>-<kernel>`.
    pub out: Option<PathBuf>,
    /// Name of the board; `None`: the host name.
    pub board_name: Option<String>,
    /// Exit latency to hold `/dev/cpu_dma_latency` at, us; `None`: leave it alone.
    pub dma_latency_us: Option<u32>,
    /// A sample above this ends the run, ns.
    pub break_ns: Option<u64>,
    /// Every sample above this is kept, ns.
    pub threshold_ns: Option<u64>,
    /// When records are synced to disk.
    pub sync: SyncPolicy,
    /// Name of the group of runs that belong together.
    pub group: Option<String>,
    /// Number within that group.
    pub replicate: Option<u32>,
    /// How many runs like this one are still to be made beside it, this one included: there is to
    /// be room on disk for all of them. 0 counts as 1.
    pub runs: u32,
    /// Delay before the first release, ns.
    pub phase_ns: u64,
    /// By how much each release is moved within its interval; `None`: not at all.
    pub dither: Option<Dither>,
    /// The release that is moved to a given instant and ends the run, or none.
    pub aim: Aim,
    /// Allows priority 99.
    pub force: bool,
    /// One thread per CPU measures every CPU that a thread can be bound to, those too that this
    /// process is kept off by its affinity and those to which a foreign real-time thread is bound.
    pub all_cpus: bool,
    /// Skips every cell if real-time scheduling or locked memory is refused.
    pub require_rt: bool,
    /// The record of the run in `out` that was cut short and that this run goes on with.
    pub continued: Option<Box<Run>>,
    /// The program that measures.
    pub program: Program,
    /// The virtual board that this machine is, if it is one. The lab, which made the board,
    /// adds to the record what it was made of.
    pub virtual_board: Option<VirtualBoard>,
    /// SHA-256 of this program, hexadecimal, if already known; otherwise it is computed after
    /// the last cell.
    pub tool_sha256: Option<String>,
    /// Conditions that are known before the run.
    pub conditions: Vec<Condition>,
}

/// A program that measures, as records name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// What is wrong with the request; nothing was measured.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Progress within a cell.
#[derive(Debug)]
pub struct Progress<'a> {
    /// The cell's key.
    pub key: &'a str,
    /// Time measured so far, ns.
    pub measured_ns: u64,
    /// Largest sample so far, ns.
    pub max_ns: Option<i64>,
    /// What each thread has found so far; empty for a cost.
    pub threads: &'a [ThreadProgress],
}

/// What one thread has found so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadProgress {
    /// The CPU that it is bound to; `None` if it may run on several.
    pub cpu: Option<u32>,
    /// Its policy and priority, such as `fifo 80`.
    pub scheduling: String,
    /// Its finished blocks.
    pub moments: Moments,
    /// The last of them.
    pub last: Moments,
}

/// Callbacks that follow a run.
pub trait Observer {
    /// The run directory exists; `plan_ns` is the planned time of all cells, warm-ups included.
    fn started(&mut self, run: &Run, dir: &Path, plan_ns: u64);
    /// Something about the run directory that the user should know.
    fn warn(&mut self, _text: &str) {}
    /// The room on disk that a long run takes, in words.
    fn takes(&mut self, _text: &str) {}
    /// These signals were ignored when the run started, and do not end it.
    fn ignoring(&mut self, _signals: &[Signal]) {}
    /// A cell begins; the cells before it were planned to take `before_ns`.
    fn cell_started(&mut self, cell: &Cell, number: usize, before_ns: u64);
    /// Called once a second within a cell.
    fn progress(&mut self, progress: &Progress<'_>);
    /// SIGUSR1 asked for a snapshot.
    fn snapshot(&mut self);
    /// A cell has ended.
    fn cell_ended(&mut self, cell: &Cell);
    /// A signal ends the process now; what was measured is in the run directory `dir`.
    fn ending_at_once(&mut self, _dir: &Path) {}
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// `run.json`.
    pub run: Run,
    /// Its directory.
    pub dir: RunDir,
    /// Signals are still taken until this is dropped, so that none ends the process before the
    /// result is told.
    pub signals: Signals,
    /// The signal that ended it.
    pub ended_by: Option<Signal>,
    /// Why `run.json` could not be written at the end.
    pub not_written: Option<String>,
}
