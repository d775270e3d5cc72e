//! What the measuring side tells while it does it.

use serde::{Deserialize, Serialize};

/// What the measuring side tells; instants and times are in ns of its own time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// A board that was started for the run is up.
    Booted {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
    },
    /// The plan begins.
    Started {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// What the plan takes, warm-ups included.
        plan_ns: u64,
        /// Cells.
        cells: usize,
    },
    /// A cell begins.
    Cell {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// Its number, from 0.
        number: usize,
        /// Its key.
        key: String,
        /// How much of the plan is done.
        before_ns: u64,
    },
    /// Once a second within a cell.
    Progress {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// Measured so far.
        measured_ns: u64,
        /// Largest sample so far.
        max_ns: Option<i64>,
    },
    /// Something failed; the measuring side goes on if it can.
    Trouble {
        /// What, on what, and why.
        text: String,
    },
    /// The plan has ended, and nothing comes after this.
    Ended {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// Whether the whole run came out.
        whole: bool,
    },
}

/// One message of the measuring side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Something happened.
    Event(Event),
    /// More of a file of the run directory.
    Append(String, Vec<u8>),
    /// A file of the run directory, whole.
    Whole(String, Vec<u8>),
}
