//! Rank tests of a series: a change point, two halves, many parts.

use std::ops::Range;

use super::super::special::{chi_square_upper, normal_upper};

/// Blocks of a burst.
pub(super) const BURST: usize = 10;

/// Fewer blocks make a short series.
const SHORT: usize = 100;

/// Correlation below this is none.
const UNCORRELATED: f64 = 0.05;

/// The largest correlation of neighbours that is believed: it widens a variance 99 times.
const MOST_CORRELATED: f64 = 0.98;

/// The ranks of a series of at least 20 values, less their mean; equal values share theirs.
#[derive(Debug)]
pub(super) struct Ranks {
    ranks: Vec<f64>,
    /// The sum of their squares, which ties make smaller.
    squares: f64,
    /// The correlation of neighbours within the parts.
    within_parts: f64,
}

#[allow(clippy::cast_precision_loss, reason = "counts of blocks")]
const fn real(count: usize) -> f64 {
    count as f64
}

impl Ranks {
    pub(super) fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranks = vec![0.0; values.len()];
        let mut from = 0;
        while from < order.len() {
            let value = values[order[from]];
            let ties = order[from..].iter().take_while(|at| values[**at] == value).count().max(1);
            // Ranks count from 1: those from `from` + 1 to `from` + `ties`.
            let rank = real(from) + (real(ties) + 1.0) / 2.0 - (real(values.len()) + 1.0) / 2.0;
            order[from..from + ties].iter().for_each(|at| ranks[*at] = rank);
            from += ties;
        }
        let squares = ranks.iter().map(|rank| rank * rank).sum();
        let mut all = Self { ranks, squares, within_parts: 0.0 };
        let parts: Vec<_> = all.parts().collect();
        all.within_parts = all.correlation(&parts, real(all.ranks.len()) / real(parts.len()));
        all
    }

    /// A change point by Pettitt's test (p is 1 for values that are all equal, as of all tests),
    /// from the number of values before it, and its p, two-sided: `2 exp(-6 K^2 / (n^3 + n^2))`,
    /// with the variance of ranks in place of that without ties.
    pub(super) fn pettitt(&self) -> (usize, f64) {
        let (before, most) = self.change_point();
        (before, self.pettitt_p(most, Self::wider(self.beside(before))))
    }

    /// Where the sum of the ranks before is furthest from zero, and that sum.
    fn change_point(&self) -> (usize, f64) {
        let (mut sum, mut most, mut before) = (0.0_f64, 0.0_f64, 0);
        for (number, rank) in self.ranks.iter().enumerate() {
            sum += rank;
            if sum.abs() > most {
                (most, before) = (sum.abs(), number + 1);
            }
        }
        (before, most)
    }

    fn pettitt_p(&self, most: f64, wider: f64) -> f64 {
        if self.squares <= 0.0 {
            return 1.0;
        }
        let n = real(self.ranks.len());
        let square = most * most / self.squares * (n - 1.0) / n / wider;
        (2.0 * (-2.0 * square).exp()).min(1.0)
    }

    /// p of the rank sum of the first half, two-sided, by its normal approximation.
    pub(super) fn halves(&self) -> f64 {
        let (before, _) = self.change_point();
        self.halves_p(Self::wider(self.beside(before).max(self.within_parts)))
    }

    fn halves_p(&self, wider: f64) -> f64 {
        let half = self.ranks.len() / 2;
        let sum = self.ranks[..half].iter().sum::<f64>();
        (2.0 * normal_upper(self.deviations(sum.abs(), half, wider))).min(1.0)
    }

    /// By how many standard deviations the sum of some ranks differs from zero.
    fn deviations(&self, sum: f64, number: usize, wider: f64) -> f64 {
        let (n, number) = (real(self.ranks.len()), real(number));
        let variance = self.squares / (n - 1.0) * number * (n - number) / n;
        if variance <= 0.0 { 0.0 } else { sum / (variance * wider).sqrt() }
    }

    /// p of Kruskal's and Wallis' H over the parts.
    pub(super) fn kruskal_wallis(&self) -> f64 {
        self.kruskal_wallis_p(Self::wider(self.within_parts))
    }

    fn kruskal_wallis_p(&self, wider: f64) -> f64 {
        if self.squares <= 0.0 {
            return 1.0;
        }
        let between = self.parts().map(|part| {
            let (sum, size) = (self.ranks[part.clone()].iter().sum::<f64>(), real(part.len()));
            sum * sum / size
        });
        let h = between.sum::<f64>() * (real(self.ranks.len()) - 1.0) / self.squares;
        chi_square_upper(h / wider, half_freedom(self.ranks.len()))
    }

    /// The 10 values in a row with the largest ranks, from the number of those before them, and the
    /// probability of such ones by the normal approximation, times the number of places
    /// (Bonferroni); `None` with fewer than 40 values. The ranks of so few have shorter tails than a
    /// normal distribution.
    pub(super) fn burst(&self) -> Option<(usize, f64)> {
        if self.ranks.len() < 4 * BURST {
            return None;
        }
        let sums = self.ranks.windows(BURST).map(|ranks| ranks.iter().sum::<f64>());
        let (at, sum) = sums.enumerate().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        let places = real(self.ranks.len() - BURST + 1);
        let wider = Self::wider(self.within_parts);
        Some((at, (places * normal_upper(self.deviations(sum, BURST, wider))).min(1.0)))
    }

    /// How many blocks apart values are that hardly resemble each other any more.
    pub(super) fn reach(&self) -> usize {
        if self.within_parts <= UNCORRELATED {
            return 1;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to 149")]
        let reach = (UNCORRELATED.ln() / self.within_parts.ln()).ceil() as usize;
        reach
    }

    /// Parts of nearly equal length, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let n = self.ranks.len();
        let number = 2 * half_freedom(n) as usize + 1;
        (0..number).map(move |part| part * n / number..(part + 1) * n / number)
    }

    /// The correlation of neighbours before and after a change point.
    fn beside(&self, before: usize) -> f64 {
        let n = self.ranks.len();
        // The place of the change was chosen, too: as if there were three pieces.
        self.correlation(&[0..before, before..n], real(n) / 3.0)
    }

    /// By how much a correlation r of neighbours widens the variance of a sum, if that of values k
    /// apart is r^k (an autoregression of the first order): (1 + r) / (1 - r).
    fn wider(correlation: f64) -> f64 {
        (1.0 + correlation) / (1.0 - correlation)
    }

    /// The correlation of neighbours within these pieces, since drift itself correlates what lies in
    /// different ones; from 0 to 0.98. In pieces of m values it is found to be r (1 - 4/m) - 1/m on
    /// average (M. G. Kendall, Biometrika 41 (1954) 403, with sums of m - 1 products over sums of m
    /// squares), which is undone.
    fn correlation(&self, pieces: &[Range<usize>], length: f64) -> f64 {
        let (mut products, mut squares) = (0.0, 0.0);
        for piece in pieces {
            let ranks = &self.ranks[piece.clone()];
            let mean = ranks.iter().sum::<f64>() / real(ranks.len().max(1));
            squares += ranks.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>();
            let neighbours = ranks.windows(2);
            products += neighbours.map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        }
        if squares <= 0.0 {
            return 0.0;
        }
        let found = (products / squares + 1.0 / length) / (1.0 - (4.0 / length).min(0.9));
        let found = found.clamp(0.0, MOST_CORRELATED);
        // It may be larger than it was found, in a short series by more than its standard error.
        let errors = if self.ranks.len() < SHORT { 1.5 } else { 1.0 };
        let error = errors * ((1.0 - found * found) / real(self.ranks.len())).sqrt();
        let more = if found > 2.0 * error { error } else { 0.0 };
        (found + more).min(MOST_CORRELATED)
    }
}

