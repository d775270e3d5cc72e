//! Why samples of a run were late: what a board did between the release and the reading of the
//! clock, to the last instruction. Found by repeating the run and watching it from outside.

use serde::{Deserialize, Serialize};

use crate::preemption::Model;

/// What a repeat of a run shows of its samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
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
    /// The samples of each cell, in the order of the plan.
    pub cells: Vec<ExplainedCell>,
    /// What may not be concluded.
    pub caveats: Vec<String>,
}

/// The explained samples of one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedCell {
    /// Key of the cell, such as `wakeup @ hackbench @ 2s`.
    pub key: String,
    /// Its load; `none` without.
    pub load: String,
    /// The typical sample first, if there is one, then the worst ones, the latest first.
    pub samples: Vec<Explained>,
    /// Those that were asked for too and could not be explained, in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unexplained: Vec<Unexplained>,
}

/// A sample that could not be explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unexplained {
    /// Why it was chosen.
    pub chosen: Chosen,
    /// How many of `samples` come before it.
    pub after: usize,
    /// When its clock was read, ns since the start of the cell.
    pub at_ns: u64,
    /// Its latency, ns.
    pub latency_ns: u64,
    /// What kept it from being explained.
    pub why: String,
}

/// Why a sample was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chosen {
    /// The median of its cell.
    Typical,
    /// One of the latest.
    Worst,
    /// It was asked for by its time.
    At,
}

/// One sample.
///
/// All times are ns since its release. What was there before has negative times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explained {
    /// Why it was chosen.
    pub chosen: Chosen,
    /// When its clock was read, ns since the start of the cell.
    pub at_ns: u64,
    /// Its latency, ns.
    pub latency_ns: u64,
    /// Releases that it missed.
    pub missed: u64,
    /// Whether the CPU was idle when the release came.
    pub idle: bool,
    /// Instructions executed between the release and the reading of the clock.
    pub instructions: u64,
    /// From the release to the reading of the clock, without a gap; their lengths add up to
    /// the latency.
    pub legs: Vec<Leg>,
    /// Who kept the thread from running, if the release did not find the CPU able to react.
    pub held: Vec<Held>,
    /// What ran between the release and the reading of the clock, in order and without a gap: a
    /// new span whenever the stack changes.
    pub spans: Vec<StackSpan>,
    /// Which threads had the CPU between the release and the reading of the clock, in order and
    /// without a gap. Empty: the kernel does not show where it switches them.
    #[serde(default)]
    pub turns: Vec<Turn>,
    /// The functions in `spans`. Code of processes is `[user]`, or `[PROGRAM] FUNCTION` of a program
    /// whose file was given (`--files`); code of the kernel without a name is `[unnamed]`.
    pub functions: Vec<String>,
}

/// A thread's turn on the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    /// Its end, ns since the release; it begins where the one before ends, the first at 0.
    pub end_ns: u64,
    /// `None`: its name is not known.
    pub thread: Option<GuestThread>,
}

/// A thread of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestThread {
    /// Its name (`comm`), as it was when it got the CPU.
    pub name: String,
    /// Its number; 0 is that of the idle CPU.
    pub pid: u32,
    /// Its priority as the scheduler has it, smaller ones first: -1 for deadline, 0 to 98 for
    /// real-time (99 minus the user's number), 100 to 139 for others (120 plus nice).
    pub priority: i16,
}

impl GuestThread {
    /// The real-time priority that users give, 1 to 99; `None` if it has none.
    #[must_use]
    pub fn realtime(&self) -> Option<i16> {
        (0..=98).contains(&self.priority).then(|| 99 - self.priority)
    }
}

/// A part of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// What it lasts until.
    pub until: Milestone,
    /// Its end, ns since the release; it begins where the one before ends, the first at 0.
    pub end_ns: u64,
}

/// What happens between a release and the start of the work, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Milestone {
    /// The timer's interrupt is entered.
    Interrupt,
    /// The handler begins to wake the thread.
    Wakeup,
    /// The scheduler is entered that chooses the thread.
    Schedule,
    /// The CPU changes to the thread's stack.
    Switch,
    /// The thread's own code goes on.
    User,
    /// The thread reads the clock.
    Clock,
}

/// A stretch in which the kernel could not react.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// How.
    pub how: Hold,
    /// When it began, ns since the release; `None`: earlier than what is known.
    pub from_ns: Option<i64>,
    /// When it ended.
    pub to_ns: i64,
    /// The function that began it, without its callers.
    pub began_in: String,
    /// The function that ended it.
    pub ended_in: String,
}

/// How the kernel is kept from reacting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hold {
    /// Interrupts are off.
    Interrupts,
    /// The thread is awake, and nothing calls the scheduler.
    Scheduler,
    /// The thread is awake, and the scheduler prefers others.
    Preferred,
}

/// What ran for a while, with one stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSpan {
    /// Its end, ns since the release; it begins where the one before ends, the first at 0.
    pub end_ns: u64,
    /// Numbers of functions (in `functions`), callers first; the last one executed
    /// instructions. Empty: the CPU was idle.
    pub stack: Vec<u32>,
}
