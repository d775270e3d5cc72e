//! `run.json`: what a run records in addition to its samples.
//!
//! Minor versions only add keys, and readers ignore keys they do not know; every field added
//! after 2.0 must therefore carry `#[serde(default)]`. Latencies and durations are integers in
//! nanoseconds, named `_ns`. Epochs are strings, because nanoseconds since 1970 exceed 2^53.
//! What programs compare is an enum, never free text.

mod board;
mod cell;
mod cost;
mod episodes;
mod identity;
mod latency;
mod phase;
mod run;
mod settle;
mod stats;
mod stop;
mod strain;
mod thread;
mod time;
mod unit;
mod verdict;
mod work;

pub use board::{Board, BoardKind, Kernel, Lab, MARKS, MODULES_MAX, Marks, ModuleAddress};
pub use cell::{
    Cell, CellState, Counter, DRIFT, EPISODES_JOINED, NO_LEGS, NOT_AT_REST, NOT_IDLE, STOPPED,
    TRACER, Tells, UNREAD, What,
};
pub use cost::{Better, Cost, CostEnd, CostSection, CostStatus};
pub use episodes::{Batches, Episodes};
pub use identity::{BoardIdentity, IdentityKind, same_hardware, short_identities};
pub use latency::{Broke, Ideal, Latency, Quantity, Response, Role, Series, Side, SideRole};
pub use phase::{AtWork, LoadPhase, PhaseAt, PhaseFound, PhaseSeconds};
pub use run::{Continuation, Origin, Run, RunState, Tool};
pub use stats::{Corrected, Stats};
pub use stop::{Stop, StoppedBy};
pub use strain::{CellStrain, Pressure};
pub use thread::{Helper, Placement, Policy, Thread};
pub use time::TimeBase;
pub use unit::Unit;
pub use verdict::{Condition, Outcome, Verdict};
pub use work::{LoadWork, WorkCounter};

/// The version written by this tool.
pub const SCHEMA: &str = "2.1";

#[cfg(test)]
mod tests;
