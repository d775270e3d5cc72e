//! Cells that measure the cost of an operation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::thread::{Helper, Placement};
use super::unit::Unit;

/// The result of a metric: the median of its repetitions, with a confidence interval of the
/// median by order statistics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Name of the metric, such as `lat.syscall`.
    pub metric: String,
    /// What one operation is, in words.
    pub meaning: String,
    /// The part of the table of costs that it stands in.
    pub section: CostSection,
    /// Its name in that table, and in published ones, if it has one with these parameters.
    pub column: Option<String>,
    /// Every parameter as it took effect, defaults included.
    pub params: BTreeMap<String, String>,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether lower or higher values are better.
    pub better: Better,
    /// How it came out, in a word for other programs; follows from the cell's state and `end`.
    #[serde(default)]
    pub status: CostStatus,
    /// Why it is not `measured`, or not as precisely as wanted; `None` if there is nothing to say.
    #[serde(default)]
    pub note: Option<String>,
    /// Median of the repetitions; `None` if it could not be measured.
    pub value: Option<f64>,
    /// Lower end of the median's interval; `None` with too few repetitions. Of a rate that is not
    /// measurable, the bound above which it lies.
    pub low: Option<f64>,
    /// Upper end of the interval. Of a time that is not measurable, the bound below which it lies.
    pub high: Option<f64>,
    /// Confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// Operations timed in each repetition.
    pub iterations: u64,
    /// The values of the repetitions, in order.
    pub repetitions: Vec<f64>,
    /// Half the interquartile range, divided by the median; `None` with too few repetitions.
    pub spread: Option<f64>,
    /// Instructions that one operation takes; only of virtual boards that count them, and of what
    /// is the time of one operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<f64>,
    /// Why the repetitions ended; `None` until they have, and if they were interrupted.
    pub end: Option<CostEnd>,
    /// The processes and threads that take part besides the timed one.
    #[serde(default)]
    pub helpers: Vec<Helper>,
    /// Scheduling, CPUs and page faults of the timed thread.
    #[serde(flatten)]
    pub placement: Placement,
}

/// Whether lower or higher values are better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Lower: times.
    #[default]
    Less,
    /// Higher: rates.
    More,
}

/// A part of the table of costs; the first five are those of LMbench's summary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostSection {
    /// Clock rate, cache line, reach of the TLB.
    Basics,
    /// Calls, signals, processes.
    #[default]
    Processor,
    /// Context switches.
    ContextSwitching,
    /// Round trips between processes of one machine.
    Communication,
    /// Files, mappings and faults.
    FilesAndMemory,
    /// What is moved in a time.
    Bandwidths,
    /// Latencies of memory by size and stride.
    MemoryLatencies,
    /// Blocks and files of a disk.
    Disk,
    /// What is not in that summary.
    Others,
}

/// Why the repetitions of a metric ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostEnd {
    /// The interval was narrow enough.
    Precise,
    /// The cell's duration was over before that.
    TimeLimit,
    /// The operation takes less than the clock resolves, or less than the loop itself.
    NotMeasurable,
}

/// How a metric came out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostStatus {
    /// Not yet measured: the run has not come to it, or was cut short before or while it was.
    #[default]
    Pending,
    /// It has a value.
    Measured,
    /// Less than the clock resolves, or less than what is subtracted; there may be a bound.
    NotMeasurable,
    /// Something that it needs is missing or forbidden.
    Skipped,
    /// An error ended it.
    Failed,
    /// A signal ended it; there may be a value, of the repetitions until then.
    Interrupted,
}

impl CostStatus {
    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Measured => "measured",
            Self::NotMeasurable => "not-measurable",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Cost {
    /// Half of the interval's width, divided by the value.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        let (value, low, high) = (self.value?, self.low?, self.high?);
        (value > 0.0).then(|| (high - low) / 2.0 / value)
    }
}
