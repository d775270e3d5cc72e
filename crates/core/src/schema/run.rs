//! One run: what was measured, and with what, where and when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::board::{Board, Kernel};
use super::cell::{Cell, NOT_AT_REST, UNREAD};
use super::time::TimeBase;
use super::verdict::{Condition, Verdict};
use crate::aim::Aim;
use crate::dither::Dither;
use crate::key::{NO_LOAD, key_name};
use crate::plan::Plan;

/// One run: one execution of a plan on one board with one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of this file's format, `major.minor`.
    pub schema: String,
    /// Unique name of the run: UTC time, board, kernel and random bits.
    pub run_id: String,
    /// State of the run.
    pub state: RunState,
    /// Whether it was measured by punctual, imported from another tool's output, or simulated.
    pub origin: Origin,
    /// Name of the group of runs that belong together, such as replicates of one experiment.
    #[serde(default)]
    pub group: Option<String>,
    /// Number of this run within its group, from 0.
    #[serde(default)]
    pub replicate: Option<u32>,
    /// Delay added before the first release, ns; it varies between replicates.
    #[serde(default)]
    pub phase_ns: u64,
    /// By how much releases were moved, for the cells that say so; `None`: not at all.
    #[serde(default)]
    pub dither: Option<Dither>,
    /// The release that was moved to a given instant and ended the run, once its cell has ended.
    #[serde(default)]
    pub aim: Option<Aim>,
    /// SHA-256 of the canonical plan, hexadecimal.
    pub plan_hash: String,
    /// The plan as it was executed.
    pub plan: Plan,
    /// The measuring program.
    pub tool: Tool,
    /// The machine that was measured.
    pub board: Board,
    /// Its kernel.
    pub kernel: Kernel,
    /// Whether real-time scheduling and locked memory were both granted.
    pub privileged: bool,
    /// Whether the machine is virtual.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// Clocks at the start of the run.
    pub started: TimeBase,
    /// Clocks at its end; `None` while it runs and after a SIGKILL.
    #[serde(default)]
    pub ended: Option<TimeBase>,
    /// When the run was continued after it was cut short, the first time first.
    #[serde(default)]
    pub continued: Vec<Continuation>,
    /// Circumstances that make the numbers suspect.
    pub conditions: Vec<Condition>,
    /// Facts that a reader needs to judge the numbers, by group: `cpu`, `clock`, `scheduler`,
    /// `memory`, `interrupts`, … See docs/run-format.md.
    pub facts: BTreeMap<String, Value>,
    /// The cells in the order of the plan.
    pub cells: Vec<Cell>,
    /// The worst of the cells' verdicts.
    pub verdict: Verdict,
    /// Whether the verdicts are there. A program that only measures leaves them to its readers.
    #[serde(default)]
    pub judged: bool,
}

impl Run {
    /// That the kernel still worked on its own when the run began.
    fn not_at_rest(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.id == NOT_AT_REST)
    }

    /// The cells beside which nothing ran but their load, as far as is known: those that tell
    /// of the kernel.
    pub fn cells_at_rest(&self) -> impl Iterator<Item = &Cell> {
        let rests = self.not_at_rest().is_none();
        self.cells.iter().filter(move |cell| rests && cell.unrest().is_none())
    }

    /// Whether nobody can say if the machine was idle in this cell, which was to be: what it was
    /// busy with could not be read.
    #[must_use]
    pub fn is_idleness_unknown(&self, cell: &Cell) -> bool {
        cell.load == NO_LOAD
            && cell.is_measured()
            && !cell.is_simulated()
            && cell.cpu_utilisation.is_none()
            && self.conditions.iter().any(|condition| condition.id == UNREAD)
    }

    /// Why its other cells do not.
    #[must_use]
    pub fn unrest(&self) -> Vec<String> {
        let of_run = self.not_at_rest().map(|condition| condition.text.clone());
        let of_cell =
            |cell: &Cell| Some(format!("{}: {}", key_name(&cell.key), cell.unrest()?.text));
        of_run.into_iter().chain(self.cells.iter().filter_map(of_cell)).collect()
    }
}

/// A run that went on in a process of its own with what another had begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Continuation {
    /// Clocks when it went on.
    pub started: TimeBase,
    /// Cells that had their result by then; the others were measured from their start.
    pub kept: usize,
    /// The command line that continued it.
    #[serde(default)]
    pub command: Vec<String>,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Under way; in the directory of a process that is gone, cut short.
    Running,
    /// The whole plan was executed.
    Complete,
    /// Ended by a signal or a break value; what was measured is kept.
    Interrupted,
    /// Ended by an error of punctual or of the board.
    Failed,
}

/// Source of a run's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Measured by punctual.
    Native,
    /// Converted from another tool's output.
    Imported,
    /// Made up by punctual: no cell measured anything of the machine.
    Simulated,
}

impl Origin {
    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Imported => "imported",
            Self::Simulated => "simulated",
        }
    }
}

/// The measuring program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `punctual`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Target triple and libc it was built for.
    pub target: String,
    /// SHA-256 of the executable, hexadecimal; empty if it could not be read.
    #[serde(default)]
    pub sha256: String,
    /// The command line it was started with.
    #[serde(default)]
    pub command: Vec<String>,
}
