//! The generalised Pareto distribution, fitted to counts in cells.
//!
//! `S(x) = (1 + xi x / sigma)^(-1 / xi)` is the share of excesses above x (Pickands 1975; Coles,
//! "An Introduction to Statistical Modeling of Extreme Values", 2001, chapter 4). What is observed
//! is how many lie in cells `[a, b)`; the likelihood is that of the cells. A density in its place
//! takes steps of a clock for a feature of the tail: whole microseconds make a shape of 0.05 look
//! like 0.67.
//!
//! With `theta = xi / sigma` and `g(x) = ln(1 + theta x) / theta` it is `S = exp(-g / sigma)`: for
//! each theta an exponential distribution of g, whose likelihood has one maximum, and no division
//! by a shape of zero. So one number is searched (in the manner of Grimshaw, Technometrics 35,
//! 1993).

use super::search::{crossing, minimum};

/// Twice the log-likelihood that separates a 95 % interval from the rest, two-sided:
/// `chi2.ppf(0.95, 1)`.
pub const TWO_SIDED_95: f64 = 3.841_458_820_694_124;

/// The same for one bound of 95 %: `chi2.ppf(0.90, 1)`.
pub const ONE_SIDED_95: f64 = 2.705_543_454_095_404;

/// Shapes below have a likelihood without a maximum (Smith, Biometrika 72, 1985).
const LOWEST_SHAPE: f64 = -1.0;

/// No shape above is looked for.
const HIGHEST_SHAPE: f64 = 20.0;

/// Searched values of `ln(1 + theta x)` at the largest excess x.
const REACH: (f64, f64) = (-12.0, 120.0);

/// How well that is determined, for estimates.
const TOLERANCE: f64 = 1e-5;

/// How well it is where only the likelihood matters, which is flat at its maximum.
const VALUE_TOLERANCE: f64 = 3e-4;

/// How well bounds of intervals are determined, relative.
const BOUND_TOLERANCE: f64 = 1e-5;

/// What is outside of the parameter space is less likely than anything.
const IMPOSSIBLE: f64 = 1e12;

/// How many excesses lie from `low` to below `high`, in any unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Excess {
    /// The lower end, 0 at the threshold.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many there are.
    pub count: f64,
}

/// Excesses over a threshold, in cells.
#[derive(Debug, Clone)]
pub struct Excesses {
    cells: Vec<Excess>,
    total: f64,
    /// The largest lower end.
    largest: f64,
    met: f64,
}

/// A cell on the scale of g.
struct Stretched {
    from: f64,
    width: f64,
    count: f64,
}

/// A fitted distribution of excesses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pareto {
    /// The shape, xi.
    pub shape: f64,
    /// The scale, sigma, in the unit of the excesses.
    pub scale: f64,
    /// Minus the log of the likelihood of the cells.
    pub nll: f64,
}

/// `ln(1 + theta x) / theta`, which is x if theta is 0; infinite beyond the endpoint.
fn stretched(theta: f64, x: f64) -> f64 {
    let product = theta * x;
    if product <= -1.0 {
        f64::INFINITY
    } else if product.abs() < 1e-9 {
        x
    } else {
        product.ln_1p() / theta
    }
}

impl Pareto {
    /// `g / sigma` of an excess, where `S = exp(-g / sigma)`.
    fn exponent(&self, x: f64) -> f64 {
        stretched(self.shape / self.scale, x) / self.scale
    }

    /// The share of excesses above `x`.
    #[must_use]
    pub fn above(&self, x: f64) -> f64 {
        (-self.exponent(x)).exp()
    }

    /// The excess that one in `one_in` is above.
    #[must_use]
    pub fn level(&self, one_in: f64) -> f64 {
        let log = one_in.ln();
        let power = self.shape * log;
        if power.abs() < 1e-9 { self.scale * log } else { self.scale * power.exp_m1() / self.shape }
    }

    /// The excess that nothing is above; none with a shape of 0 or more.
    #[must_use]
    pub fn endpoint(&self) -> Option<f64> {
        (self.shape < 0.0).then(|| -self.scale / self.shape)
    }
}

