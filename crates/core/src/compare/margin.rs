//! Non-inferiority: whether kernels are shown to be at most some factor worse than the first.

use serde::Serialize;

use super::groups::KernelRuns;
use super::matched::MatchedCell;
use super::replicates::{CONFIDENCE, Measure, Method, ONE_BOOT, Tests, holm, logs, one_pair};
use super::result::Comparison;
use super::row::Row;
use crate::run::LoadedRun;
use crate::schema::Run;
use crate::stats::replicates_needed;

/// The fewest runs of each kernel that are proposed: with fewer, a single run decides on an
/// interval's end.
pub const FEWEST_REPLICATES: usize = 8;

/// More runs than this are not proposed.
const MOST_RUNS: f64 = 10_000.0;

/// Whether all other kernels are shown to be at most `limit` times as late as the first one.
///
/// Not worse: the upper bound is at most `limit` in every cell, both of its 99.9 % quantile and of
/// its maximum. Each must be shown by itself, so the confidence holds for all together without a
/// correction (an intersection-union test; R. L. Berger, Technometrics 24, 1982). Worse: a ratio
/// above `limit` is shown in some cell, where that is one of many tests, after Holm's correction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Margin {
    /// The factor, above 0.
    pub limit: f64,
    /// Confidence of both conclusions, each one-sided.
    pub confidence: f64,
    /// Over all cells.
    pub outcome: Standing,
    /// Why nothing can be estimated from these runs; then there are no cells.
    pub because: Option<String>,
    /// Cell by cell, kernel by kernel.
    pub cells: Vec<MarginCell>,
}

/// How a kernel stands to the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Shown to be at most the limit.
    NotWorse,
    /// Neither is shown.
    Inconclusive,
    /// Shown to be above the limit.
    Worse,
}

/// One quantity of one cell and kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MarginCell {
    /// The cell.
    pub key: String,
    /// The other kernel: an index into [`Comparison::groups`].
    pub group: usize,
    /// The quantity.
    pub quantity: Measure,
    /// How it stands.
    pub outcome: Standing,
    /// Runs of each kernel: base, other.
    pub of: [usize; 2],
    /// Those with a value above zero. With fewer nothing is concluded: which runs lack the
    /// quantity is no chance.
    pub runs: [usize; 2],
    /// What the bounds are by.
    pub method: Method,
    /// As [`super::Estimate::ratio`].
    pub ratio: Option<f64>,
    /// Lower bound of the ratio, one-sided; none if there are too few runs.
    pub lower: Option<f64>,
    /// Upper bound of the ratio, one-sided; none if there are too few runs.
    pub upper: Option<f64>,
    /// One-sided p that the ratio is at most the limit.
    pub p_worse: Option<f64>,
    /// The same, adjusted over all cells, kernels and quantities (Holm).
    pub p_worse_adjusted: Option<f64>,
    /// Without a conclusion: runs of each kernel that would lead to one, roughly, if the ratio and
    /// the spread remain as they are. None if no number would, or none below 10,000.
    pub runs_needed: Option<usize>,
}

/// Judges the runs of a comparison by a factor `limit` (above 0 and finite).
#[must_use]
pub fn not_worse(runs: &[LoadedRun], comparison: &Comparison, limit: f64) -> Margin {
    let records: Vec<&Run> = runs.iter().map(|loaded| &loaded.run).collect();
    let mut margin = Margin {
        limit,
        confidence: CONFIDENCE,
        outcome: Standing::Inconclusive,
        because: nothing_to_estimate(&records, comparison),
        cells: Vec::new(),
    };
    if margin.because.is_some() {
        return margin;
    }
    let mut tests = Tests::default();
    for cell in &comparison.cells {
        for quantity in Measure::ALL.into_iter().filter(|quantity| is_measured(cell, *quantity)) {
            let groups = comparison.groups.iter().enumerate();
            let mut sides =
                groups.map(|(group, runs)| (group, MarginRuns::of(cell, runs, quantity)));
            let Some((_, base)) = sides.next() else { continue };
            margin.cells.extend(sides.map(|(group, other)| {
                let place = MarginPlace { key: &cell.key, group, quantity };
                place.judge([&base, &other], limit, &mut tests)
            }));
        }
    }
    conclude(&mut margin);
    margin
}

