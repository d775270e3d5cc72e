//! Several runs of each kernel: estimates of how much later one is than the first.

use std::collections::BTreeMap;

use serde::Serialize;

use super::episodes::{self, EpisodeRates};
use super::groups::{KernelRuns, side_noun};
use super::matching::Match;
use crate::random::Random;
use crate::schema::{Run, Stats};
use crate::stats::{SPREADS_MAY_DIFFER, ShiftTest, Shifts, least_p, replicates_needed};

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
    /// The same for how often something was late, of the cells that have a deadline.
    pub episodes: Vec<EpisodeRates>,
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
    /// Both, as they are shown.
    pub const ALL: [Self; 2] = [Self::P999Ns, Self::MaxNs];

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
    /// What the interval, the bound and p are by.
    pub method: Method,
    /// Interval of that median; none if there are too few runs for one.
    pub interval: Option<[f64; 2]>,
    /// Upper bound of the ratio by the same method, one-sided.
    pub upper: Option<f64>,
    /// Percentile bootstrap over runs of the ratio of geometric means: a second
    /// opinion, too narrow for few runs.
    pub bootstrap: Option<[f64; 2]>,
    /// Two-sided p by the same method; ties count as no evidence. Exact if the kernels do not
    /// differ at all and their runs have at most a million arrangements.
    pub p: Option<f64>,
    /// The same, adjusted over all cells and kernels for each quantity (Holm).
    pub p_adjusted: Option<f64>,
}

/// What an interval of a ratio and its p are by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Rank sum, without approximation: it holds if the kernels' runs differ by a factor only.
    RankSum,
    /// Brunner and Munzel, by permutation: the kernels' runs may differ in their spread too.
    BrunnerMunzel,
}

impl Method {
    /// By the numbers of runs alone.
    pub(super) const fn of(runs: [usize; 2]) -> Self {
        if runs[0] < SPREADS_MAY_DIFFER || runs[1] < SPREADS_MAY_DIFFER {
            Self::RankSum
        } else {
            Self::BrunnerMunzel
        }
    }
}

/// The test of each pair of numbers of runs: its distribution takes longer than its use.
#[derive(Default)]
pub(super) struct Tests {
    known: BTreeMap<(usize, usize), ShiftTest>,
}

impl Tests {
    /// What the ratio of `b` to `a` may be, on logarithms; none with fewer than two runs of one.
    pub(super) fn shifts(&mut self, a: &[f64], b: &[f64]) -> Option<Shifts> {
        let (m, n) = (a.len(), b.len());
        if m < 2 || n < 2 {
            return None;
        }
        let test = self.known.entry((m, n)).or_insert_with(|| ShiftTest::of(m, n));
        Shifts::of(a, b, test)
    }
}

/// The logarithms of values above zero; others have none.
#[allow(clippy::cast_precision_loss, reason = "a logarithm needs no 16th digit")]
pub(super) fn logs(values: impl Iterator<Item = i64>) -> Vec<f64> {
    values.filter(|value| *value > 0).map(|value| (value as f64).ln()).collect()
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
        return (None, vec![one_side(runs, groups)]);
    }
    let repeated: Vec<(usize, &KernelRuns)> =
        (1..).zip(others).filter(|(_, side)| side.runs.len() > 1).collect();
    if base.runs.len() < 2 || repeated.is_empty() {
        return (None, vec![one_pair(runs, groups)]);
    }
    let (mut estimates, mut tests) = (Vec::new(), Tests::default());
    for cell in
        cells.iter().filter(|cell| cell.cells.iter().all(|found| found.2.latency().is_some()))
    {
        for (group, other) in &repeated {
            for quantity in Measure::ALL {
                estimates.push(of_cell(cell, quantity, base, (*group, other), &mut tests));
            }
        }
    }
    for quantity in Measure::ALL {
        let mut family: Vec<_> =
            estimates.iter_mut().filter(|e| e.quantity == quantity && e.p.is_some()).collect();
        let adjusted = holm(family.iter().map(|estimate| estimate.p.unwrap_or(1.0)));
        for (estimate, p) in family.iter_mut().zip(adjusted) {
            estimate.p_adjusted = Some(p);
        }
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
        let name = match &side.side {
            Some(name) if side_noun(groups) == "side" => name.clone(),
            _ => format!("Linux {} ({})", side.kernel, side.preemption),
        };
        notes.push(format!(
            "only one run of {name}: it is shown next to the others, but nothing can be estimated \
             from it"
        ));
    }
    let other = if let [only] = others { Some(only.clone()) } else { None };
    let episodes = episodes::rates(cells, base, &repeated, CONFIDENCE);
    let base = base.clone();
    let found = Replicates { base, other, confidence: CONFIDENCE, estimates, episodes };
    // Costs have their intervals of their own.
    (Some(found).filter(|found| !found.estimates.is_empty()), notes)
}