impl Excesses {
    /// Excesses in these cells; none if all are in one cell or none is anywhere.
    ///
    /// Each is the largest of a geometric number of which the share `1 - met` is one: of clusters
    /// that met by chance ([`Peaks::begun`](super::Peaks::begun)). 0 if all are single.
    #[must_use]
    pub fn new(mut cells: Vec<Excess>, met: f64) -> Option<Self> {
        cells.retain(|cell| cell.count > 0.0 && cell.low >= 0.0 && cell.high > cell.low);
        let total = cells.iter().map(|cell| cell.count).sum();
        let largest = cells.iter().map(|cell| cell.low).fold(0.0, f64::max);
        (cells.len() > 1 && largest.is_finite() && (0.0..1.0).contains(&met)).then_some(Self {
            cells,
            total,
            largest,
            met,
        })
    }

    /// How many there are.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The cells.
    #[must_use]
    pub fn cells(&self) -> &[Excess] {
        &self.cells
    }

    /// The share of the observed maxima above `x`, if `fit` is the distribution of single ones.
    #[must_use]
    pub fn observed_above(&self, fit: &Pareto, x: f64) -> f64 {
        let above = fit.above(x);
        above / (1.0 - self.met + self.met * above)
    }

    /// The cells on the scale of g; none if the largest excess is beyond the endpoint.
    fn stretch(&self, theta: f64) -> Option<Vec<Stretched>> {
        let cells = self.cells.iter().map(|cell| {
            let left = theta.mul_add(cell.low, 1.0);
            // Not g(high) - g(low), which cancels.
            let width = stretched(theta / left, cell.high - cell.low) / left;
            Stretched { from: stretched(theta, cell.low), width, count: cell.count }
        });
        (theta * self.largest > -1.0).then(|| cells.collect())
    }

    /// Minus the log-likelihood with `S = exp(-rate g)`.
    fn nll(&self, cells: &[Stretched], rate: f64) -> f64 {
        let alone = 1.0 - self.met;
        let terms = cells.iter().map(|cell| {
            let inside = -(-rate * cell.width).exp_m1();
            let mut term = rate * cell.from - inside.ln();
            if self.met > 0.0 {
                let low = (-rate * cell.from).exp();
                let high = low * (1.0 - inside);
                term += ((alone + self.met * low) * (alone + self.met * high) / alone).ln();
            }
            cell.count * term
        });
        terms.sum()
    }

    /// The first two derivatives of that by `rate`.
    fn slopes(&self, cells: &[Stretched], rate: f64) -> (f64, f64) {
        let (mut slope, mut curve) = (0.0, 0.0);
        let alone = 1.0 - self.met;
        for cell in cells {
            let inside = -(-rate * cell.width).exp_m1();
            let (mut first, mut second) = (cell.from, 0.0);
            if cell.width.is_finite() {
                let odds = (1.0 - inside) / inside;
                first -= cell.width * odds;
                second += cell.width * cell.width * odds / inside;
            }
            if self.met > 0.0 {
                let low = (-rate * cell.from).exp();
                let high = low * (1.0 - inside);
                for (at, above) in [(cell.from, low), (cell.from + cell.width, high)] {
                    if above > 0.0 {
                        let part = self.met * above / (alone + self.met * above);
                        first -= part * at;
                        second += part * (1.0 - part) * at * at;
                    }
                }
            }
            slope += cell.count * first;
            curve += cell.count * second;
        }
        (slope, curve)
    }

    /// The likelihood of theta with the best sigma, and that sigma.
    fn of_theta(&self, theta: f64) -> (f64, f64) {
        let Some(cells) = self.stretch(theta) else { return (IMPOSSIBLE, 1.0) };
        let sum: f64 = cells.iter().map(|cell| cell.count * cell.from).sum();
        let narrow = self.cells[0].high - self.cells[0].low;
        let mut rate = (sum / self.total + narrow / 2.0).recip();
        for _ in 0..50 {
            // Newton's method on the logarithm, on which the function has one minimum.
            let (slope, curve) = self.slopes(&cells, rate);
            let step = -slope / curve.mul_add(rate, slope).max(1e-3 * self.total / rate);
            rate *= if step.is_finite() { step.clamp(-2.0, 2.0).exp() } else { 1.0 };
            // It doubles the digits: what is left is the square.
            if step.is_nan() || step.abs() < 1e-5 {
                break;
            }
        }
        rate = rate.max(theta / LOWEST_SHAPE);
        (self.nll(&cells, rate), rate.recip())
    }

    /// The likelihood of theta with a given 1 / sigma.
    fn of_both(&self, theta: f64, rate: f64) -> f64 {
        self.stretch(theta).map_or(IMPOSSIBLE, |cells| self.nll(&cells, rate))
    }

