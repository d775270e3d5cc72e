//! By which factor one median lies above another, with an interval from those of both.

use super::median::Median;

/// A value with its interval: low, value, high.
pub type Known = [f64; 3];

impl Median {
    /// The median between the ends of its interval; none if it has no interval.
    #[must_use]
    pub fn known(&self) -> Option<Known> {
        self.interval.map(|(low, high)| [low, self.value, high])
    }
}

/// The interval of `of` over `base`, two values that were measured independently, each with an
/// interval of the same confidence; that of the result is the same. None unless all are above
/// zero.
///
/// On logarithms the distances to the ends that matter add up as squares do: to the lower end
/// that of `of` downwards and that of `base` upwards. G. Y. Zou and A. Donner, Statistics in
/// Medicine 27 (2008), "Construction of confidence limits about effect measures: a general
/// approach". It is as good as the intervals that it is given.
#[must_use]
pub fn ratio_interval(of: Known, base: Known) -> Option<[f64; 2]> {
    let [low, high] = combined(&[(1.0, of), (-1.0, base)])?;
    let ratio = of[1] / base[1];
    Some([ratio * low, ratio * high])
}

/// The interval of a product of powers of values that were measured independently, over that
/// product: exponent and value of each. See [`ratio_interval`].
#[must_use]
pub fn combined(factors: &[(f64, Known)]) -> Option<[f64; 2]> {
    let (mut below, mut above) = (0.0, 0.0);
    for (power, [low, value, high]) in factors {
        let is_known = *low > 0.0 && low <= value && value <= high && high.is_finite();
        if !is_known {
            return None;
        }
        let ends = [(low / value).ln() * power, (high / value).ln() * power];
        below += f64::min(ends[0], ends[1]).powi(2);
        above += f64::max(ends[0], ends[1]).powi(2);
    }
    Some([(-f64::sqrt(below)).exp(), f64::sqrt(above).exp()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    #[test]
    fn the_worse_ends_of_both_count() {
        // By hand: of ln 2, sqrt(ln(4 / 3)^2 + ln(3 / 2)^2) below and sqrt(ln(6 / 4)^2 + ln(2)^2)
        // above.
        let [low, high] = ratio_interval([3.0, 4.0, 6.0], [1.0, 2.0, 3.0]).unwrap();
        let (below, above) = (0.497_154_8_f64, 0.803_028_6_f64);
        assert!((low - 2.0 * (-below).exp()).abs() < 1e-5, "{low}");
        assert!((high - 2.0 * above.exp()).abs() < 1e-5, "{high}");
    }

    #[test]
    fn what_varies_not_at_all_is_known_exactly() {
        assert_eq!(ratio_interval([3.0; 3], [2.0; 3]), Some([1.5, 1.5]));
        assert_eq!(ratio_interval([2.0; 3], [2.0; 3]), Some([1.0, 1.0]));
        for no in [[0.0, 1.0, 2.0], [-1.0, 1.0, 2.0], [1.0, 3.0, 2.0], [1.0, 1.0, f64::INFINITY]] {
            assert_eq!((ratio_interval(no, [1.0; 3]), ratio_interval([1.0; 3], no)), (None, None));
        }
    }

    fn unit(random: &mut Random) -> f64 {
        (random.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// What repetitions look like: a floor and above it the time that was lost. Its median is
    /// 1 + ln 2 / 5 times the scale.
    fn skewed(random: &mut Random) -> f64 {
        1.0 - unit(random).ln() / 5.0
    }

    /// Box and Muller; its median is the scale.
    fn log_normal(random: &mut Random) -> f64 {
        let (radius, angle) = ((-2.0 * unit(random).ln()).sqrt(), unit(random));
        (0.2 * radius * (2.0 * std::f64::consts::PI * angle).cos()).exp()
    }

    /// One in five repetitions takes twice as long: two modes.
    fn mixed(random: &mut Random) -> f64 {
        log_normal(random) * if random.one_in(5) { 2.0 } else { 1.0 }
    }

    /// How often the interval has the true ratio of 1.3, in `repetitions`, with so many values.
    fn coverage(draw: Draw, [m, n]: [usize; 2], repetitions: u32) -> f64 {
        let mut random = Random::new(7);
        let mut median = |count: usize, scale: f64| {
            let values: Vec<_> = (0..count).map(|_| scale * draw(&mut random)).collect();
            Median::of(&values, 0.95).and_then(|median| median.known()).unwrap()
        };
        let mut held = 0;
        for _ in 0..repetitions {
            let (base, of) = (median(m, 1.0), median(n, 1.3));
            let [low, high] = ratio_interval(of, base).unwrap();
            held += u32::from(low <= 1.3 && 1.3 <= high);
        }
        f64::from(held) / f64::from(repetitions)
    }

    type Draw = fn(&mut Random) -> f64;

    const SHAPES: [(&str, Draw); 3] =
        [("log-normal", log_normal), ("floor and tail", skewed), ("two modes", mixed)];

    /// The interval of a median of 11 has 98.8 % where 95 % are asked for: ranks are whole.
    #[test]
    fn the_interval_has_the_true_ratio_as_often_as_it_says() {
        for (name, draw) in SHAPES {
            for sizes in [[11, 11], [30, 30], [11, 60]] {
                let held = coverage(draw, sizes, 2_000);
                assert!((0.945..=0.999).contains(&held), "{name}, {sizes:?}: {held}");
            }
        }
    }

    /// The table of METHODOLOGY.md.
    #[test]
    #[ignore = "a minute: make calibrate"]
    fn the_coverage_of_cost_ratios() {
        for (name, draw) in SHAPES {
            let sizes = [[6, 6], [11, 11], [30, 30], [100, 100], [11, 60]];
            let held = sizes.map(|sizes| format!("{:.1}", 100.0 * coverage(draw, sizes, 40_000)));
            println!("| {name} | {} |", held.join(" | "));
        }
    }

    /// Repeated as costs are: from 11 on until the interval is at most 2 % wide, 400 at most.
    fn until_narrow(draw: Draw, spread: f64, random: &mut Random) -> Known {
        let mut values = Vec::new();
        loop {
            values.push(draw(random).powf(spread));
            if values.len() < 11 {
                continue;
            }
            let median = Median::of(&values, 0.95).unwrap();
            if values.len() == 400 || median.relative_width().unwrap() <= 0.02 {
                return median.known().unwrap();
            }
        }
    }

    /// The sentence of METHODOLOGY.md on the stop.
    #[test]
    #[ignore = "a minute: make calibrate"]
    fn the_coverage_of_cost_ratios_that_stop() {
        for (name, draw) in &SHAPES[..2] {
            // The exponents leave a spread of about 1, 2 and 5 %.
            let held = [0.05, 0.1, 0.25].map(|spread| {
                let mut random = Random::new(11);
                let mut held = 0;
                for _ in 0..4_000 {
                    let [of, base] = [0, 1].map(|_| until_narrow(*draw, spread, &mut random));
                    let [low, high] = ratio_interval(of, base).unwrap();
                    held += u32::from(low <= 1.0 && 1.0 <= high);
                }
                format!("{:.1}", f64::from(held) / 40.0)
            });
            println!("| {name} | {} |", held.join(" | "));
        }
    }

    proptest! {
        #[test]
        fn an_interval_turned_over_is_that_of_the_other_way(
            a in prop::array::uniform3(0.1_f64..10.0), b in prop::array::uniform3(0.1_f64..10.0)
        ) {
            let sorted = |mut ends: Known| { ends.sort_by(f64::total_cmp); ends };
            let (a, b) = (sorted(a), sorted(b));
            let [low, high] = ratio_interval(a, b).unwrap();
            let [back_low, back_high] = ratio_interval(b, a).unwrap();
            prop_assert!((low * back_high - 1.0).abs() < 1e-9);
            prop_assert!((high * back_low - 1.0).abs() < 1e-9);
            prop_assert!(low <= a[1] / b[1] * (1.0 + 1e-12));
            prop_assert!(a[1] / b[1] <= high * (1.0 + 1e-12));
        }
    }
}
