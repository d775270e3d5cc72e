//! Bounds on how often a deadline is exceeded, and on quantiles, that hold for
//! any distribution (L1). All are one-sided unless they say otherwise.

use super::quantile::Quantile;
use super::special::{beta_tails, gamma_tails};

/// A count as a float.
#[allow(
    clippy::cast_precision_loss,
    reason = "the tenth digit of a count moves no bound by more than 1e-10 of itself"
)]
pub(super) const fn real(count: u64) -> f64 {
    count as f64
}

/// P(X <= k) of a binomial X with `n` trials of probability `p`.
pub(super) fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { beta_tails(real(k) + 1.0, real(n - k), p).1 }
}

/// P(X >= k) of a binomial X with `n` trials of probability `p`.
pub(super) fn binomial_reaches(k: u64, n: u64, p: f64) -> f64 {
    if k == 0 {
        1.0
    } else if k > n {
        0.0
    } else {
        beta_tails(real(k), real(n - k) + 1.0, p).0
    }
}

/// Where `beyond` turns true between `low` (above 0) and `high`, bisected on
/// the logarithm: slower than Newton's method, and it cannot leave the bracket.
fn turning_point(low: f64, high: f64, beyond: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (low.ln(), high.ln());
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high.exp();
        }
        if beyond(middle.exp()) {
            high = middle;
        } else {
            low = middle;
        }
    }
}

