//! Rank tests of a series: a change point, two halves, many parts.

use std::ops::Range;

use super::super::special::{chi_square_upper, normal_upper};

/// How far correlation is looked for, blocks.
const MOST_LAGS: usize = 8;

/// The ranks of a series of at least 20 values, less their mean; equal values share theirs.
#[derive(Debug)]
pub(super) struct Ranks {
    ranks: Vec<f64>,
    /// The sum of their squares, which ties make smaller.
    squares: f64,
    /// By how much correlation widens the variance of a sum; 1 without.
    wider: f64,
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
        let mut all = Self { ranks, squares, wider: 1.0 };
        all.wider = all.correlation();
        all
    }

    /// A change point by Pettitt's test (p is 1 for values that are all equal, as of all tests),
    /// from the number of values before it, and its p, two-sided: `2 exp(-6 K^2 / (n^3 + n^2))`,
    /// with the variance of ranks in place of that without ties.
    pub(super) fn pettitt(&self) -> (usize, f64) {
        if self.squares <= 0.0 {
            return (0, 1.0);
        }
        let (mut sum, mut most, mut before) = (0.0_f64, 0.0_f64, 0);
        for (number, rank) in self.ranks.iter().enumerate() {
            sum += rank;
            if sum.abs() > most {
                (most, before) = (sum.abs(), number + 1);
            }
        }
        let n = real(self.ranks.len());
        let square = most * most / self.squares * (n - 1.0) / n / self.wider;
        (before, (2.0 * (-2.0 * square).exp()).min(1.0))
    }

    /// p of the rank sum of the first half, two-sided, by its normal approximation.
    pub(super) fn halves(&self) -> f64 {
        if self.squares <= 0.0 {
            return 1.0;
        }
        let n = self.ranks.len();
        let first = &self.ranks[..n / 2];
        let (sum, one) = (first.iter().sum::<f64>(), real(first.len()));
        let variance = self.squares / (real(n) - 1.0) * one * (real(n) - one) / real(n);
        2.0 * normal_upper(sum.abs() / (variance * self.wider).sqrt())
    }

    /// p of Kruskal's and Wallis' H over the parts.
    pub(super) fn kruskal_wallis(&self) -> f64 {
        if self.squares <= 0.0 {
            return 1.0;
        }
        let between = self.parts().map(|part| {
            let (sum, size) = (self.ranks[part.clone()].iter().sum::<f64>(), real(part.len()));
            sum * sum / size
        });
        let h = between.sum::<f64>() * (real(self.ranks.len()) - 1.0) / self.squares;
        chi_square_upper(h / self.wider, half_freedom(self.ranks.len()))
    }

    /// Parts of nearly equal length, in order.
    pub(super) fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let n = self.ranks.len();
        let number = 2 * half_freedom(n) as usize + 1;
        (0..number).map(move |part| part * n / number..(part + 1) * n / number)
    }

    /// By how much short correlation widens the variance of a sum: one plus twice its
    /// autocorrelations, with weights that are 1 up to half of the lags and fall to 0 behind them
    /// (D. N. Politis, J. P. Romano, Journal of Time Series Analysis 16, 1995). They are those
    /// within the parts, since drift itself correlates what is far apart. The mean of a part of m
    /// values takes about f / m from each, where f is the result, which is solved for. At least 1.
    fn correlation(&self) -> f64 {
        let mut within = 0.0;
        let mut products = [(0.0_f64, 0_usize); MOST_LAGS];
        let mut shortest = self.ranks.len();
        let mut number = 0;
        for part in self.parts() {
            let ranks = &self.ranks[part];
            let mean = ranks.iter().sum::<f64>() / real(ranks.len());
            within += ranks.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>();
            for (lag, (sum, pairs)) in (1..).zip(&mut products) {
                let later = ranks.iter().skip(lag);
                *sum += ranks.iter().zip(later).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
                *pairs += ranks.len().saturating_sub(lag);
            }
            shortest = shortest.min(ranks.len());
            number += 1;
        }
        let variance = within / real(self.ranks.len().saturating_sub(number).max(1));
        if variance <= 0.0 {
            return 1.0;
        }
        let lags = (shortest / 6).clamp(1, MOST_LAGS);
        let weights = (1..=lags).map(|lag| (2.0 - 2.0 * real(lag) / real(lags + 1)).min(1.0));
        let (mut sum, mut weight) = (0.0, 0.0);
        for ((product, pairs), of_lag) in products.iter().zip(weights) {
            sum += of_lag * product / real((*pairs).max(1)) / variance;
            weight += of_lag;
        }
        let lost = 2.0 * weight * real(number) / real(self.ranks.len());
        ((1.0 + 2.0 * sum) / (1.0 - lost)).max(1.0)
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

    /// Without the widening by correlation, which no reference has.
    fn plain(values: &[f64]) -> Ranks {
        Ranks { wider: 1.0, ..Ranks::of(values) }
    }

    fn shifted(i: u32, by: u32) -> u32 {
        if i < 25 { 0 } else { by }
    }

    #[test]
    fn tests_with_ties_are_those_of_scipy() {
        let values: Vec<_> =
            (0..45).map(|i| f64::from(i * 37 % 101 % 17 + shifted(i, 5))).collect();
        let ranks = plain(&values);
        let parts: Vec<_> = ranks.parts().collect();
        assert_eq!((parts.len(), &parts[0], &parts[6]), (7, &(0..6), &(38..45)));
        // SciPy 1.17: kruskal of these parts, mannwhitneyu(first 22, rest, use_continuity=False,
        // method='asymptotic').
        assert!(near(ranks.kruskal_wallis(), 0.121_208_027_816_239_61));
        assert!(near(ranks.halves(), 0.006_243_515_344_533_095));
    }

    #[test]
    fn pettitts_test_is_his_formula_without_ties() {
        let value = |i| f64::from(i * 37 % 101 + shifted(i, 40)) + 1e-3 * f64::from(i);
        let values: Vec<_> = (0..45).map(value).collect();
        let (before, p) = plain(&values).pettitt();
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
        assert!(Ranks::of(&independent).wider < 1.3);
        // Of 13 parts one holds the step.
        assert!(Ranks::of(&stepped).wider < 4.0);
        // (1 + r) / (1 - r), of values; a little less of ranks.
        let wider = Ranks::of(&correlated).wider;
        assert!((2.7..3.2).contains(&wider), "{wider}");
    }

    #[test]
    fn equal_values_say_nothing() {
        let ranks = Ranks::of(&[7.0; 30]);
        assert_eq!((ranks.pettitt().1, ranks.halves(), ranks.kruskal_wallis()), (1.0, 1.0, 1.0));
    }
}
