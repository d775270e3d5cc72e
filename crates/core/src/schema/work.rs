//! The work done by a load.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The work done by one part of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadWork {
    /// Name of the load, such as `hackbench`.
    pub load: String,
    /// Number of its phase, from 0, if the load changes on a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
    /// Every parameter as it took effect.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// Its counters.
    pub counters: Vec<WorkCounter>,
    /// Seconds of the measurement in which it did nothing.
    pub idle_seconds: u64,
    /// How often it ended and was restarted.
    pub restarts: u64,
    /// How often it died: ended by a signal or with a status other than 0, or lost its
    /// supervisor.
    #[serde(default)]
    pub deaths: u64,
    /// Longest time for which it was gone, ns.
    #[serde(default)]
    pub gone_ns: u64,
    /// Time without a unit of work, in stretches of at least 5 s and five times `unit_ns`, ns;
    /// the whole measurement if it did none.
    #[serde(default)]
    pub idle_ns: u64,
    /// Median time from one unit of work to the next, as seen once a second, ns. `None` if
    /// there were none, and for `cmd`, whose CPU time and I/O have no units.
    #[serde(default)]
    pub unit_ns: Option<u64>,
    /// What contained its processes: `pid-namespace`, `user-namespace`, `cgroup` or
    /// `subreaper`; empty for a load without processes.
    #[serde(default)]
    pub containment: String,
    /// Why it stopped working, or why a part of it could not start.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// One counter of a load's work over the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkCounter {
    /// What is counted, such as `messages` or `bytes`.
    pub name: String,
    /// Total over the cell.
    pub total: u64,
    /// Average per second.
    pub per_second: f64,
}
