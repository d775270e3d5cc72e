//! What the other side is to do.

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// What the other side is to measure: everything that it decides its numbers by, and nothing
/// else, since on a virtual board each byte of it moves them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The plan to run.
    pub plan: Plan,
    /// Name of the board for the record.
    pub board: String,
    /// What the board is, if it is a virtual one.
    #[serde(default)]
    pub virtual_board: Option<VirtualBoard>,
    /// Runs that this one belongs with; absent if that is recorded by who gives the order.
    #[serde(default)]
    pub group: Option<String>,
    /// Number of the run within its group, from 0.
    #[serde(default)]
    pub replicate: Option<u32>,
    /// Delay before the first release, ns.
    #[serde(default)]
    pub phase_ns: u64,
    /// Longest time that the plan may take, ns of the measuring side's time.
    pub limit_ns: u64,
    /// SHA-256 of the measuring program, hexadecimal, if who gives the order knows it:
    /// the other side need not compute it then.
    #[serde(default)]
    pub tool_sha256: Option<String>,
}

/// What has to be known of a virtual board to say what its numbers mean.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VirtualBoard {
    /// Instructions that take a microsecond of the board's time; absent if time is not
    /// counted and the guest runs freely.
    pub mips: Option<u32>,
    /// CPUs.
    pub cpus: u32,
    /// Why a repeated run need not give the same nanoseconds.
    #[serde(default)]
    pub not_exact: Vec<String>,
}
