//! Two kernels, several runs of each: how much longer one is late than the other.

use serde::Serialize;

use super::Match;
use crate::schema::{Run, Stats};

/// Confidence of the intervals, two-sided, and of the upper bound, one-sided.
pub const CONFIDENCE: f64 = 0.95;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 2_000;

/// Start of its random numbers: any constant, so that the same runs give the
/// same interval.
const SEED: u64 = 0x5EED;

/// Estimates over replicates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Replicates {
    /// The kernel of the first run.
    pub base: Side,
    /// The kernel it is compared with.
    pub other: Side,
    /// Confidence of every interval and bound.
    pub confidence: f64,
    /// For each matched cell the 99.9 % quantile and the maximum.
    pub estimates: Vec<Estimate>,
}

/// The runs of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// `uname -r`.
    pub kernel: String,
    /// Preemption model.
    pub preemption: String,
    /// Indices of its runs.
    pub runs: Vec<usize>,
}

/// What of a run is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// The 99.9 % quantile of the samples.
    P999Ns,
    /// The largest sample.
    MaxNs,
}

impl Quantity {
    const ALL: [Self; 2] = [Self::P999Ns, Self::MaxNs];

    fn of(self, stats: &Stats) -> Option<i64> {
        match self {
            Self::P999Ns => stats.p999_ns,
            Self::MaxNs => stats.max_ns,
        }
    }
}

/// The ratio other / base of one quantity of one cell, over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The cell.
    pub key: String,
    /// The quantity.
    pub quantity: Quantity,
    /// Runs with a value above zero: base, other.
    pub runs: [usize; 2],
    /// Hodges-Lehmann estimate: the median of the ratios of all pairs of runs.
    pub ratio: Option<f64>,
    /// Wilcoxon (rank sum) interval of the ratio, exact; none where too few runs
    /// could ever give one.
    pub interval: Option<[f64; 2]>,
    /// Upper bound of the ratio by the same method, one-sided.
    pub upper: Option<f64>,
    /// Percentile bootstrap over runs of the ratio of geometric means: a second
    /// opinion, too narrow for few runs.
    pub bootstrap: Option<[f64; 2]>,
    /// Two-sided exact p of the rank sum test; ties count as no evidence.
    pub p: Option<f64>,
    /// The same, adjusted over the cells for each quantity (Holm).
    pub p_adjusted: Option<f64>,
}

impl Estimate {
    /// Whether the other kernel is shown to be at most a share `delta` worse
    /// than the base (non-inferiority): the upper bound of the ratio is at most
    /// 1 + `delta`. None without a bound.
    #[must_use]
    pub fn is_not_worse(&self, delta: f64) -> Option<bool> {
        self.upper.map(|upper| upper <= 1.0 + delta)
    }
}