/// Half the degrees of freedom between the parts: 5 parts of 4 values and more, up to 13.
fn half_freedom(n: usize) -> u32 {
    match n {
        0..42 => 2,
        42..63 => 3,
        63..90 => 4,
        90..130 => 5,
        _ => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-9
    }

    fn shifted(i: u32, by: u32) -> u32 {
        if i < 25 { 0 } else { by }
    }

    #[test]
    fn tests_with_ties_are_those_of_scipy() {
        let values: Vec<_> =
            (0..45).map(|i| f64::from(i * 37 % 101 % 17 + shifted(i, 5))).collect();
        let ranks = Ranks::of(&values);
        let parts: Vec<_> = ranks.parts().collect();
        assert_eq!((parts.len(), &parts[0], &parts[6]), (7, &(0..6), &(38..45)));
        // SciPy 1.17: kruskal of these parts, mannwhitneyu(first 22, rest, use_continuity=False,
        // method='asymptotic').
        assert!(near(ranks.kruskal_wallis_p(1.0), 0.121_208_027_816_239_61));
        assert!(near(ranks.halves_p(1.0), 0.006_243_515_344_533_095));
    }

    #[test]
    fn pettitts_test_is_his_formula_without_ties() {
        let value = |i| f64::from(i * 37 % 101 + shifted(i, 40)) + 1e-3 * f64::from(i);
        let values: Vec<_> = (0..45).map(value).collect();
        let ranks = Ranks::of(&values);
        let (before, most) = ranks.change_point();
        let p = ranks.pettitt_p(most, 1.0);
        // K = 330 from the signs of all pairs: 2 exp(-6 K^2 / (n^3 + n^2)).
        assert!(before == 24 && near(p, 0.001_797_523_179_461_680_8), "{before} {p}");
    }

    #[test]
    fn correlation_is_seen_within_parts_and_drift_is_not() {
        let mut random = crate::random::Random::new(3);
        let mut noise = || f64::from(u32::try_from(random.below(1_000_000)).unwrap()) / 1e6;
        let independent: Vec<_> = (0..20_000).map(|_| noise()).collect();
        let stepped: Vec<_> = independent
            .iter()
            .enumerate()
            .map(|(i, v)| v + if i < 10_000 { 0.0 } else { 3.0 })
            .collect();
        let mut sum = 0.0;
        let correlated: Vec<_> = independent
            .iter()
            .map(|value| {
                sum = 0.5 * sum + value;
                sum
            })
            .collect();
        let of = |values: &[f64]| {
            let ranks = Ranks::of(values);
            (ranks.within_parts, ranks.beside(ranks.change_point().0), ranks.reach())
        };
        let (parts, beside, reach) = of(&independent);
        assert!(parts < 0.03 && beside < 0.03 && reach == 1, "{parts} {beside} {reach}");
        // Of 13 parts one holds the step.
        let (parts, beside, _) = of(&stepped);
        assert!(parts < 0.3 && beside < 0.03, "{parts} {beside}");
        // Of ranks it is a little less than of values.
        let (parts, beside, reach) = of(&correlated);
        assert!((0.45..0.52).contains(&parts) && (0.45..0.52).contains(&beside));
        assert_eq!(reach, 5);
    }

    #[test]
    fn a_burst_is_where_it_is() {
        let mut random = crate::random::Random::new(4);
        let mut noise = || f64::from(u32::try_from(random.below(1_000_000)).unwrap());
        let mut values: Vec<_> = (0..600).map(|_| noise()).collect();
        let (_, p) = Ranks::of(&values).burst().unwrap();
        assert!(p > 0.01, "{p}");
        values[200..210].iter_mut().for_each(|value| *value += 2e6);
        let (at, p) = Ranks::of(&values).burst().unwrap();
        assert!(at == 200 && p < 1e-4, "{at} {p}");
        assert_eq!(Ranks::of(&values[..39]).burst(), None);
    }

    #[test]
    fn equal_values_say_nothing() {
        let ranks = Ranks::of(&[7.0; 30]);
        assert_eq!((ranks.pettitt().1, ranks.halves(), ranks.kruskal_wallis()), (1.0, 1.0, 1.0));
        assert_eq!((ranks.reach(), Ranks::of(&[7.0; 60]).burst()), (1, Some((0, 1.0))));
    }
}
