//! What a probe measures: series of samples by thread, on one machine or between two.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stats::{Stats, in_ns};
use super::thread::{Helper, Thread};
use super::unit::Unit;

/// A probe's latencies. The primary series is what is judged: its statistics stand here, and
/// those of each thread in the thread. `series` has the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Name of the probe.
    pub probe: String,
    /// Every parameter as it took effect, defaults included.
    pub params: BTreeMap<String, String>,
    /// What a sample of the primary series is. Always in nanoseconds.
    pub primary: Quantity,
    /// The period between releases, ns; absent if the probe has none.
    #[serde(default)]
    pub interval_ns: Option<u64>,
    /// Largest sample of the warm-up, which is outside all other numbers, ns.
    #[serde(default)]
    pub warmup_max_ns: Option<i64>,
    /// Statistics of the primary series over all threads.
    #[serde(flatten, with = "in_ns")]
    pub stats: Stats,
    /// The other series. Their records have the number of their place here plus one.
    #[serde(default)]
    pub series: Vec<Series>,
    /// The threads that measured, in order.
    pub threads: Vec<Thread>,
    /// Threads that took part without samples, such as the partners of a hand-over.
    #[serde(default)]
    pub helpers: Vec<Helper>,
}

/// What a value is, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantity {
    /// Name, such as `latency` or `gap`.
    pub name: String,
    /// From what to what, such as "start of the work minus its release".
    pub meaning: String,
    /// What one sample is of, such as `activation` or `hand-over`.
    pub noun: String,
    /// The same for several.
    pub nouns: String,
}

/// A series other than the primary one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name, such as `interrupt`.
    pub name: String,
    /// From what to what, in words.
    pub meaning: String,
    /// What it is to the primary series.
    pub role: Role,
    /// Unit of its values.
    pub unit: Unit,
    /// Statistics over all threads, in that unit.
    pub stats: Stats,
}

/// What a series is to its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// What the cell is judged by.
    Primary,
    /// A part of the primary one: the legs of a sample add up to it.
    Leg,
    /// Another quantity, measured on the way.
    Aside,
}

/// Two machines' latencies: one answers, the other stimulates and measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The machines that took part.
    pub sides: Vec<Side>,
    /// Time on the line that is in every sample, ns, such as 87 us a character at 115200 baud.
    #[serde(default)]
    pub line_ns: Option<u64>,
    /// What the measuring side found.
    #[serde(flatten)]
    pub latency: Latency,
}

/// One machine of a response cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// Its part.
    pub role: SideRole,
    /// Name of the board.
    pub board: String,
    /// Its kernel, `uname -r`.
    pub kernel: String,
    /// The run that it recorded itself, if it did.
    #[serde(default)]
    pub run_id: Option<String>,
}

/// Part of a machine in a response cell.
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
    /// The name, as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::Host => "host",
            Self::Logger => "logger",
        }
    }
}
