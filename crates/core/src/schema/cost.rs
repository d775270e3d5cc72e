//! Cells that measure the cost of an operation.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::thread::Placement;
use super::unit::Unit;

/// The result of a metric: the median of its repetitions, with a confidence interval of the
/// median by order statistics.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Name of the metric, such as `lat.syscall`.
    pub metric: String,
    /// What one operation is, in words.
    pub meaning: String,
    /// Every parameter as it took effect, defaults included.
    pub params: BTreeMap<String, String>,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether lower or higher values are better.
    pub better: Better,
    /// Median of the repetitions; `None` if it could not be measured.
    pub value: Option<f64>,
    /// Lower end of the median's interval; `None` with too few repetitions.
    pub low: Option<f64>,
    /// Upper end of the interval. If the metric is not measurable, the bound below which it lies.
    pub high: Option<f64>,
    /// Confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// Operations timed in each repetition.
    pub iterations: u64,
    /// The values of the repetitions, in order.
    pub repetitions: Vec<f64>,
    /// Half the interquartile range, divided by the median; `None` with too few repetitions.
    pub spread: Option<f64>,
    /// Why the repetitions ended; `None` until they have, and if they were interrupted.
    pub end: Option<CostEnd>,
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
