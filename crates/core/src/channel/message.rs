//! What the measuring side reports while it measures.

use serde::{Deserialize, Serialize};

/// What the measuring side reports. Instants and times are in ns of its own time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The board that was started for the run is up.
    Booted {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
    },
    /// The board still has work of its own; the plan begins when it comes to rest.
    Settling {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
    },
    /// The board has come to rest, or will not, and pauses so that its state can be kept.
    /// [`Event::Booted`] follows when it goes on.
    Pausing {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
    },
    /// The plan begins.
    Started {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// Planned time of all cells, warm-ups included.
        plan_ns: u64,
        /// Number of cells.
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
        /// Planned time of the cells before it.
        before_ns: u64,
    },
    /// Sent once a second within a cell.
    Progress {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// Time measured so far.
        measured_ns: u64,
        /// Largest sample so far.
        max_ns: Option<i64>,
    },
    /// Something failed; the measuring side goes on if it can.
    Trouble {
        /// What failed, on what, and why.
        text: String,
    },
    /// The plan has ended, and no message follows.
    Ended {
        /// `CLOCK_MONOTONIC`.
        at_ns: u64,
        /// Whether the whole run has been sent.
        whole: bool,
    },
}

/// One message of the measuring side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Something happened.
    Event(Event),
    /// An addition to a file of the run directory.
    Append(String, Vec<u8>),
    /// A complete file of the run directory.
    Whole(String, Vec<u8>),
}