/// The estimates, where the runs allow them, and what to say of them.
pub(super) fn estimate(runs: &[&Run], cells: &[Match<'_>]) -> (Option<Replicates>, Option<String>) {
    let sides = sides(runs);
    let (base, other) = match sides.as_slice() {
        [] => return (None, None),
        [_] => return (None, Some(one_kernel(runs))),
        [base, other] => (base, other),
        more => {
            let note = format!(
                "{} kernels: ratios only; give the runs of two kernels for an interval",
                more.len()
            );
            return (None, Some(note));
        }
    };
    if let Some(side) = sides.iter().find(|side| same_phase(runs, side)) {
        let note = format!(
            "deterministic virtual boards: a run is the whole population of its phase, and another \
             run of {} with the same phase adds nothing; vary the phase for replicates",
            side.kernel
        );
        return (None, Some(note));
    }
    if base.runs.len() < 2 || other.runs.len() < 2 {
        return (None, Some(one_pair(runs)));
    }
    let mut estimates: Vec<_> = cells
        .iter()
        .flat_map(|cell| Quantity::ALL.map(|quantity| of_cell(cell, quantity, base, other)))
        .collect();
    for quantity in Quantity::ALL {
        holm(estimates.iter_mut().filter(|e| e.quantity == quantity));
    }
    let note = estimates.iter().any(|e| e.interval.is_none()).then(|| {
        "too few runs for an interval at 95 % in some cells: 4 of each kernel are enough".to_owned()
    });
    let replicates =
        Replicates { base: base.clone(), other: other.clone(), confidence: CONFIDENCE, estimates };
    (Some(replicates), note)
}

fn one_kernel(runs: &[&Run]) -> String {
    if runs.len() == 1 {
        "one run: there is nothing to compare it with".to_owned()
    } else {
        "runs of one kernel: how far they lie apart is how far two runs of different kernels \
         lie apart by chance"
            .to_owned()
    }
}

fn one_pair(runs: &[&Run]) -> String {
    if runs.iter().all(|run| run.board.kind == "virtual") {
        return "deterministic virtual boards: one run is the whole population of its phase, so \
                that the figures differ for certain, but another phase may turn them round; vary \
                the phase for replicates"
            .to_owned();
    }
    "one run of a kernel: the samples differ, and one pair proves nothing about the kernels; the \
     run, not the sample, is what must be repeated: at least 4 runs of each, in turn (ABBA), \
     rebooted in between where possible"
        .to_owned()
}

/// The runs by kernel, in the order of their first runs; a run that is given
/// twice is counted once.
fn sides(runs: &[&Run]) -> Vec<Side> {
    let identity = |run: &Run| {
        let kernel = &run.kernel;
        (
            kernel.release.clone(),
            kernel.version.clone(),
            kernel.preemption.clone(),
            kernel.command_line.clone(),
        )
    };
    let mut sides: Vec<Side> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let known = sides.iter_mut().find(|side| identity(runs[side.runs[0]]) == identity(run));
        let Some(side) = known else {
            sides.push(Side {
                kernel: run.kernel.release.clone(),
                preemption: run.kernel.preemption.clone(),
                runs: vec![number],
            });
            continue;
        };
        if side.runs.iter().all(|r| runs[*r].run_id != run.run_id) {
            side.runs.push(number);
        }
    }
    sides
}

/// Whether two of a side's runs are one deterministic run, made twice.
fn same_phase(runs: &[&Run], side: &Side) -> bool {
    let virtual_runs = side.runs.iter().map(|r| runs[*r]);
    let mut phases: Vec<_> =
        virtual_runs.filter(|run| run.board.kind == "virtual").map(|run| run.phase_ns).collect();
    let made = phases.len();
    phases.sort_unstable();
    phases.dedup();
    phases.len() < made
}

fn of_cell(cell: &Match<'_>, quantity: Quantity, base: &Side, other: &Side) -> Estimate {
    let logs = |side: &Side| -> Vec<f64> {
        let mine = cell.cells.iter().filter(|(run, _)| side.runs.contains(run));
        #[allow(clippy::cast_precision_loss, reason = "a logarithm needs no 16th digit")]
        mine.filter_map(|(_, cell)| quantity.of(&cell.stats))
            .filter(|value| *value > 0)
            .map(|value| (value as f64).ln())
            .collect()
    };
    let (a, b) = (logs(base), logs(other));
    let mut estimate = Estimate {
        key: cell.key.clone(),
        quantity,
        runs: [a.len(), b.len()],
        ratio: None,
        interval: None,
        upper: None,
        bootstrap: None,
        p: None,
        p_adjusted: None,
    };
    if a.len() < 2 || b.len() < 2 {
        return estimate;
    }
    let mut shifts: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
    shifts.sort_unstable_by(f64::total_cmp);
    let cdf = rank_sum_cdf(a.len(), b.len());
    let alpha = 1.0 - CONFIDENCE;
    // As many shifts as this lie outside the interval at each end.
    let outside = |tail: f64| cdf.iter().take_while(|p| **p <= tail).count();
    let last = shifts.len();
    estimate.ratio = Some(median(&shifts).exp());
    let cut = outside(alpha / 2.0);
    estimate.interval = (cut > 0).then(|| [shifts[cut - 1].exp(), shifts[last - cut].exp()]);
    let cut = outside(alpha);
    estimate.upper = (cut > 0).then(|| shifts[last - cut].exp());
    estimate.bootstrap = Some(bootstrap(&a, &b));
    estimate.p = Some(rank_sum_p(&shifts, &cdf));
    estimate
}