fn nothing_to_estimate(runs: &[&Run], comparison: &Comparison) -> Option<String> {
    if runs.iter().any(|run| run.board.is_warm()) {
        return Some(ONE_BOOT.to_owned());
    }
    let groups = &comparison.groups;
    groups.iter().any(|group| group.runs.len() < 2).then(|| one_pair(runs, groups))
}

/// Worse if one is, not worse if all are.
fn conclude(margin: &mut Margin) {
    let alpha = 1.0 - CONFIDENCE;
    let mut tested: Vec<&mut MarginCell> =
        margin.cells.iter_mut().filter(|cell| cell.p_worse.is_some()).collect();
    let adjusted = holm(tested.iter().filter_map(|cell| cell.p_worse));
    for (cell, p) in tested.iter_mut().zip(adjusted) {
        cell.p_worse_adjusted = Some(p);
        if p <= alpha {
            cell.outcome = Standing::Worse;
            cell.runs_needed = None;
        }
    }
    let worst = margin.cells.iter().map(|cell| cell.outcome).max();
    margin.outcome = worst.unwrap_or(Standing::Inconclusive);
}

/// Whether any run has this quantity of the cell: of one that is too short for a quantile, or was
/// skipped everywhere, there is nothing to show.
fn is_measured(cell: &MatchedCell, quantity: Measure) -> bool {
    cell.rows.iter().any(|row| value(row, quantity).is_some())
}

fn value(row: &Row, quantity: Measure) -> Option<i64> {
    match quantity {
        Measure::P999Ns => row.p999_ns,
        Measure::MaxNs => row.max_ns,
    }
}

/// What the runs of one kernel measured.
struct MarginRuns {
    runs: usize,
    logs: Vec<f64>,
}

impl MarginRuns {
    fn of(cell: &MatchedCell, group: &KernelRuns, quantity: Measure) -> Self {
        let rows = cell.rows.iter().filter(|row| group.runs.contains(&row.run));
        Self { runs: group.runs.len(), logs: logs(rows.filter_map(|row| value(row, quantity))) }
    }
}

/// Which of the judgements it is.
struct MarginPlace<'a> {
    key: &'a str,
    group: usize,
    quantity: Measure,
}

impl MarginPlace<'_> {
    fn judge(&self, [base, other]: [&MarginRuns; 2], limit: f64, tests: &mut Tests) -> MarginCell {
        let (of, runs) = ([base.runs, other.runs], [base.logs.len(), other.logs.len()]);
        let shifts = tests.shifts(&base.logs, &other.logs).filter(|_| of == runs);
        // Both ends of this interval are one-sided bounds.
        let bounds = shifts.as_ref().and_then(|shifts| shifts.interval(2.0 * (1.0 - CONFIDENCE)));
        let limit = limit.ln();
        let is_shown = bounds.is_some_and(|[_, upper]| upper <= limit);
        let needed = || match (&shifts, bounds) {
            (Some(shifts), Some(bounds)) => needed(shifts.estimate(), bounds, limit, runs),
            _ => Some(FEWEST_REPLICATES.max(replicates_needed(1, 1.0 - CONFIDENCE)?)),
        };
        MarginCell {
            key: self.key.to_owned(),
            group: self.group,
            quantity: self.quantity,
            outcome: if is_shown { Standing::NotWorse } else { Standing::Inconclusive },
            of,
            runs,
            method: Method::of(runs),
            ratio: shifts.as_ref().map(|shifts| shifts.estimate().exp()),
            lower: bounds.map(|[lower, _]| lower.exp()),
            upper: bounds.map(|[_, upper]| upper.exp()),
            p_worse: shifts.as_ref().map(|shifts| shifts.p_above(limit)),
            p_worse_adjusted: None,
            runs_needed: if is_shown || of != runs { None } else { needed() },
        }
    }
}

/// How many runs of each kernel bring the bound that lies beyond the limit to it, if the distance
/// between the estimate and its bound goes with one over the root of their number.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rough number of runs"
)]
fn needed(estimate: f64, [lower, upper]: [f64; 2], limit: f64, runs: [usize; 2]) -> Option<usize> {
    let (bound, distance) =
        if estimate <= limit { (upper, limit - estimate) } else { (lower, estimate - limit) };
    let now = runs[0].min(runs[1]) as f64;
    let needed = (now * ((bound - estimate) / distance).powi(2)).ceil();
    (needed < MOST_RUNS)
        .then(|| (needed as usize).max(runs[0].min(runs[1]) + 1).max(FEWEST_REPLICATES))
}

#[cfg(test)]
mod tests;
