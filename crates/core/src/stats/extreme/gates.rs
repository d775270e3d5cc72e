//! What must hold before a tail is extrapolated. Each gate says in a sentence why it is closed.

use super::goodness::{anderson_darling, forward_stop, p_value};
use super::pareto::{Excesses, ONE_SIDED_95, Pareto, TWO_SIDED_95};
use super::peaks::{Peaks, Seconds};
use crate::stats::bounds::{clopper_pearson_lower, clopper_pearson_upper, real};
use crate::units::{exact_duration, grouped, human_ns};

/// The least number of peaks that a distribution is fitted to.
pub const LEAST_PEAKS: usize = 200;

/// The times of the run's length in which the level is exceeded once on average.
pub const HORIZON: u64 = 10;

/// The share of seconds above the lowest threshold.
const LARGEST_SHARE: f64 = 0.1;

/// What that share is multiplied by from one threshold to the next.
const NEXT_SHARE: f64 = 0.8;

/// The least number of peaks above the highest threshold that stability is tested with.
const LEAST_HIGH_PEAKS: usize = 30;

/// Fewer cells tell nothing of a shape.
const LEAST_CELLS: usize = 5;

/// The share of thresholds that ForwardStop may reject in vain.
const FALSE_DISCOVERY_RATE: f64 = 0.1;

/// Seconds whose maxima are compared as one, at least, so that clusters do not matter to tests that
/// assume independence, and the number of such groups at most.
const GROUP: usize = 10;
const GROUPS: usize = 200;

/// Two-sided 1 % of the normal distribution.
const NORMAL_99: f64 = 2.575_829;

/// 1 % of Kolmogorov's distribution (Smirnov, Ann. Math. Statist. 19, 1948).
const KOLMOGOROV_99: f64 = 1.627_624;

/// Peaks of the first half above the level whose exceedances are counted in the second.
const PREDICTED: f64 = 20.0;

/// The probability that the second half's largest is above the level it is compared with.
const SURPRISE: f64 = 0.05;

/// A condition of an extrapolation, in the order in which they are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// Enough clusters.
    Peaks,
    /// Values finer than the tail.
    Resolution,
    /// The same distribution over the whole run.
    Stationarity,
    /// A threshold above which the distribution fits.
    Fit,
    /// The same shape and level above higher thresholds.
    Stability,
    /// The second half as the first half has it.
    Prediction,
}

impl Gate {
    /// All, in order.
    pub const ALL: [Self; 6] = [
        Self::Peaks,
        Self::Resolution,
        Self::Stationarity,
        Self::Fit,
        Self::Stability,
        Self::Prediction,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Peaks => "peaks",
            Self::Resolution => "resolution",
            Self::Stationarity => "stationarity",
            Self::Fit => "fit",
            Self::Stability => "stability",
            Self::Prediction => "prediction",
        }
    }
}

/// Why there is no number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The gate that is closed, the first one.
    pub gate: Gate,
    /// Why, in a sentence without an end.
    pub sentence: String,
}

fn refuse<T>(gate: Gate, sentence: String) -> Result<T, Refusal> {
    Err(Refusal { gate, sentence })
}

/// A threshold and the distribution above it.
#[derive(Debug, Clone)]
pub(super) struct Tail {
    pub peaks: Peaks,
    pub excesses: Excesses,
    pub fit: Pareto,
}

impl Tail {
    pub(super) fn of(peaks: Peaks) -> Option<Self> {
        let excesses = peaks.excesses().filter(|all| all.cells().len() >= LEAST_CELLS)?;
        let fit = excesses.fit();
        Some(Self { peaks, excesses, fit })
    }

    /// The number of clusters of which one is above the level that is asked for.
    pub(super) fn one_in(&self) -> f64 {
        self.peaks.begun * real(HORIZON)
    }
}

