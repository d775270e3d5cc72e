//! The test of Brunner and Munzel: two samples whose spreads may differ.

use super::bounds::binomial_cdf;
use super::rank_sum::least_p;
use super::student::student_p;

/// Arrangements up to which the distribution under permutation is computed: 11 against 11 values
/// have 705,432.
const MOST_ARRANGEMENTS: f64 = 1e6;

/// Statistics this near, relatively, are the same one: they are sums in another order.
const SAME: f64 = 1e-9;

/// How two samples lie among each other. A value's placement is how many values of the other
/// sample it is passed by: those of a by larger ones, those of b by smaller ones; equal ones count
/// half. Counted in halves, so that all sums are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Placements {
    /// Numbers of values: a, b.
    pub count: [u32; 2],
    /// Sum of the placements of a, in halves, which is that of b.
    pub sum: i64,
    /// Sums of their squares, in quarters: a, b.
    pub squares: [i64; 2],
}

/// The statistic of two samples, as [`Placements::statistic`] has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Studentised {
    /// How far P(b > a) + P(b = a) / 2 is above one half, in standard errors.
    pub t: f64,
    /// Degrees of freedom of its approximation by Student's t.
    pub df: f64,
}

impl Placements {
    /// Those of two samples.
    #[must_use]
    pub fn of(a: &[f64], b: &[f64]) -> Self {
        let halves = |above: bool, equal: bool| i64::from(above) * 2 + i64::from(equal);
        let mut found = Self { count: [a, b].map(count), ..Self::default() };
        for x in a {
            let place: i64 = b.iter().map(|y| halves(y > x, y.total_cmp(x).is_eq())).sum();
            found.sum += place;
            found.squares[0] += place * place;
        }
        for y in b {
            let place: i64 = a.iter().map(|x| halves(y > x, y.total_cmp(x).is_eq())).sum();
            found.squares[1] += place * place;
        }
        found
    }

    /// The studentised statistic; none if neither sample has any variance of placements: the
    /// samples do not overlap, or all values are equal.
    ///
    /// E. Brunner, U. Munzel, Biometrical Journal 42 (2000).
    #[must_use]
    pub fn statistic(&self) -> Option<Studentised> {
        let of = [self.variance(0), self.variance(1)];
        let both = of[0] + of[1];
        let [m, n] = self.count.map(|count| f64::from(count) - 1.0);
        (both > 0.0).then(|| Studentised {
            t: (self.effect() - 0.5) / both.sqrt(),
            df: both * both / (of[0] * of[0] / m + of[1] * of[1] / n),
        })
    }

    /// Estimate of P(b > a) + P(b = a) / 2.
    #[allow(clippy::cast_precision_loss, reason = "counts of runs")]
    fn effect(&self) -> f64 {
        self.sum as f64 / (2.0 * f64::from(self.count[0]) * f64::from(self.count[1]))
    }

    /// What the placements of a side add to the variance of the effect.
    #[allow(clippy::cast_precision_loss, reason = "below 2^53 for any number of runs")]
    fn variance(&self, side: usize) -> f64 {
        let (own, other) = (f64::from(self.count[side]), f64::from(self.count[1 - side]));
        let scaled = i64::from(self.count[side]) * self.squares[side] - self.sum * self.sum;
        scaled as f64 / 4.0 / (own * (own - 1.0)) / (other * other) / own
    }
}

fn count(values: &[f64]) -> u32 {
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}

/// The test for samples of given sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct BrunnerMunzel {
    /// |t| of all arrangements of different values, ascending; empty if there are too many.
    permuted: Vec<f64>,
    least: f64,
}

impl BrunnerMunzel {
    /// The test for `m` and `n` values, which should be at least 6: with 5, one sample that hardly
    /// varies makes it too liberal.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "numbers of runs")]
    pub fn of(m: usize, n: usize) -> Self {
        let least = least_p(m, n);
        let mut permuted = Vec::new();
        if 2.0 / least <= MOST_ARRANGEMENTS {
            let count = [m, n].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            permute(Placements { count, ..Placements::default() }, [0, 0], &mut permuted);
            permuted.sort_unstable_by(f64::total_cmp);
        }
        Self { permuted, least }
    }

    /// Whether p is that of all arrangements, and so exact if both samples are of one
    /// distribution.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.permuted.is_empty()
    }

    /// Two-sided p that a value of b is above one of a with a probability of one half.
    ///
    /// The larger of that of all arrangements of the values (K. Neubert, E. Brunner, Computational
    /// Statistics & Data Analysis 51, 2007), if they are not more than a million, and that of
    /// Student's t (Brunner and Munzel). If all values of one sample lie between two of the other,
    /// there is one variance only, and little that it could be estimated from: then it is that of
    /// the sign test, which is exact if they are one constant.
    #[must_use]
    pub fn p(&self, of: &Placements) -> f64 {
        let p = match of.statistic() {
            None if 2.0 * of.effect() == 1.0 => 1.0,
            None => self.least,
            Some(_) if of.variance(1) == 0.0 => sign_p(of.count[0], of.effect()),
            Some(_) if of.variance(0) == 0.0 => sign_p(of.count[1], of.effect()),
            Some(Studentised { t, df }) => student_p(t, df).max(self.permutation_p(t)),
        };
        p.clamp(self.least, 1.0)
    }

    /// The share of arrangements whose statistic is as far from zero; 0 if they are unknown.
    #[allow(clippy::cast_precision_loss, reason = "at most a million")]
    fn permutation_p(&self, t: f64) -> f64 {
        let below = self.permuted.partition_point(|other| *other < t.abs() * (1.0 - SAME));
        (self.permuted.len() - below) as f64 / self.permuted.len().max(1) as f64
    }
}

/// Two-sided p of the sign test of `count` values of which the share `above` is on one side. Those
/// that are on neither count as evidence for none.
fn sign_p(count: u32, above: f64) -> f64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let fewer = (f64::from(count) * above.min(1.0 - above) - SAME).ceil() as u64;
    2.0 * binomial_cdf(fewer, u64::from(count), 0.5)
}

/// Adds |t| of all ways to go on after the lowest `placed` values of a and b.
fn permute(so_far: Placements, placed: [u32; 2], found: &mut Vec<f64>) {
    let [m, n] = so_far.count;
    if placed == so_far.count {
        found.push(so_far.statistic().map_or(f64::INFINITY, |studentised| studentised.t.abs()));
        return;
    }
    if placed[0] < m {
        let place = 2 * i64::from(n - placed[1]);
        let mut next = so_far;
        next.sum += place;
        next.squares[0] += place * place;
        permute(next, [placed[0] + 1, placed[1]], found);
    }
    if placed[1] < n {
        let place = 2 * i64::from(placed[0]);
        let mut next = so_far;
        next.squares[1] += place * place;
        permute(next, [placed[0], placed[1] + 1], found);
    }
}

#[cfg(test)]
mod tests;
