//! A cell of one run, as it is set next to the others.

use serde::Serialize;

use crate::schema::{Cell, CellState, Outcome, Stats};

/// What one run measured in a cell. Latencies are in ns and absent as in
/// [`crate::schema::Stats`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Index of the run.
    pub run: usize,
    /// Index of the cell in the run.
    pub cell: usize,
    /// How the cell stands.
    pub state: CellState,
    /// Its outcome.
    pub outcome: Outcome,
    /// Largest sample.
    pub max_ns: Option<i64>,
    /// 99.9 % quantile.
    pub p999_ns: Option<i64>,
    /// 99 % quantile.
    pub p99_ns: Option<i64>,
    /// Mean.
    pub avg_ns: Option<f64>,
    /// Smallest sample.
    pub min_ns: Option<i64>,
    /// Latencies measured.
    pub samples: u64,
    /// Releases that passed unserved.
    pub missed: u64,
    /// The same, divided by the cell's first row.
    pub ratio: Ratios,
}

/// A row divided by the first row of its cell; absent if one of the two is absent
/// or not above zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Ratios {
    /// Of the largest samples.
    pub max: Option<f64>,
    /// Of the 99.9 % quantiles.
    pub p999: Option<f64>,
    /// Of the 99 % quantiles.
    pub p99: Option<f64>,
    /// Of the means.
    pub avg: Option<f64>,
    /// Of the smallest samples.
    pub min: Option<f64>,
}

impl Row {
    /// What a run measured: the statistics of the primary series, divided by `first`.
    pub(super) fn of(run: usize, cell: usize, from: &Cell, stats: &Stats, first: &Stats) -> Self {
        Self {
            run,
            cell,
            state: from.state,
            outcome: from.verdict.outcome,
            max_ns: stats.max,
            p999_ns: stats.p999,
            p99_ns: stats.p99,
            avg_ns: stats.avg,
            min_ns: stats.min,
            samples: stats.samples,
            missed: stats.missed,
            ratio: Ratios {
                max: ratio(real(stats.max), real(first.max)),
                p999: ratio(real(stats.p999), real(first.p999)),
                p99: ratio(real(stats.p99), real(first.p99)),
                avg: ratio(stats.avg, first.avg),
                min: ratio(real(stats.min), real(first.min)),
            },
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a ratio of latencies needs no 16th digit")]
pub(super) fn real(ns: Option<i64>) -> Option<f64> {
    ns.map(|ns| ns as f64)
}

/// One value over another; none unless both are above zero.
pub(super) fn ratio(value: Option<f64>, base: Option<f64>) -> Option<f64> {
    let (value, base) = (value?, base?);
    (value > 0.0 && base > 0.0).then(|| value / base)
}
