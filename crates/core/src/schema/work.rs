//! The work that a load did.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The work that one part of a load did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadWork {
    /// Name of the load, as `hackbench`.
    pub load: String,
    /// Every parameter as it took effect.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// What it counted.
    pub counters: Vec<WorkCounter>,
    /// Seconds of the measurement in which it did nothing.
    pub idle_seconds: u64,
    /// How often it ended and was started again.
    pub restarts: u64,
    /// What held its processes together: `pid-namespace`, `user-namespace`,
    /// `cgroup`, `subreaper`; empty for a load without processes.
    #[serde(default)]
    pub containment: String,
    /// Why it stopped working, or a part of it could not start.
    #[serde(default)]
    pub trouble: Option<String>,
}

/// One counter of a load's work over the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkCounter {
    /// What is counted, as `messages` or `bytes`.
    pub name: String,
    /// How many over the cell.
    pub total: u64,
    /// How many a second.
    pub per_second: f64,
}