/// The tail above the lowest threshold that passes all gates.
pub(super) fn passed(seconds: &Seconds) -> Result<Tail, Refusal> {
    let (low, high) = thresholds(seconds)?;
    let mut tails = Vec::new();
    for peaks in low {
        let Some(tail) = Tail::of(peaks) else { break };
        tails.push(tail);
    }
    if tails.is_empty() {
        let step = exact_duration(seconds.step());
        let sentence = format!("values are multiples of {step}, too coarse for the tail");
        return refuse(Gate::Resolution, sentence);
    }
    stationary(seconds.maxima())?;
    let p_values: Vec<_> = tails
        .iter()
        .map(|tail| p_value(anderson_darling(&tail.excesses, &tail.fit), tail.fit.shape))
        .collect();
    let chosen = fitting(&p_values)?;
    let higher = tails.split_off(chosen + 1);
    let tail = tails.swap_remove(chosen);
    let higher = higher.into_iter().chain(high.into_iter().map_while(Tail::of));
    for other in higher {
        stable(&tail, &other)?;
    }
    predicted(seconds, tail.peaks.threshold)?;
    Ok(tail)
}

/// The clusters above thresholds that ascend: those that are enough for a fit, and those that are
/// enough for a comparison.
fn thresholds(seconds: &Seconds) -> Result<(Vec<Peaks>, Vec<Peaks>), Refusal> {
    let mut sorted = seconds.maxima().to_vec();
    sorted.sort_unstable();
    let (mut low, mut high): (Vec<Peaks>, Vec<Peaks>) = (Vec::new(), Vec::new());
    let mut share = LARGEST_SHARE;
    let mut last = i64::MIN;
    let mut most = 0;
    loop {
        let threshold = seconds.threshold(&sorted, share);
        share *= NEXT_SHARE;
        if threshold == last {
            // Nothing lies above the largest one: the share will select no second.
            if seconds.peaks(threshold).len() < LEAST_HIGH_PEAKS || share < 1e-12 {
                break;
            }
            continue;
        }
        last = threshold;
        let peaks = seconds.peaks(threshold);
        most = most.max(peaks.len());
        if peaks.len() < LEAST_HIGH_PEAKS {
            break;
        }
        (if peaks.len() < LEAST_PEAKS { &mut high } else { &mut low }).push(peaks);
    }
    if low.is_empty() {
        let sentence = format!(
            "{} clusters of seconds lie above the lowest threshold (at most a tenth of all seconds), \
             and {LEAST_PEAKS} are needed: measure for an hour or longer",
            grouped(most as u64)
        );
        return refuse(Gate::Peaks, sentence);
    }
    Ok((low, high))
}

/// Whether the maxima neither drift nor differ between the halves of the run: Mann and Kendall's
/// test of trend (Kendall, "Rank Correlation Methods", 1975, ties included) and that of Kolmogorov
/// and Smirnov, each at 1 %.
pub(super) fn stationary(maxima: &[i64]) -> Result<(), Refusal> {
    let group = GROUP.max(maxima.len().div_ceil(GROUPS));
    let groups: Vec<i64> =
        maxima.chunks_exact(group).filter_map(|chunk| chunk.iter().max().copied()).collect();
    let z = mann_kendall(&groups);
    if z.abs() > NORMAL_99 {
        let way = if z > 0.0 { "rise" } else { "fall" };
        let sentence = format!("the maxima {way} over the run (Mann-Kendall z {z:.1})");
        return refuse(Gate::Stationarity, sentence);
    }
    let (first, second) = groups.split_at(groups.len() / 2);
    let distance = kolmogorov_smirnov(first, second);
    let (n, m) = (real(first.len() as u64), real(second.len() as u64));
    let limit = KOLMOGOROV_99 * ((n + m) / (n * m)).sqrt();
    if distance > limit {
        let sentence = format!(
            "the maxima of the first and the second half differ (Kolmogorov-Smirnov D {distance:.2}, \
             at most {limit:.2})"
        );
        return refuse(Gate::Stationarity, sentence);
    }
    Ok(())
}

