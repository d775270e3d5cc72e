//! Whether a generalised Pareto distribution fits, and above which threshold.

use super::pareto::{Excesses, Pareto};
use super::table::{P_VALUES, QUANTILES, SHAPES};
use crate::random::{Random, mix};
use crate::stats::bounds::real;

/// A share from 0 to below 1.
fn uniform(random: &mut Random) -> f64 {
    const BITS: u32 = 53;
    real(random.word() >> (64 - BITS)) / real(1 << BITS)
}

/// The statistic A^2 of Anderson and Darling (Ann. Math. Statist. 23, 1952) of excesses under a
/// distribution that was fitted to them. Those in a cell are spread over it at random, as the
/// distribution is in it (a randomised probability integral transform): steps of the clock are no
/// misfit.
#[must_use]
pub fn anderson_darling(excesses: &Excesses, fit: &Pareto) -> f64 {
    // Numbers that depend on nothing but the record: it has one answer.
    let mut random = Random::new(excesses.cells().iter().fold(0, |seed, cell| {
        mix(seed ^ cell.low.to_bits() ^ cell.count.to_bits().rotate_left(32))
    }));
    let mut above = Vec::new();
    for cell in excesses.cells() {
        let (high, low) =
            (excesses.observed_above(fit, cell.low), excesses.observed_above(fit, cell.high));
        let mut left = cell.count;
        while left > 0.5 {
            above.push((high - low).mul_add(uniform(&mut random), low));
            left -= 1.0;
        }
    }
    above.sort_by(f64::total_cmp);
    let n = real(above.len() as u64);
    let bounded = |share: f64| share.clamp(1e-300, 1.0 - 1e-16);
    let mut sum = 0.0;
    for (i, (low, high)) in above.iter().zip(above.iter().rev()).enumerate() {
        let weight = 2.0 * real(i as u64) + 1.0;
        sum += weight * (bounded(*low).ln() + (-bounded(*high)).ln_1p());
    }
    -n - sum / n
}

/// The p-value of A^2 of excesses with this fitted shape.
#[must_use]
pub fn p_value(statistic: f64, shape: f64) -> f64 {
    let place = ((shape - SHAPES[0]) / (SHAPES[1] - SHAPES[0]))
        .clamp(0.0, real(QUANTILES.len() as u64 - 1));
    let row = QUANTILES.len() - 2;
    let row = (0..row).find(|row| place < real(*row as u64 + 1)).unwrap_or(row);
    let part = place - real(row as u64);
    let quantile =
        |column: usize| QUANTILES[row][column] * (1.0 - part) + QUANTILES[row + 1][column] * part;
    if statistic <= quantile(0) {
        return 1.0 - (1.0 - P_VALUES[0]) * (statistic / quantile(0)).max(0.0);
    }
    let last = P_VALUES.len() - 1;
    let column = (1..last).find(|column| statistic < quantile(*column)).unwrap_or(last);
    // The tail of A^2 is nearly exponential, so the logarithm of p is nearly linear.
    let (low, high) = (quantile(column - 1), quantile(column));
    let (at_low, at_high) = (P_VALUES[column - 1].ln(), P_VALUES[column].ln());
    (at_low + (at_high - at_low) * (statistic - low) / (high - low)).exp()
}

/// How many of the first hypotheses are rejected, by the rule ForwardStop at the false discovery
/// rate `rate`: the last k for which the mean of `-ln(1 - p)` up to k is at most `rate` (G'Sell et
/// al., J. R. Statist. Soc. B 78, 2016; for thresholds: Bader, Yan and Zhang, Ann. Appl. Stat. 12,
/// 2018).
#[must_use]
pub fn forward_stop(p_values: &[f64], rate: f64) -> usize {
    let (mut sum, mut rejected) = (0.0, 0);
    for (k, p) in (1_u64..).zip(p_values) {
        sum -= (-p.min(1.0 - 1e-9)).ln_1p();
        if sum / real(k) <= rate {
            rejected = k;
        }
    }
    usize::try_from(rejected).unwrap_or(usize::MAX)
}