fn median(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// P(U <= u), u from 0 to m n, of the rank sum statistic without a difference:
/// exact, by the recursion of H. B. Mann, D. R. Whitney, Annals of Mathematical
/// Statistics 18 (1947), on probabilities, which neither overflow nor cancel.
fn rank_sum_cdf(m: usize, n: usize) -> Vec<f64> {
    let size = m * n + 1;
    let start = || {
        let mut only_zero = vec![0.0; size];
        only_zero[0] = 1.0;
        only_zero
    };
    let mut row: Vec<Vec<f64>> = (0..=n).map(|_| start()).collect();
    for i in 1..=m {
        let mut next = vec![start()];
        for j in 1..=n {
            #[allow(clippy::cast_precision_loss, reason = "runs are few")]
            let share = i as f64 / (i + j) as f64;
            let cell = (0..size).map(|u| {
                let above = if u >= j { row[j][u - j] } else { 0.0 };
                share * above + (1.0 - share) * next[j - 1][u]
            });
            let cell = cell.collect();
            next.push(cell);
        }
        row = next;
    }
    let mut sum = 0.0;
    row[n]
        .iter()
        .map(|p| {
            sum += p;
            sum
        })
        .collect()
}

fn rank_sum_p(shifts: &[f64], cdf: &[f64]) -> f64 {
    let above = shifts.iter().filter(|shift| **shift > 0.0).count();
    let below = shifts.iter().filter(|shift| **shift < 0.0).count();
    // P(U >= u) = P(U <= mn - u)
    (2.0 * cdf[shifts.len() - above.max(below)]).min(1.0)
}

/// Adjusts the p of a family of tests. S. Holm, Scandinavian Journal of
/// Statistics 6 (1979).
fn holm<'a>(family: impl Iterator<Item = &'a mut Estimate>) {
    let mut family: Vec<_> = family.filter(|e| e.p.is_some()).collect();
    family.sort_by(|x, y| f64::total_cmp(&x.p.unwrap_or(1.0), &y.p.unwrap_or(1.0)));
    let count = family.len();
    let mut least = 0.0_f64;
    for (done, estimate) in family.into_iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "cells are few")]
        let left = (count - done) as f64;
        least = least.max((estimate.p.unwrap_or(1.0) * left).min(1.0));
        estimate.p_adjusted = Some(least);
    }
}

/// B. Efron, Annals of Statistics 7 (1979): the middle 95 % of the ratio over
/// runs drawn with replacement.
fn bootstrap(a: &[f64], b: &[f64]) -> [f64; 2] {
    let mut state = SEED;
    let mut draw = |values: &[f64]| {
        #[allow(clippy::cast_precision_loss, reason = "runs are few")]
        let count = values.len() as f64;
        let sum: f64 = values.iter().map(|_| values[below(&mut state, values.len())]).sum();
        sum / count
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| draw(b) - draw(a)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    [ratios[tail - 1].exp(), ratios[RESAMPLES - tail].exp()]
}

/// A random number below `limit`. G. L. Steele et al., SplitMix64, OOPSLA 2014.
fn below(state: &mut u64, limit: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    let scaled = (u128::from(z) * limit as u128) >> 64;
    usize::try_from(scaled).unwrap_or(0)
}

#[cfg(test)]
mod tests;
