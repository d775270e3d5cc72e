//! When a cell's process was stopped from outside, which no kernel is to be judged by.

use serde::{Deserialize, Serialize};

/// A time in which the process that measured was stopped, as a witness says. Its samples are in no
/// number of the cell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// When it began at the latest, ns after the cell's start: the first release that was late by it.
    /// Without a length, the instant after which the process was continued.
    pub from_ns: u64,
    /// From then until the last start that was late by it, ns; `None` if no sample was late by it.
    #[serde(default)]
    pub length_ns: Option<u64>,
    /// What tells of it.
    pub by: StoppedBy,
    /// Path of the control group, or number and name of the debugger; empty for a signal.
    #[serde(default)]
    pub name: String,
    /// Samples that are left out, of all series.
    pub samples: u64,
    /// Releases that they missed, of all series.
    pub missed: u64,
    /// The largest of those samples, ns; 0 without any.
    pub max_ns: u64,
}

/// What tells that a process was stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoppedBy {
    /// SIGCONT, which came after it.
    #[default]
    Signal,
    /// The freezer of its control group, version 2.
    Freezer,
    /// A debugger that was attached.
    Debugger,
}

impl StoppedBy {
    /// All of them; a record has the place in this list.
    pub const ALL: [Self; 3] = [Self::Signal, Self::Freezer, Self::Debugger];
}
