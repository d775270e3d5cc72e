//! The generalised extreme value distribution, fitted to block maxima.
//!
//! `F(x) = exp(-(1 + xi (x - mu) / sigma)^(-1 / xi))` (Jenkinson 1955; Coles 2001, chapter 3). As
//! with excesses, one number is searched: for each theta the `g(x) = ln(1 + theta (x - c)) / theta`
//! have a Gumbel distribution, whose location has a closed form.

use super::search::{crossing, minimum};

/// Searched values of `ln(1 + theta (x - c))` at the largest x.
const REACH: (f64, f64) = (-12.0, 60.0);

const TOLERANCE: f64 = 1e-6;

/// A fitted distribution of block maxima.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExtremeValue {
    /// The location, mu, in the unit of the maxima.
    pub location: f64,
    /// The scale, sigma, in the unit of the maxima.
    pub scale: f64,
    /// The shape, xi.
    pub shape: f64,
    /// Minus the log-likelihood, of densities.
    pub nll: f64,
}

impl ExtremeValue {
    /// The level that the maximum of one block in `blocks` is above.
    #[must_use]
    pub fn level(&self, blocks: f64) -> f64 {
        let gumbel = reduced(blocks);
        let power = self.shape * gumbel;
        let standard = if power.abs() < 1e-9 { gumbel } else { power.exp_m1() / self.shape };
        self.scale.mul_add(standard, self.location)
    }
}

/// The Gumbel variate that one in `blocks` is above.
fn reduced(blocks: f64) -> f64 {
    -(-(-blocks.recip()).ln_1p()).ln()
}

/// Block maxima.
#[derive(Debug, Clone)]
pub struct Maxima {
    values: Vec<f64>,
    lowest: f64,
    /// The highest above the lowest.
    range: f64,
}

impl Maxima {
    /// These maxima; none if they do not differ or are not finite.
    #[must_use]
    pub fn new(values: Vec<f64>) -> Option<Self> {
        let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let range = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - lowest;
        (range > 0.0 && range.is_finite()).then_some(Self { values, lowest, range })
    }

    fn stretched(&self, theta: f64, x: f64) -> f64 {
        let above = x - self.lowest;
        if (theta * above).abs() < 1e-9 { above } else { (theta * above).ln_1p() / theta }
    }

    /// Minus the log-likelihood, with the best scale of the Gumbel distribution, which is the
    /// second number, and the location that `place` gives for it, which is the third.
    fn of_theta(&self, theta: f64, place: &dyn Fn(&[f64], f64) -> f64) -> (f64, f64, f64) {
        let all: Vec<_> = self.values.iter().map(|x| self.stretched(theta, *x)).collect();
        let mut f = |log: f64| {
            let scale = log.exp();
            let location = place(&all, scale);
            let terms = all.iter().map(|g| {
                let w = (g - location) / scale;
                w + (-w).exp() + theta * g
            });
            terms.sum::<f64>() + log * count(&all)
        };
        let start = (self.stretched(theta, self.lowest + self.range) / 4.0).ln();
        let (log, nll) = minimum(&mut f, start, (start - 40.0, start + 40.0), TOLERANCE);
        (nll, log.exp(), place(&all, log.exp()))
    }

    /// The distribution of highest likelihood.
    #[must_use]
    pub fn fit(&self) -> ExtremeValue {
        let place = |all: &[f64], scale: f64| {
            // Relative to the lowest, which is 0: nothing overflows.
            -scale * (all.iter().map(|g| (-g / scale).exp()).sum::<f64>() / count(all)).ln()
        };
        let theta = |reach: f64| reach.exp_m1() / self.range;
        let mut f = |reach: f64| self.of_theta(theta(reach), &place).0;
        let (reach, _) = minimum(&mut f, 0.1, REACH, TOLERANCE);
        let theta = theta(reach);
        let (nll, gumbel, at) = self.of_theta(theta, &place);
        let rise = (theta * at).exp();
        let above = if (theta * at).abs() < 1e-9 { at } else { (theta * at).exp_m1() / theta };
        ExtremeValue {
            location: self.lowest + above,
            scale: gumbel * rise,
            shape: theta * gumbel,
            nll,
        }
    }

    /// The interval of the level that the maximum of one block in `blocks` is above, by profile
    /// likelihood: what loses less than `deviance`, twice the log-likelihood.
    #[must_use]
    pub fn level_interval(&self, best: &ExtremeValue, blocks: f64, deviance: f64) -> (f64, f64) {
        let gumbel = reduced(blocks);
        let mut lost = |level: f64| {
            let farthest = (level - self.lowest).max(self.range);
            let mut f = |reach: f64| {
                let theta = reach.exp_m1() / farthest;
                let at = self.stretched(theta, level);
                self.of_theta(theta, &|_: &[f64], scale: f64| at - scale * gumbel).0
            };
            2.0 * (minimum(&mut f, 0.1, REACH, TOLERANCE).1 - best.nll) - deviance
        };
        let (level, step) = (best.level(blocks), best.scale / 8.0);
        let tolerance = best.scale * 1e-6;
        let low = crossing(&mut lost, level, -step, self.lowest, tolerance);
        let high = crossing(&mut lost, level, step, level + 1e9 * best.scale, tolerance);
        (low.unwrap_or(self.lowest), high.unwrap_or(f64::INFINITY))
    }
}

#[allow(clippy::cast_precision_loss, reason = "no vector has 2^53 entries")]
fn count(all: &[f64]) -> f64 {
    all.len() as f64
}