/// Mann and Kendall's statistic, normal with variance 1 if there is no trend.
pub(super) fn mann_kendall(values: &[i64]) -> f64 {
    let mut score = 0_i64;
    for (i, one) in values.iter().enumerate() {
        for other in &values[i + 1..] {
            score += other.cmp(one) as i64;
        }
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let term = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let ties = sorted.chunk_by(|a, b| a == b).map(|tied| term(real(tied.len() as u64)));
    let variance = (term(real(values.len() as u64)) - ties.sum::<f64>()) / 18.0;
    let distance = real(score.unsigned_abs().saturating_sub(1));
    if variance > 0.0 { distance.copysign(real_sign(score)) / variance.sqrt() } else { 0.0 }
}

fn real_sign(score: i64) -> f64 {
    if score < 0 { -1.0 } else { 1.0 }
}

/// The largest distance of two empirical distribution functions.
pub(super) fn kolmogorov_smirnov(first: &[i64], second: &[i64]) -> f64 {
    let share = |values: &[i64], limit: i64| {
        let at_most = values.iter().filter(|value| **value <= limit).count();
        real(at_most as u64) / real(values.len().max(1) as u64)
    };
    let all = first.iter().chain(second);
    all.map(|x| (share(first, *x) - share(second, *x)).abs()).fold(0.0, f64::max)
}

/// The first of the thresholds that is not rejected by these p-values, if fewer than a third of
/// them are rejected: a mixture of tails fits above high thresholds for no other reason than that
/// few peaks are left there.
pub(super) fn fitting(p_values: &[f64]) -> Result<usize, Refusal> {
    let rejected = forward_stop(p_values, FALSE_DISCOVERY_RATE);
    if rejected * 3 < p_values.len() {
        return Ok(rejected);
    }
    let sentence = format!(
        "no generalised Pareto distribution fits above the lowest {rejected} of {} thresholds with \
         {LEAST_PEAKS} peaks or more (Anderson-Darling, ForwardStop at {FALSE_DISCOVERY_RATE})",
        p_values.len()
    );
    refuse(Gate::Fit, sentence)
}

/// Whether shape and level of a tail are those above a higher threshold: not outside of the 95 %
/// intervals there.
pub(super) fn stable(tail: &Tail, higher: &Tail) -> Result<(), Refusal> {
    let above = higher.peaks.threshold.abs_diff(tail.peaks.threshold);
    let level = tail.fit.level(tail.one_in()) - real(above);
    let what = if higher.excesses.shape_deviance(&higher.fit, tail.fit.shape) > TWO_SIDED_95 {
        "shape"
    } else if level <= 0.0
        || higher.excesses.level_deviance(&higher.fit, level, higher.one_in()) > TWO_SIDED_95
    {
        "level"
    } else {
        return Ok(());
    };
    let sentence = format!(
        "the {what} above {} is not that above {}: the tail changes its form (shape {:.2} and {:.2})",
        human_ns(tail.peaks.threshold),
        human_ns(higher.peaks.threshold),
        tail.fit.shape,
        higher.fit.shape
    );
    refuse(Gate::Stability, sentence)
}

/// Whether the peaks of the first half predict the second: how many exceed a level, by a binomial
/// test at 1 %, and the largest.
pub(super) fn predicted(seconds: &Seconds, threshold: i64) -> Result<(), Refusal> {
    let (all, half) = (seconds.maxima().len(), seconds.maxima().len() / 2);
    let second = seconds.peaks_within(threshold, half, all);
    let largest = second.values.iter().max().copied();
    let first = Tail::of(seconds.peaks_within(threshold, 0, half));
    let (Some(first), Some(largest)) = (first, largest) else {
        let sentence = format!("one half of the run has no tail above {}", human_ns(threshold));
        return refuse(Gate::Prediction, sentence);
    };
    let expected = PREDICTED.min((first.peaks.begun / 4.0).floor()).max(1.0);
    // At a step of the clock, on which nothing lies.
    let step = real(seconds.step());
    let level = (first.fit.level(first.peaks.begun / expected) / step).ceil() * step;
    let above = |value: &i64| real(value.abs_diff(threshold));
    let seen = second.values.iter().filter(|value| above(value) >= level).count() as u64;
    let expected = whole(first.fit.above(level) * first.peaks.begun);
    let both = seen + expected;
    if clopper_pearson_lower(seen, both, 0.995) > 0.5
        || clopper_pearson_upper(seen, both, 0.995) < 0.5
    {
        let sentence = format!(
            "by its first half {expected} peaks of the second half were to exceed a level that {seen} \
             exceeded"
        );
        return refuse(Gate::Prediction, sentence);
    }
    let one_in = second.begun / SURPRISE;
    if above(&largest) > first.fit.level(one_in)
        && first.excesses.level_deviance(&first.fit, above(&largest), one_in) > ONE_SIDED_95
    {
        let sentence = format!(
            "its first half does not explain the largest of the second half, {}",
            human_ns(largest)
        );
        return refuse(Gate::Prediction, sentence);
    }
    Ok(())
}

/// An expected number, rounded.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float saturates, and no number is below 0"
)]
fn whole(expected: f64) -> u64 {
    expected.round() as u64
}
