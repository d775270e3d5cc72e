//! The threads of a probe: those that measure, and their helpers.

use serde::{Deserialize, Serialize};

use super::episodes::Episodes;
use super::stats::{Stats, in_ns};
use super::verdict::Verdict;

/// One thread of a probe that measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Number, from 0.
    pub thread: u32,
    /// Its scheduling, CPUs and page faults.
    #[serde(flatten)]
    pub placement: Placement,
    /// Offset of its releases within the period, ns.
    #[serde(default)]
    pub offset_ns: u64,
    /// Statistics of the primary series.
    #[serde(flatten, with = "in_ns")]
    pub stats: Stats,
    /// Statistics of the cell's other series, in their order and units.
    #[serde(default)]
    pub series: Vec<Stats>,
    /// Instant (`CLOCK_MONOTONIC`) of the largest sample, ns after the cell's start.
    #[serde(default)]
    pub max_at_ns: Option<u64>,
    /// Samples above the trace threshold that did not fit.
    #[serde(default)]
    pub outliers_left_out: u64,
    /// Its own late episodes; `None` without a deadline.
    #[serde(default)]
    pub episodes: Option<Episodes>,
    /// The verdict on this thread.
    pub verdict: Verdict,
}

/// A thread of a probe without samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Helper {
    /// What it does, such as "posts to thread 0".
    pub name: String,
    /// Its scheduling, CPUs and page faults.
    #[serde(flatten)]
    pub placement: Placement,
}

/// Scheduling, CPUs and page faults of a thread, read back from the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The one CPU it is bound to; `None` if it may run on several.
    pub cpu: Option<u32>,
    /// CPUs it may run on, such as `0-3,8`; empty if that was not recorded.
    pub affinity: String,
    /// Scheduling policy.
    pub policy: Policy,
    /// Real-time priority, 0 for `other`.
    pub priority: u32,
    /// What of the above had changed by the end (hotplug resets affinity).
    #[serde(default)]
    pub changed: Option<String>,
    /// Timer slack in effect, ns; `None` for real-time policies, which have none.
    #[serde(default)]
    pub timer_slack_ns: Option<u64>,
    /// Page faults during the measurement; 0 if its memory is locked.
    #[serde(default)]
    pub page_faults: Option<u64>,
}

/// Scheduling policy of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// `SCHED_FIFO`.
    Fifo,
    /// `SCHED_RR`.
    Rr,
    /// `SCHED_DEADLINE`.
    Deadline,
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_BATCH`.
    Batch,
    /// `SCHED_IDLE`.
    Idle,
    /// Not recorded: the run was cut short.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Policy {
    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Deadline => "deadline",
            Self::Other => "other",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Unknown => "unknown",
        }
    }
}
