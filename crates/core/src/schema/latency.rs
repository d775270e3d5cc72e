//! What a probe measures: series of samples per thread, on one machine or between two.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::episodes::Episodes;
use super::stats::{Stats, in_ns};
use super::thread::{Helper, Thread};
use super::unit::Unit;

/// A probe's latencies. The primary series is judged: its statistics are here, and those of
/// each thread in the thread. `series` contains the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Name of the probe.
    pub probe: String,
    /// Every parameter as it took effect, defaults included.
    pub params: BTreeMap<String, String>,
    /// Whether its samples are made up rather than measured.
    #[serde(default)]
    pub simulated: bool,
    /// The quantity of the primary series, always in nanoseconds.
    pub primary: Quantity,
    /// What the samples would be if nothing were late; `None` for latencies, which would be zero.
    #[serde(default)]
    pub ideal: Option<Ideal>,
    /// The period between releases, ns; `None` if the probe has none.
    #[serde(default)]
    pub interval_ns: Option<u64>,
    /// Whether each release was moved within its interval, as `dither` of the run says.
    #[serde(default)]
    pub dithered: bool,
    /// Largest sample of the warm-up, ns; part of no other number.
    #[serde(default)]
    pub warmup_max_ns: Option<i64>,
    /// The sample above the break value that ended the cell.
    #[serde(default)]
    pub broke: Option<Broke>,
    /// Statistics of the primary series over all threads.
    #[serde(flatten, with = "in_ns")]
    pub stats: Stats,
    /// Late episodes of all threads together; `None` without a deadline.
    #[serde(default)]
    pub episodes: Option<Episodes>,
    /// The other series. In records, each has the number of its index here plus one.
    #[serde(default)]
    pub series: Vec<Series>,
    /// The threads that measured, in order.
    pub threads: Vec<Thread>,
    /// Threads that took part without samples, such as the posting threads of hand-overs.
    #[serde(default)]
    pub helpers: Vec<Helper>,
}

/// The sample above the break value that ended a cell, and the run with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broke {
    /// The break value, ns.
    pub limit_ns: u64,
    /// The sample, ns.
    pub latency_ns: i64,
    /// Number of the thread that measured it.
    pub thread: u32,
    /// The CPU that this thread is bound to; `None` if it may run on several.
    #[serde(default)]
    pub cpu: Option<u32>,
    /// Instant (`CLOCK_MONOTONIC`) of the sample, ns after the cell's start.
    #[serde(default)]
    pub at_ns: Option<u64>,
}

/// The meaning of a value, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantity {
    /// Name, such as `latency` or `gap`.
    pub name: String,
    /// The instants between which it is measured, such as "start of the work minus its release".
    pub meaning: String,
    /// What one sample is called, such as `activation` or `hand-over`.
    pub noun: String,
    /// The plural.
    pub nouns: String,
}

/// What samples would be if nothing were late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Ideal {
    /// Samples are the times from one event to the next. Other series in ns are parts of them.
    Interval {
        /// The time between two events, ns.
        ns: u64,
        /// What is longer has lost something, ns.
        limit_ns: u64,
    },
    /// Samples are how late an output was raised; those of the first other series, how late it was
    /// lowered.
    Pulse {
        /// When it is to be lowered, ns after it is to be raised.
        width_ns: u64,
    },
}

/// A series other than the primary one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name, such as `interrupt`.
    pub name: String,
    /// The instants between which it is measured.
    pub meaning: String,
    /// Its relation to the primary series.
    pub role: Role,
    /// Unit of its values.
    pub unit: Unit,
    /// Statistics over all threads, in that unit.
    pub stats: Stats,
}

/// The relation of a series to its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The cell is judged by it.
    Primary,
    /// A part of the primary series: the legs of a sample add up to it.
    Leg,
    /// A different quantity, measured at the same time.
    Aside,
}

/// Latencies between two machines: one answers, the other stimulates and measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The machines that took part.
    pub sides: Vec<Side>,
    /// Transmission time included in every sample, ns; for example 87 us per character at
    /// 115200 baud.
    #[serde(default)]
    pub line_ns: Option<u64>,
    /// What the measuring side found.
    #[serde(flatten)]
    pub latency: Latency,
}

/// One machine of a response cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Its role.
    pub role: SideRole,
    /// Name of the board.
    pub board: String,
    /// Its kernel, `uname -r`.
    pub kernel: String,
    /// ID of the run that it recorded itself, if it did.
    #[serde(default)]
    pub run_id: Option<String>,
}

/// The role of a machine in a response cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SideRole {
    /// It answers.
    Target,
    /// It stimulates.
    Host,
    /// It times both.
    Logger,
}

impl SideRole {
    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Host => "host",
            Self::Logger => "logger",
        }
    }
}
