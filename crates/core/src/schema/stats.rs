//! The statistics of a series. In memory they are in the series' unit. In `run.json` those of
//! the primary series, which is in nanoseconds, have keys that say so (`max_ns`).

use serde::{Deserialize, Serialize};

/// Statistics of a set of samples, in the unit of their series. A value is `None` if there are
/// no samples, or too few for the quantile: q is the value at rank ceil(q N), given if N (1 -
/// q) >= 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Releases that were due: always `samples + missed`.
    pub scheduled: u64,
    /// Values measured.
    pub samples: u64,
    /// Releases that passed while an earlier one was still waiting.
    pub missed: u64,
    /// Samples below zero: the work started before its release.
    pub early: u64,
    /// Smallest sample, exact.
    pub min: Option<i64>,
    /// Mean, from integer sums.
    pub avg: Option<f64>,
    /// Largest sample, exact.
    pub max: Option<i64>,
    /// Population standard deviation, from integer sums.
    pub stddev: Option<f64>,
    /// Median.
    pub p50: Option<i64>,
    /// 99 % quantile.
    pub p99: Option<i64>,
    /// 99.9 % quantile.
    pub p999: Option<i64>,
    /// 99.99 % quantile.
    pub p9999: Option<i64>,
    /// The same quantiles with every missed release counted with its actual delay.
    pub corrected: Corrected,
}

/// Quantiles of the corrected distribution (METHODOLOGY.md, "Corrected distribution").
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Corrected {
    /// Values: samples and missed periods.
    pub samples: u64,
    /// Median.
    pub p50: Option<i64>,
    /// 99 % quantile.
    pub p99: Option<i64>,
    /// 99.9 % quantile.
    pub p999: Option<i64>,
    /// 99.99 % quantile.
    pub p9999: Option<i64>,
    /// Whether part of it was expanded from histogram bins (under 0.8 % wide) because the late
    /// ring was full.
    #[serde(default)]
    pub from_bins: bool,
}

/// The form of [`Stats`] in `run.json` whose keys name nanoseconds.
pub(super) mod in_ns {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{Corrected, Stats};

    #[derive(Serialize, Deserialize)]
    #[serde(remote = "Stats")]
    struct StatsNs {
        scheduled: u64,
        samples: u64,
        missed: u64,
        early: u64,
        #[serde(rename = "min_ns")]
        min: Option<i64>,
        #[serde(rename = "avg_ns")]
        avg: Option<f64>,
        #[serde(rename = "max_ns")]
        max: Option<i64>,
        #[serde(rename = "stddev_ns")]
        stddev: Option<f64>,
        #[serde(rename = "p50_ns")]
        p50: Option<i64>,
        #[serde(rename = "p99_ns")]
        p99: Option<i64>,
        #[serde(rename = "p999_ns")]
        p999: Option<i64>,
        #[serde(rename = "p9999_ns")]
        p9999: Option<i64>,
        #[serde(with = "CorrectedNs")]
        corrected: Corrected,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(remote = "Corrected")]
    struct CorrectedNs {
        samples: u64,
        #[serde(rename = "p50_ns")]
        p50: Option<i64>,
        #[serde(rename = "p99_ns")]
        p99: Option<i64>,
        #[serde(rename = "p999_ns")]
        p999: Option<i64>,
        #[serde(rename = "p9999_ns")]
        p9999: Option<i64>,
        #[serde(default)]
        from_bins: bool,
    }

    pub fn serialize<S: Serializer>(stats: &Stats, to: S) -> Result<S::Ok, S::Error> {
        StatsNs::serialize(stats, to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Stats, D::Error> {
        StatsNs::deserialize(from)
    }
}
