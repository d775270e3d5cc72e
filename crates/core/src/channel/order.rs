//! The order: what the other side is to measure.

use serde::{Deserialize, Serialize};

use crate::dither::Dither;
use crate::plan::Plan;

/// What the other side is to measure. It contains everything that its numbers depend on and
/// nothing else, because on a virtual board each of its bytes affects them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The plan to run.
    pub plan: Plan,
    /// Name of the board for the record.
    pub board: String,
    /// The virtual board that the other side is, if it is one.
    #[serde(default)]
    pub virtual_board: Option<VirtualBoard>,
    /// Name of the group of runs that this one belongs to; `None` if the ordering side records
    /// that.
    #[serde(default)]
    pub group: Option<String>,
    /// Number of the run within its group, from 0.
    #[serde(default)]
    pub replicate: Option<u32>,
    /// Delay of the first release, ns.
    #[serde(default)]
    pub phase_ns: u64,
    /// By how much each release is moved.
    #[serde(default)]
    pub dither: Option<Dither>,
    /// Longest time that the plan may take, ns of the measuring side's time.
    pub limit_ns: u64,
    /// SHA-256 of the measuring program, hexadecimal, if the ordering side knows it: the other
    /// side then need not compute it.
    #[serde(default)]
    pub tool_sha256: Option<String>,
}

/// What the meaning of a virtual board's numbers depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualBoard {
    /// Instructions per microsecond of the board's time; `None` if time is not counted and the
    /// guest runs freely.
    pub mips: Option<u32>,
    /// Number of CPUs.
    pub cpus: u32,
    /// Why a repeated run may not give the same nanoseconds.
    #[serde(default)]
    pub not_exact: Vec<String>,
    /// The longest time for which one of its CPUs waits for its turn, ns, once the board has
    /// measured it; part of no order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_wait_ns: Option<u64>,
}

impl VirtualBoard {
    /// Whether its CPUs execute one after the other, so that a latency may include turns of
    /// others: the board's time goes on while a CPU waits.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.mips.is_some() && self.cpus > 1
    }
}
