//! By how much one sample lies above another: the estimate, its interval and its test, which agree.

use super::brunner_munzel::{BrunnerMunzel, Placements};
use super::rank_sum::rank_sum_cdf;

/// From how many values of each sample on the test is that of Brunner and Munzel. A rule that looks
/// at the spreads first, and chooses the test by them, would hold the level of neither.
pub const SPREADS_MAY_DIFFER: usize = 6;

/// The test that an interval inverts. It depends on the sizes of the samples alone.
#[derive(Debug, Clone, PartialEq)]
pub enum ShiftTest {
    /// Rank sum: exact if the samples differ by a shift only. P(U <= u) by u.
    RankSum(Vec<f64>),
    /// Brunner and Munzel: their spreads may differ.
    BrunnerMunzel(BrunnerMunzel),
}

impl ShiftTest {
    /// The test for samples of `m` and `n` values.
    #[must_use]
    pub fn of(m: usize, n: usize) -> Self {
        if m.min(n) < SPREADS_MAY_DIFFER {
            Self::RankSum(rank_sum_cdf(m, n))
        } else {
            Self::BrunnerMunzel(BrunnerMunzel::of(m, n))
        }
    }

    fn p(&self, of: &Placements) -> f64 {
        match self {
            Self::BrunnerMunzel(test) => test.p(of),
            Self::RankSum(cdf) => {
                // Of the side with fewer pairs, where a tie is counted against a difference.
                let all = 2 * i64::try_from(cdf.len() - 1).unwrap_or(i64::MAX);
                let fewer = (of.sum.min(all - of.sum) + 1) / 2;
                let p = usize::try_from(fewer).ok().and_then(|fewer| cdf.get(fewer));
                (2.0 * p.copied().unwrap_or(1.0)).min(1.0)
            }
        }
    }
}

/// The differences of all pairs of a value of b and one of a, and what the test says of each shift
/// of a: at every difference, and between one and the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Shifts {
    estimate: f64,
    /// The differences, each once, ascending.
    differences: Vec<f64>,
    /// Two-sided p: below the first difference, at it, between it and the second, and so on.
    p: Vec<f64>,
}

impl Shifts {
    /// The shifts of `a` that may lead to `b`; none if one of them is empty or has a value that is
    /// not finite. `test` must be that of their sizes.
    #[must_use]
    pub fn of(a: &[f64], b: &[f64], test: &ShiftTest) -> Option<Self> {
        if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|value| !value.is_finite()) {
            return None;
        }
        let pairs = pairs(a, b);
        let estimate = middle(&pairs)?;
        // Shifted down without end, each value of a is below all of b.
        let mut walk = Walk::below(a.len(), b.len());
        let mut differences = Vec::new();
        let mut p = vec![test.p(&walk.placements)];
        for equal in pairs.chunk_by(|x, y| x.0.total_cmp(&y.0).is_eq()) {
            differences.push(equal[0].0);
            for _ in 0..2 {
                equal.iter().for_each(|(_, i, j)| walk.half_a_step(*i, *j));
                p.push(test.p(&walk.placements));
            }
        }
        Some(Self { estimate, differences, p })
    }

    /// The estimate, as [`hodges_lehmann`] has it.
    #[must_use]
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// The shifts that the test does not reject at `alpha`, two-sided, and those between them.
    /// At 2 `alpha` each end is a one-sided bound at `alpha`. None if there are too few values.
    #[must_use]
    pub fn interval(&self, alpha: f64) -> Option<[f64; 2]> {
        let held = |p: &f64| *p > alpha;
        let end = |place: Option<usize>, outwards: usize| match place {
            // Below all differences or above them: no bound.
            Some(place) if place == 0 || place + 1 == self.p.len() => None,
            Some(place) if place % 2 == 1 => Some(self.differences[place / 2]),
            Some(place) => Some(self.differences[place / 2 - 1 + outwards]),
            None => Some(self.estimate),
        };
        let low = end(self.p.iter().position(held), 0)?.min(self.estimate);
        let high = end(self.p.iter().rposition(held), 1)?.max(self.estimate);
        Some([low, high])
    }

    /// Two-sided p that the shift is `shift`: at most `alpha` only if that is outside of the
    /// interval.
    #[must_use]
    pub fn p(&self, shift: f64) -> f64 {
        let below = self.differences.partition_point(|difference| *difference < shift);
        let is_at = self.differences.get(below).is_some_and(|difference| *difference <= shift);
        let places = 2 * below..=2 * below + if is_at { 2 } else { 0 };
        let largest = |p: &[f64]| p.iter().copied().fold(0.0, f64::max);
        let outside = largest(&self.p[..=*places.end()]);
        outside.min(largest(&self.p[*places.start()..]))
    }

    /// One-sided p that the shift is at most `shift`.
    #[must_use]
    pub fn p_above(&self, shift: f64) -> f64 {
        let half = self.p(shift) / 2.0;
        if self.estimate > shift { half } else { 1.0 - half }
    }
}

/// The median of the differences of all pairs of a value of `b` and one of `a`: half of the pairs
/// differ by more. None if one of them is empty.
///
/// J. L. Hodges, E. L. Lehmann, Annals of Mathematical Statistics 34 (1963).
#[must_use]
pub fn hodges_lehmann(a: &[f64], b: &[f64]) -> Option<f64> {
    middle(&pairs(a, b))
}

/// The difference of each pair and where it comes from, ascending.
fn pairs(a: &[f64], b: &[f64]) -> Vec<(f64, usize, usize)> {
    let of = |i: usize| (0..b.len()).map(move |j| (b[j] - a[i], i, j));
    let mut pairs: Vec<_> = (0..a.len()).flat_map(of).collect();
    pairs.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    pairs
}

fn middle(pairs: &[(f64, usize, usize)]) -> Option<f64> {
    let last = pairs.len().checked_sub(1)?;
    Some(f64::midpoint(pairs[last / 2].0, pairs[pairs.len() / 2].0))
}

/// Two samples, one of which is shifted past the other, pair by pair.
struct Walk {
    placements: Placements,
    of_a: Vec<i64>,
    of_b: Vec<i64>,
}

impl Walk {
    /// All of a below all of b.
    fn below(m: usize, n: usize) -> Self {
        let count = [m, n].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let [of_a, of_b] = [2 * i64::from(count[1]), 2 * i64::from(count[0])];
        let sum = i64::from(count[0]) * of_a;
        let placements = Placements { count, sum, squares: [sum * of_a, sum * of_b] };
        Self { placements, of_a: vec![of_a; m], of_b: vec![of_b; n] }
    }

    /// From below to equal, or from equal to above.
    fn half_a_step(&mut self, i: usize, j: usize) {
        self.placements.sum -= 1;
        for (side, place) in [&mut self.of_a[i], &mut self.of_b[j]].into_iter().enumerate() {
            *place -= 1;
            // (x + 1)^2 - x^2
            self.placements.squares[side] -= 2 * *place + 1;
        }
    }
}

#[cfg(test)]
mod tests;
