//! The messages between punctual and a supervisor.

use std::path::PathBuf;

use punctual_sys::shared::SharedCounters;
use serde::{Deserialize, Serialize};

use super::memory_group::MemoryGroup;
use super::worker::{CONTROL_LINE, Params, READY};
use crate::registry::load::LoadEntry;

/// The internal command with which a load's supervisor is started.
pub const LOAD_SUPERVISOR: &str = "__load";

/// Prefix of the line that says that the part is given up.
pub(super) const END: &str = "end ";
/// Prefix of the line that says why the part was restarted.
pub(super) const TROUBLE: &str = "trouble ";

/// The order to a supervisor, passed as JSON in its argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PartOrder {
    pub(super) load: String,
    pub(super) params: Params,
    pub(super) scratch: Option<PathBuf>,
    pub(super) memory_group: Option<MemoryGroup>,
    /// CPUs that it runs on if no parameter says otherwise.
    pub(super) inherited: Vec<u32>,
    /// CPUs that its workers are bound to, one after the other; none if they are not.
    pub(super) in_turn: Vec<u32>,
    pub(super) self_args: Vec<String>,
    pub(super) containment: String,
    pub(super) cgroup: Option<PathBuf>,
}

/// Whether a part has shown that it works.
pub(super) fn has_worked(entry: &LoadEntry, counters: &SharedCounters) -> bool {
    let worked = |counter| counters.sum(CONTROL_LINE + 1, counter) > 0;
    // A command that fails has used CPU time too.
    let shows = entry.steady_from().unwrap_or(entry.counters.len());
    counters.get(CONTROL_LINE, READY) > 0 || (0..shows).any(worked)
}