/// The first of `low..=high` for which `reached` is true, as it must be for all after
/// it; none if it is never true.
fn first(low: u64, high: u64, reached: impl Fn(u64) -> bool) -> Option<u64> {
    if low > high || !reached(high) {
        return None;
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if reached(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

/// Upper bound on the probability of an exceedance after `k` of them in `n`
/// releases: `beta.ppf(confidence, k + 1, n - k)`, and `1 - a^(1/n)` for k = 0,
/// where a = 1 - `confidence`. 1 if nothing was measured or everything exceeded.
/// `confidence` is between 0 and 1, both excluded.
///
/// C. J. Clopper, E. S. Pearson, Biometrika 26 (1934), one-sided.
#[must_use]
pub fn clopper_pearson_upper(k: u64, n: u64, confidence: f64) -> f64 {
    let alpha = 1.0 - confidence;
    if k >= n || alpha.is_nan() || alpha <= 0.0 {
        return 1.0;
    }
    if k == 0 {
        return -(alpha.ln() / real(n)).exp_m1();
    }
    turning_point(real(k) / real(n), 1.0, |p| binomial_cdf(k, n, p) <= alpha)
}

/// Lower bound on the probability of an exceedance after `k` of them in `n`
/// releases: `beta.ppf(1 - confidence, k, n - k + 1)`; 0 for k = 0. The mirror
/// of [`clopper_pearson_upper`].
#[must_use]
pub fn clopper_pearson_lower(k: u64, n: u64, confidence: f64) -> f64 {
    let alpha = 1.0 - confidence;
    if k == 0 || n == 0 || alpha.is_nan() || alpha <= 0.0 {
        return 0.0;
    }
    let k = k.min(n);
    // P(X >= k) is at least p^k and at most (n p)^k: the bound is above alpha^(1/k) / n.
    let low = (alpha.ln() / real(k)).exp() / real(n) / 2.0;
    turning_point(low, 1.0, |p| binomial_reaches(k, n, p) >= alpha)
}

/// Upper bound on the rate of exceedances, per second, after `k` of them in
/// `seconds` (above 0): `chi2.ppf(confidence, 2 (k + 1)) / 2 / seconds`.
///
/// F. Garwood, Biometrika 28 (1936), one-sided.
#[must_use]
pub fn exceedance_rate_upper(k: u64, seconds: f64, confidence: f64) -> f64 {
    let alpha = 1.0 - confidence;
    if seconds.is_nan() || seconds <= 0.0 || alpha.is_nan() || alpha <= 0.0 {
        return f64::INFINITY;
    }
    gamma_count_upper(real(k), confidence) / seconds
}

/// Upper bound of the mean of a Poisson count of `k`, which need not be whole:
/// `chi2.ppf(confidence, 2 (k + 1)) / 2`.
pub(super) fn gamma_count_upper(k: f64, confidence: f64) -> f64 {
    let alpha = 1.0 - confidence;
    if k <= 0.0 {
        return -alpha.ln();
    }
    let a = k + 1.0;
    let beyond = |mean: f64| gamma_tails(a, mean).1 <= alpha;
    let mut high = 2.0 * a;
    while !beyond(high) {
        high *= 2.0;
    }
    turning_point(k, high, beyond)
}

/// Lower bound of the mean of a Poisson count of `k`: `chi2.ppf(1 - confidence, 2 k) / 2`; 0 for
/// none.
pub(super) fn gamma_count_lower(k: f64, confidence: f64) -> f64 {
    let alpha = 1.0 - confidence;
    if k <= 0.0 || alpha.is_nan() || alpha <= 0.0 {
        return 0.0;
    }
    // For a <= 1 it is below alpha^(1/a), and its logarithm is what is bisected.
    let low = (alpha.ln() / k).exp().min(k) * 1e-3;
    turning_point(low, k.max(1.0), |mean| gamma_tails(k, mean).0 >= alpha)
}

/// The smallest rank r (from 1, ascending) of `n` samples such that, at
/// `confidence`, at most a share `exceed` of all latencies is above the sample at
/// that rank: the upper tolerance limit. In the usual form, with p = 1 - `exceed`:
/// the smallest r with `binom.cdf(r - 1, n, p) >= confidence`. None if `n` samples
/// do not support one. The argument is `exceed` rather than p, since 1 - p loses
/// digits for a p near 1.
///
/// S. S. Wilks, Annals of Mathematical Statistics 12 (1941).
#[must_use]
pub fn wilks_rank(n: u64, exceed: f64, confidence: f64) -> Option<u64> {
    // r = n - m + 1 where m is the largest number with P(at least m samples above) >= confidence.
    let too_many = |m: u64| m > n || binomial_reaches(m, n, exceed) < confidence;
    let m = first(1, n.saturating_add(1), too_many)? - 1;
    (m > 0).then(|| n - m + 1)
}

/// How many samples make their maximum an upper tolerance limit: at most a
/// share `exceed` of all latencies is above it, at `confidence`. 59 for 5 % and
/// 95 %. None if that exceeds u64. See [`wilks_rank`].
#[must_use]
pub fn wilks_samples(exceed: f64, confidence: f64) -> Option<u64> {
    samples_needed(exceed, 0, confidence)
}

/// The least number of releases of which `k` may exceed the deadline while
/// [`clopper_pearson_upper`] is still at most `probability`. None if that exceeds
/// u64, or if `probability` or `confidence` is not between 0 and 1.
#[must_use]
pub fn samples_needed(probability: f64, k: u64, confidence: f64) -> Option<u64> {
    let inside = |p: f64| p > 0.0 && p < 1.0;
    if !inside(probability) || !inside(confidence) {
        return None;
    }
    let alpha = 1.0 - confidence;
    let enough = |n: u64| {
        if k == 0 {
            real(n) * (-probability).ln_1p() <= alpha.ln()
        } else {
            binomial_cdf(k, n, probability) <= alpha
        }
    };
    let mut low = k.saturating_add(1);
    let mut high = low;
    while !enough(high) {
        low = high;
        high = high.checked_mul(2)?;
    }
    first(low, high, enough)
}

/// The ranks (from 1, ascending) whose samples enclose the quantile `q` of all
/// latencies at `confidence`, two-sided: `binom.ppf(a/2, n, q)` and
/// `binom.ppf(1 - a/2, n, q) + 1`. None if one of them is outside the
/// `n` samples. p99 of 1000: 983 and 997.
///
/// H. A. David, H. N. Nagaraja, Order Statistics (2003), section 7.1.
#[must_use]
pub fn quantile_ranks(n: u64, q: Quantile, confidence: f64) -> Option<(u64, u64)> {
    let tail = (1.0 - confidence) / 2.0;
    let q = q.share();
    let low = first(0, n, |j| binomial_cdf(j, n, q) >= tail)?;
    let high = first(0, n, |j| binomial_reaches(j + 1, n, q) <= tail)? + 1;
    (low >= 1 && high <= n).then_some((low, high))
}

/// The probability that the maximum of the next `m` samples exceeds that of
/// the past `n`, if all are exchangeable: `m / (n + m)` (L0). 1 without past
/// samples.
#[must_use]
pub fn beaten_within(n: u64, m: u64) -> f64 {
    if n == 0 { 1.0 } else { real(m) / (real(n) + real(m)) }
}

#[cfg(test)]
mod tests;