/// Says so if no p could reach the level, whatever the runs had measured.
fn no_small_p(estimates: &[Estimate]) -> Option<String> {
    let family = estimates.len() / Measure::ALL.len();
    let level = 1.0 - CONFIDENCE;
    let enough = replicates_needed(family, level)?;
    if estimates.is_empty() || estimates.iter().any(|e| is_small(family, e.runs, level)) {
        return None;
    }
    Some(format!(
        "with so few runs, none of {family} comparisons can reach p < {level:.2} after Holm's \
         correction: {enough} runs of each kernel are enough"
    ))
}

#[allow(clippy::cast_precision_loss, reason = "cells and kernels are few")]
fn is_small(family: usize, [m, n]: [usize; 2], level: f64) -> bool {
    family as f64 * least_p(m, n) <= level
}

/// Why nothing is estimated from runs of warm boards.
pub(super) const ONE_BOOT: &str = "the runs of a warm board go on from one boot of its kernel: they count as \
     one boot, so nothing can be estimated from their spread (without --warm each is a boot)";

fn one_side(runs: &[&Run], groups: &[KernelRuns]) -> String {
    if runs.len() == 1 {
        "one run: there is nothing to compare it with".to_owned()
    } else {
        let all = if runs.len() == 2 { "both" } else { "all" };
        let (of, others) = match groups.iter().any(|group| group.whole) {
            true => ("one side", "sides"),
            false => ("the same kernel", "kernels"),
        };
        format!("{all} runs are of {of}; their spread is the noise floor for comparing {others}")
    }
}

/// Why one run of a side is too few.
pub(super) fn one_pair(runs: &[&Run], groups: &[KernelRuns]) -> String {
    if runs.iter().all(|run| run.board.is_deterministic()) {
        return "deterministic virtual boards: one run is the whole population of its phase, so \
                the figures do differ, but another phase may reverse their order; for replicates, \
                vary the phase or the seed"
            .to_owned();
    }
    let noun = side_noun(groups);
    format!(
        "one run of a {noun}: one pair proves nothing about the {noun}s, however many samples it \
         has; repeat the run, not the sample: at least 8 runs of each {noun}, in turn (ABBA), with \
         a reboot in between if possible"
    )
}

fn of_cell(
    cell: &Match<'_>,
    quantity: Measure,
    base: &KernelRuns,
    (group, other): (usize, &KernelRuns),
    tests: &mut Tests,
) -> Estimate {
    let of = |side: &KernelRuns| {
        let mine = cell.cells.iter().filter(|(run, ..)| side.runs.contains(run));
        logs(mine.filter_map(|(.., cell)| quantity.of(&cell.latency()?.stats)))
    };
    let (a, b) = (of(base), of(other));
    let runs = [a.len(), b.len()];
    let shifts = tests.shifts(&a, &b);
    let shifts = shifts.as_ref();
    let alpha = 1.0 - CONFIDENCE;
    Estimate {
        key: cell.key.clone(),
        group,
        quantity,
        runs,
        ratio: shifts.map(|shifts| shifts.estimate().exp()),
        method: Method::of(runs),
        interval: shifts.and_then(|shifts| Some(shifts.interval(alpha)?.map(f64::exp))),
        upper: shifts.and_then(|shifts| Some(shifts.interval(2.0 * alpha)?[1].exp())),
        bootstrap: shifts.map(|_| bootstrap(&a, &b)),
        p: shifts.map(|shifts| shifts.p(0.0)),
        p_adjusted: None,
    }
}

/// The p of a family of tests, in their order, adjusted so that the chance of any false rejection
/// is at most the level. S. Holm, Scandinavian Journal of Statistics 6 (1979).
pub(super) fn holm(family: impl Iterator<Item = f64>) -> Vec<f64> {
    let family: Vec<f64> = family.collect();
    let mut order: Vec<usize> = (0..family.len()).collect();
    order.sort_by(|x, y| f64::total_cmp(&family[*x], &family[*y]));
    let mut adjusted = vec![1.0; family.len()];
    let mut least = 0.0_f64;
    for (done, at) in order.into_iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "cells are few")]
        let left = (family.len() - done) as f64;
        least = least.max((family[at] * left).min(1.0));
        adjusted[at] = least;
    }
    adjusted
}

/// One of the values, each equally likely.
fn any(values: &[f64], random: &mut Random) -> f64 {
    let at = usize::try_from(random.below(values.len() as u64));
    at.ok().and_then(|at| values.get(at)).copied().unwrap_or(f64::NAN)
}

/// B. Efron, Annals of Statistics 7 (1979): the middle 95 % of the ratio over
/// runs drawn with replacement.
fn bootstrap(a: &[f64], b: &[f64]) -> [f64; 2] {
    let mut random = Random::new(SEED);
    let mut draw = |values: &[f64]| {
        #[allow(clippy::cast_precision_loss, reason = "runs are few")]
        let count = values.len() as f64;
        let sum: f64 = (0..values.len()).map(|_| any(values, &mut random)).sum();
        sum / count
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| draw(b) - draw(a)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    [ratios[tail - 1].exp(), ratios[RESAMPLES - tail].exp()]
}

#[cfg(test)]
mod tests;
