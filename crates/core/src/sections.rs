//! The stretches of a run in which its kernel could not react: with interrupts off, or with
//! nothing that would have called the scheduler for a thread that had just been woken. Found by
//! watching a virtual board from outside.

use serde::{Deserialize, Serialize};

use crate::coverage::Coverage;
use crate::explanation::Hold;
use crate::preemption::Model;

/// All sections of one run. In its directory it is `sections.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sections {
    /// ID of the run.
    pub run_id: String,
    /// Name of its directory.
    pub run: String,
    /// `uname -r` of its kernel.
    pub release: String,
    /// Its preemption model.
    pub model: Model,
    /// Time of an instruction, ns.
    pub instruction_ns: u64,
    /// Its cells, in the order of the plan.
    pub cells: Vec<CellSections>,
    /// What its cells executed of its kernel.
    pub coverage: Coverage,
    /// What may not be concluded.
    pub caveats: Vec<String>,
}

/// The sections of one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellSections {
    /// Key of the cell, such as `wakeup @ hackbench @ 2s`.
    pub key: String,
    /// Its load; `none` without.
    pub load: String,
    /// How long it was watched: from the end of the warm-up to the reading of the clock of the last
    /// sample, ns.
    pub watched_ns: u64,
    /// How many samples were taken meanwhile.
    pub samples: u64,
    /// The largest latency that its own samples found, ns.
    pub sampled_max_ns: Option<u64>,
    /// Sections with interrupts off, then those in which the scheduler could not be called, which
    /// contain them.
    pub kinds: Vec<KindSections>,
}

/// The sections of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindSections {
    /// What could not happen in them.
    pub how: Hold,
    /// How many there were.
    pub count: u64,
    /// All of them together, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// By length: the lowest length of a bin of [`Histogram`](crate::histogram::Histogram), ns,
    /// and how many sections are in it; ascending, without empty bins.
    pub lengths: Vec<(u64, u64)>,
    /// The longest in each slice of the time watched: when the slice begins, ns since the
    /// start of the cell, and the length, ns. Ascending; at most [`SLICES`].
    pub over_time: Vec<(u64, u64)>,
    /// By the functions in which they begin and end, that with the longest one first.
    pub pairs: Vec<PairSections>,
    /// The longest, in descending order.
    pub longest: Vec<Section>,
}

/// Slices of [`KindSections::over_time`].
pub const SLICES: usize = 400;

/// The sections between two functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairSections {
    /// The function that begins them. What only takes or releases a lock stands for its caller.
    pub from: String,
    /// The function that ends them.
    pub to: String,
    /// How many there were.
    pub count: u64,
    /// All of them together, ns.
    pub total_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// By length: powers of two, ns, and how many sections are from there to the next; ascending,
    /// without those that have none.
    pub lengths: Vec<(u64, u64)>,
}

/// One section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// When it began, ns since the start of the cell; negative just after the warm-up.
    pub at_ns: i64,
    /// Whether that is exact. If the CPU was idle both before and after it, since the samples
    /// around it, it began at some time between these; `at_ns` is the earliest.
    pub exact: bool,
    /// Its length, ns.
    pub length_ns: u64,
    /// For how much of it interrupts were off, ns.
    pub interrupts_off_ns: u64,
    /// The function that began it.
    pub from: String,
    /// The function that ended it.
    pub to: String,
    /// The functions in which it began, callers first. Empty if that is not known.
    pub stack: Vec<String>,
    /// What ran in it: the time of each function itself, ns, in descending order.
    pub functions: Vec<(String, u64)>,
}