    /// The distribution of highest likelihood, with a shape of -1 or more.
    #[must_use]
    pub fn fit(&self) -> Pareto {
        let theta = |reach: f64| reach.exp_m1() / self.largest;
        let mut f = |reach: f64| self.of_theta(theta(reach)).0;
        let (reach, _) = minimum(&mut f, 0.1, REACH, TOLERANCE);
        let (nll, scale) = self.of_theta(theta(reach));
        Pareto { shape: theta(reach) * scale, scale, nll }
    }

    /// Twice the log-likelihood that is lost if one in `one_in` is above `level`.
    #[must_use]
    pub fn level_deviance(&self, best: &Pareto, level: f64, one_in: f64) -> f64 {
        // What has this level has this sigma: S(level) is given.
        let farthest = level.max(self.largest);
        let log = one_in.ln();
        let mut f = |reach: f64| {
            let theta = reach.exp_m1() / farthest;
            let rate = log / stretched(theta, level);
            if rate * -LOWEST_SHAPE < -theta {
                return IMPOSSIBLE * (2.0 - theta / rate).min(1e6);
            }
            self.of_both(theta, rate)
        };
        let start = (best.shape / best.scale * farthest).max(-0.9).ln_1p();
        let start = if f(start) < IMPOSSIBLE { start } else { 0.0 };
        2.0 * (minimum(&mut f, start, REACH, VALUE_TOLERANCE).1 - best.nll).max(0.0)
    }

    /// The interval of the level that one in `one_in` is above, by profile likelihood: what loses
    /// less than `deviance` ([`TWO_SIDED_95`], [`ONE_SIDED_95`]). Infinite if nothing bounds it
    /// above.
    #[must_use]
    pub fn level_interval(&self, best: &Pareto, one_in: f64, deviance: f64) -> (f64, f64) {
        let log = best.level(one_in).ln();
        let mut f = |x: f64| self.level_deviance(best, x.exp(), one_in) - deviance;
        let low = crossing(&mut f, log, -0.05, log - 50.0, BOUND_TOLERANCE);
        let high = crossing(&mut f, log, 0.05, log + 200.0, BOUND_TOLERANCE);
        (low.map_or(0.0, f64::exp), high.map_or(f64::INFINITY, f64::exp))
    }

    /// Twice the log-likelihood that is lost if the shape is `shape`.
    #[must_use]
    pub fn shape_deviance(&self, best: &Pareto, shape: f64) -> f64 {
        // Beyond, the largest excess would be above the endpoint.
        let highest = if shape < 0.0 { -(-shape * self.largest).ln() - 1e-9 } else { 700.0 };
        let mut f = |log: f64| self.of_both(shape * log.exp(), log.exp());
        let start = (-best.scale.ln()).min(highest - 0.1);
        2.0 * (minimum(&mut f, start, (start - 50.0, highest), VALUE_TOLERANCE).1 - best.nll)
            .max(0.0)
    }

    /// The interval of the shape by profile likelihood, within the shapes that are looked for (-1
    /// to 20).
    #[must_use]
    pub fn shape_interval(&self, best: &Pareto, deviance: f64) -> (f64, f64) {
        let mut f = |shape: f64| self.shape_deviance(best, shape) - deviance;
        let start = best.shape;
        let low = crossing(&mut f, start, -0.05, LOWEST_SHAPE, BOUND_TOLERANCE);
        let high = crossing(&mut f, start, 0.05, HIGHEST_SHAPE, BOUND_TOLERANCE);
        (low.unwrap_or(LOWEST_SHAPE), high.unwrap_or(HIGHEST_SHAPE))
    }

    /// The interval of the endpoint by profile likelihood; infinite where the likelihood does not
    /// exclude that there is none. None if the fit has no endpoint.
    #[must_use]
    pub fn endpoint_interval(&self, best: &Pareto, deviance: f64) -> Option<(f64, f64)> {
        let endpoint = best.endpoint()?;
        let start = (-self.largest / endpoint).ln_1p().clamp(REACH.0, -1e-9);
        let at = |reach: f64| -self.largest / reach.exp_m1();
        let mut f = |reach: f64| {
            2.0 * (self.of_theta(reach.exp_m1() / self.largest).0 - best.nll) - deviance
        };
        let low = crossing(&mut f, start, -0.1, REACH.0, BOUND_TOLERANCE).map_or(self.largest, at);
        let high = crossing(&mut f, start, 0.1, 0.0, BOUND_TOLERANCE).map_or(f64::INFINITY, at);
        Some((low, high))
    }
}
