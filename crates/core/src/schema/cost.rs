//! Cells that measure what the kernel costs in throughput.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::thread::Placement;
use super::unit::Unit;

/// A metric's result: the median of its repetitions, with a confidence interval of the
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
    /// Which way is better.
    pub better: Better,
    /// Median of the repetitions; absent if it could not be measured.
    pub value: Option<f64>,
    /// Lower end of the interval of the median; absent with too few repetitions.
    pub low: Option<f64>,
    /// Its upper end. If the metric is not measurable: the bound below which it lies.
    pub high: Option<f64>,
    /// Confidence of the interval, such as 0.95.
    pub confidence: f64,
    /// Operations timed in each repetition.
    pub iterations: u64,
    /// The repetitions' values, in their order.
    pub repetitions: Vec<f64>,
    /// Half the distance of the quartiles over the median; absent with too few repetitions.
    pub spread: Option<f64>,
    /// How the repetitions ended; absent until they have, and if they were interrupted.
    pub end: Option<CostEnd>,
    /// Where and how the timed thread ran.
    #[serde(flatten)]
    pub placement: Placement,
}

/// Which way a cost is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Times.
    #[default]
    Less,
    /// Rates.
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
    /// The operation is below what the clock resolves, or below the cost of the loop itself.
    NotMeasurable,
}
