//! Several runs of each kernel: estimates of how much later one is than the first.

use serde::Serialize;

use super::groups::KernelRuns;
use super::matching::Match;
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
    pub base: KernelRuns,
    /// The kernel it is compared with, if there is only one; with several, each
    /// estimate says which one it is about.
    pub other: Option<KernelRuns>,
    /// Confidence of every interval and bound.
    pub confidence: f64,
    /// For each matched cell and each kernel except the first that has several
    /// runs: the 99.9 % quantile and the maximum.
    pub estimates: Vec<Estimate>,
}

/// Which quantity of a run is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The 99.9 % quantile of the samples.
    P999Ns,
    /// The largest sample.
    MaxNs,
}

impl Measure {
    const ALL: [Self; 2] = [Self::P999Ns, Self::MaxNs];

    fn of(self, stats: &Stats) -> Option<i64> {
        match self {
            Self::P999Ns => stats.p999,
            Self::MaxNs => stats.max,
        }
    }
}

/// The ratio other / base of one quantity of one cell, over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The cell.
    pub key: String,
    /// The other kernel: an index into [`super::Comparison::groups`].
    pub group: usize,
    /// The quantity.
    pub quantity: Measure,
    /// Runs with a value above zero: base, other.
    pub runs: [usize; 2],
    /// Hodges-Lehmann estimate: the median of the ratios of all pairs of runs.
    pub ratio: Option<f64>,
    /// Wilcoxon (rank sum) interval of the ratio, without approximation, valid if the
    /// kernels' runs differ by a factor only; none if there are too few
    /// runs for one.
    pub interval: Option<[f64; 2]>,
    /// Upper bound of the ratio by the same method, one-sided.
    pub upper: Option<f64>,
    /// Percentile bootstrap over runs of the ratio of geometric means: a second
    /// opinion, too narrow for few runs.
    pub bootstrap: Option<[f64; 2]>,
    /// Two-sided p, without approximation, of the rank sum test; ties count as no evidence.
    pub p: Option<f64>,
    /// The same, adjusted over all cells and kernels for each quantity (Holm).
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

/// The estimates, if the runs allow them, and notes on them.
pub(super) fn estimate(
    runs: &[&Run],
    groups: &[KernelRuns],
    cells: &[Match<'_>],
) -> (Option<Replicates>, Vec<String>) {
    let [base, others @ ..] = groups else {
        return (None, Vec::new());
    };
    if runs.iter().any(|run| run.board.is_warm()) {
        return (None, vec![ONE_BOOT.to_owned()]);
    }
    if others.is_empty() {
        return (None, vec![one_kernel(runs)]);
    }
    let repeated: Vec<(usize, &KernelRuns)> =
        (1..).zip(others).filter(|(_, side)| side.runs.len() > 1).collect();
    if base.runs.len() < 2 || repeated.is_empty() {
        return (None, vec![one_pair(runs)]);
    }
    let mut estimates = Vec::new();
    for cell in
        cells.iter().filter(|cell| cell.cells.iter().all(|found| found.2.latency().is_some()))
    {
        for (group, other) in &repeated {
            let of = |quantity| of_cell(cell, quantity, base, (*group, other));
            estimates.extend(Measure::ALL.map(of));
        }
    }
    for quantity in Measure::ALL {
        holm(estimates.iter_mut().filter(|e| e.quantity == quantity));
    }
    let mut notes = Vec::new();
    if estimates.iter().any(|e| e.interval.is_none()) {
        notes.push(
            "some cells have too few runs for a 95 % interval: 4 of each kernel are enough"
                .to_owned(),
        );
    } else {
        notes.extend(no_small_p(&estimates));
    }
    for side in others.iter().filter(|side| side.runs.len() == 1) {
        notes.push(format!(
            "only one run of Linux {} ({}): it is shown next to the others, but nothing can be \
             estimated from it",
            side.kernel, side.preemption
        ));
    }
    let other = if let [only] = others { Some(only.clone()) } else { None };
    (Some(Replicates { base: base.clone(), other, confidence: CONFIDENCE, estimates }), notes)
}

/// Says so if no p could reach the level, whatever the runs had measured.
fn no_small_p(estimates: &[Estimate]) -> Option<String> {
    #[allow(clippy::cast_precision_loss, reason = "cells and kernels are few")]
    let family = (estimates.len() / Measure::ALL.len()) as f64;
    let level = 1.0 - CONFIDENCE;
    let is_small = |m, n| family * least_p(m, n) <= level;
    if estimates.iter().any(|e| is_small(e.runs[0], e.runs[1])) {
        return None;
    }
    let enough = (2..64).find(|n| is_small(*n, *n))?;
    Some(format!(
        "with so few runs, none of {family} comparisons can reach p < {level:.2} after Holm's \
         correction: {enough} runs of each kernel are enough"
    ))
}

/// The p of runs of two kernels that do not overlap: twice one of all arrangements.
#[allow(clippy::cast_precision_loss, reason = "runs are few")]
fn least_p(m: usize, n: usize) -> f64 {
    (1..=n).fold(2.0, |p, i| p * i as f64 / (m + i) as f64)
}

/// Why nothing is estimated from runs of warm boards.
const ONE_BOOT: &str = "the runs of a warm board go on from one boot of its kernel: they count as \
     one boot, so nothing can be estimated from their spread (without --warm each is a boot)";

fn one_kernel(runs: &[&Run]) -> String {
    if runs.len() == 1 {
        "one run: there is nothing to compare it with".to_owned()
    } else {
        let all = if runs.len() == 2 { "both" } else { "all" };
        format!(
            "{all} runs are of the same kernel; their spread is the noise floor for comparing \
             kernels"
        )
    }
}

fn one_pair(runs: &[&Run]) -> String {
    if runs.iter().all(|run| run.board.is_deterministic()) {
        return "deterministic virtual boards: one run is the whole population of its phase, so \
                the figures do differ, but another phase may reverse their order; for replicates, \
                vary the phase or the seed"
            .to_owned();
    }
    "one run of a kernel: one pair proves nothing about the kernels, however many samples it has; \
     repeat the run, not the sample: at least 4 runs of each kernel, in turn (ABBA), with a reboot \
     in between if possible"
        .to_owned()
}

fn of_cell(
    cell: &Match<'_>,
    quantity: Measure,
    base: &KernelRuns,
    (group, other): (usize, &KernelRuns),
) -> Estimate {
    let logs = |side: &KernelRuns| -> Vec<f64> {
        let mine = cell.cells.iter().filter(|(run, ..)| side.runs.contains(run));
        #[allow(clippy::cast_precision_loss, reason = "a logarithm needs no 16th digit")]
        mine.filter_map(|(.., cell)| quantity.of(&cell.latency()?.stats))
            .filter(|value| *value > 0)
            .map(|value| (value as f64).ln())
            .collect()
    };
    let (a, b) = (logs(base), logs(other));
    let mut estimate = Estimate {
        key: cell.key.clone(),
        group,
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
    // How many shifts lie outside the interval at each end.
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
