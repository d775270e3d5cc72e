//! The median of repetitions, with a confidence interval by order statistics.

use super::bounds::quantile_ranks;
use super::quantile::Quantile;

/// A median and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    /// The median: the lower of the two in the middle of an even number.
    pub value: f64,
    /// The interval of the median, which makes no assumption on the distribution; none with
    /// too few values for the confidence (6 for 95 %).
    pub interval: Option<(f64, f64)>,
    /// Half the distance of the quartiles over the median; none with fewer than 4 values
    /// or a median of 0.
    pub spread: Option<f64>,
}

impl Median {
    /// The median of `values`, with a two-sided interval at `confidence`; none of no values.
    #[must_use]
    pub fn of(values: &[f64], confidence: f64) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let value = *sorted.get(sorted.len().checked_sub(1)? / 2)?;
        let at = |rank: u64| sorted.get(usize::try_from(rank).ok()?.checked_sub(1)?).copied();
        let interval = quantile_ranks(sorted.len() as u64, Quantile::P50, confidence)
            .and_then(|(low, high)| Some((at(low)?, at(high)?)));
        let quartile = |n: usize| sorted[(sorted.len() - 1) * n / 4];
        let spread =
            (sorted.len() >= 4 && value != 0.0).then(|| (quartile(3) - quartile(1)) / 2.0 / value);
        Some(Self { value, interval, spread })
    }

    /// This median less that of independent values, without a spread. The intervals are combined by
    /// MOVER (Zou and Donner, "Construction of confidence limits about effect measures: a general
    /// approach", Statistics in Medicine 27, 2008, section 2): each end is as far from the difference
    /// as the root of the squares of the two distances that work together there.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let value = self.value - other.value;
        let interval = self.interval.zip(other.interval).map(|(one, two)| {
            let below = (self.value - one.0).hypot(two.1 - other.value);
            let above = (one.1 - self.value).hypot(other.value - two.0);
            (value - below, value + above)
        });
        Self { value, interval, spread: None }
    }

    /// The width of the interval over the median; none if there is none.
    #[must_use]
    pub fn relative_width(&self) -> Option<f64> {
        self.interval.filter(|_| self.value > 0.0).map(|(low, high)| (high - low) / self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn eleven_values_have_an_interval_from_the_second_to_the_tenth() {
        let values: Vec<_> = (1..=11).rev().map(f64::from).collect();
        let median = Median::of(&values, 0.95).unwrap();
        // binom.ppf(0.025, 11, 0.5) = 2, binom.ppf(0.975, 11, 0.5) + 1 = 10.
        assert_eq!((median.value, median.interval), (6.0, Some((2.0, 10.0))));
        assert_eq!(median.relative_width(), Some(8.0 / 6.0));
    }

    #[test]
    fn a_difference_has_the_uncertainty_of_both() {
        let of = |value, interval| Median { value, interval, spread: Some(0.1) };
        let one = of(10.0, Some((7.0, 13.0)));
        let difference = one.minus(&of(2.0, Some((-2.0, 6.0))));
        assert_eq!((difference.value, difference.interval), (8.0, Some((3.0, 13.0))));
        // What is known exactly adds none.
        assert_eq!(one.minus(&of(2.0, Some((2.0, 2.0)))).interval, Some((5.0, 11.0)));
        assert_eq!(one.minus(&of(2.0, None)).interval, None);
    }

    #[test]
    fn few_values_have_no_interval() {
        assert_eq!(Median::of(&[], 0.95), None);
        let five = Median::of(&[1.0; 5], 0.95).unwrap();
        assert_eq!((five.interval, five.spread), (None, Some(0.0)));
        assert!(Median::of(&[1.0; 6], 0.95).unwrap().interval.is_some());
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(values in prop::collection::vec(0.0_f64..1e9, 6..200)) {
            let median = Median::of(&values, 0.95).unwrap();
            let (low, high) = median.interval.unwrap();
            prop_assert!(low <= median.value && median.value <= high);
        }
    }
}
