//! From values to places on paper: scales and their ticks.

/// A mapping of the values `low..=high` to the places `from..=to` (which may
/// run backwards, as upward axes of SVG do).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The value that it marks.
    pub value: f64,
    /// Whether it is one of those that carry a label.
    pub labelled: bool,
}

impl Scale {
    /// A linear scale with exactly these ends.
    #[must_use]
    pub fn exact(low: f64, high: f64, from: f64, to: f64) -> Self {
        let (low, high) = widened(low, high);
        Self { log: false, low, high, from, to }
    }

    /// A logarithmic scale whose ends are moved outward to 1, 2 or 5 times a
    /// power of ten. Both ends must be above zero; what is not becomes tiny.
    #[must_use]
    pub fn log(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = round_down(low.max(f64::MIN_POSITIVE));
        let mut high = round_up(high.max(low));
        if high <= low {
            high = round_up(low * 2.0);
        }
        Self { log: true, low, high, from, to }
    }

    /// The smallest value of the scale.
    #[must_use]
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The largest value of the scale.
    #[must_use]
    pub fn high(&self) -> f64 {
        self.high
    }

    /// The place of a value. Values outside the scale land on its ends.
    #[must_use]
    pub fn map(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// Ticks in ascending order, at least two and at most `most` (from 3) of them labelled.
    #[must_use]
    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        let most = most.max(3);
        if self.log
            && let Some(ticks) = self.log_ticks(most)
        {
            return ticks;
        }
        let mut step = step_of((self.high - self.low) / most as f64);
        while ((self.high - self.low) / step).floor() + 1.0 > most as f64 {
            step = step_of(step * 1.5);
        }
        self.multiples(step)
    }

    /// Labelled ticks at all multiples of `step`.
    #[must_use]
    pub fn multiples(&self, step: f64) -> Vec<Tick> {
        let mut ticks = Vec::new();
        let mut k = (self.low / step - 1e-9).ceil();
        // `k * step`, not a running sum: errors would add up.
        while k * step <= self.high + step * 1e-9 {
            ticks.push(Tick { value: if k == 0.0 { 0.0 } else { k * step }, labelled: true });
            k += 1.0;
        }
        ticks
    }

    fn log_ticks(&self, most: usize) -> Option<Vec<Tick>> {
        let all: Vec<(f64, i32, u32)> = decades(self.low, self.high)
            .flat_map(|e| (1..10_u32).map(move |m| (f64::from(m) * power(e), e, m)))
            .filter(|(v, ..)| *v >= self.low * (1.0 - 1e-9) && *v <= self.high * (1.0 + 1e-9))
            .collect();
        let one_two_five = |_: i32, m: u32| matches!(m, 1 | 2 | 5);
        let fits = |least: usize, labelled: &dyn Fn(i32, u32) -> bool| {
            (least..=most).contains(&all.iter().filter(|(_, e, m)| labelled(*e, *m)).count())
        };
        let ticks = |labelled: &dyn Fn(i32, u32) -> bool| {
            let tick = |(value, e, m): &(f64, i32, u32)| Tick {
                value: *value,
                labelled: labelled(*e, *m),
            };
            // Over many decades the marks between them would be a smear.
            let many = all.len() > 60;
            all.iter().filter(|(.., m)| !many || *m == 1).map(tick).collect()
        };
        if fits(3, &|_, _| true) {
            return Some(ticks(&|_, _| true));
        }
        if fits(3, &one_two_five) {
            return Some(ticks(&one_two_five));
        }
        (1..40)
            .find(|every| fits(2, &|e, m| m == 1 && e % every == 0))
            .map(|every| ticks(&|e, m| m == 1 && e % every == 0))
    }
}

fn decades(low: f64, high: f64) -> impl Iterator<Item = i32> {
    exponent(low)..=exponent(high) + 1
}

#[allow(clippy::cast_possible_truncation, reason = "the logarithm of a float is below 1100")]
fn exponent(value: f64) -> i32 {
    value.log10().floor() as i32
}

/// A power of ten; negative ones by division, which is exact to the last digit.
fn power(e: i32) -> f64 {
    if e < 0 { 1.0 / 10_f64.powi(-e) } else { 10_f64.powi(e) }
}

fn widened(low: f64, high: f64) -> (f64, f64) {
    if high > low {
        (low, high)
    } else {
        let room = low.abs().max(1.0) * 0.1;
        (low - room, low + room)
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `value`.
fn step_of(value: f64) -> f64 {
    round_up(value.max(f64::MIN_POSITIVE))
}

fn round_up(value: f64) -> f64 {
    candidates(value).find(|c| *c >= value * (1.0 - 1e-12)).unwrap_or(value)
}

fn round_down(value: f64) -> f64 {
    candidates(value).filter(|c| *c <= value * (1.0 + 1e-12)).last().unwrap_or(value)
}

fn candidates(value: f64) -> impl Iterator<Item = f64> {
    let e = exponent(value);
    (e - 1..=e + 1).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * power(e)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ends_are_round() {
        let s = Scale::log(14_000.0, 104_100.0, 0.0, 100.0);
        assert_eq!((s.low(), s.high()), (10_000.0, 200_000.0));
    }

    #[test]
    fn labels_are_decades_where_there_are_many() {
        let labelled: Vec<_> = Scale::log(1.0, 1e9, 0.0, 1.0)
            .ticks(7)
            .into_iter()
            .filter(|t| t.labelled)
            .map(|t| t.value)
            .collect();
        assert_eq!(labelled, [1.0, 1e2, 1e4, 1e6, 1e8]);
    }

    fn check(scale: Scale, most: usize) -> Result<(), TestCaseError> {
        let ticks = scale.ticks(most);
        let labelled: Vec<_> = ticks.iter().filter(|t| t.labelled).collect();
        prop_assert!((2..=most).contains(&labelled.len()), "{scale:?} {labelled:?}");
        let span = scale.high() - scale.low();
        for pair in ticks.windows(2) {
            prop_assert!(pair[0].value < pair[1].value);
        }
        for tick in &ticks {
            prop_assert!(tick.value >= scale.low() - span * 1e-6);
            prop_assert!(tick.value <= scale.high() + span * 1e-6);
        }
        // No stretch longer than half of the axis goes without a label.
        let mut places: Vec<_> = labelled.iter().map(|t| scale.map(t.value)).collect();
        places.extend([0.0, 1.0]);
        places.sort_by(f64::total_cmp);
        let widest = places.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max);
        prop_assert!(widest <= 0.7, "{scale:?} {widest}");
        Ok(())
    }

    proptest! {
        #[test]
        fn log_ticks_cover_the_scale(low in 0.0_f64..15.0, span in 0.0_f64..12.0, most in 5_usize..12) {
            check(Scale::log(10_f64.powf(low), 10_f64.powf(low + span), 0.0, 1.0), most)?;
        }

        #[test]
        fn linear_ticks_cover_the_scale(low in -1e9_f64..1e9, span in 0.0_f64..1e9, most in 5_usize..12) {
            check(Scale::exact(low, low + span, 0.0, 1.0), most)?;
        }

        #[test]
        fn mapping_is_monotone(a in 1.0_f64..1e12, b in 1.0_f64..1e12) {
            for scale in [Scale::log(1.0, 1e12, 500.0, 20.0), Scale::exact(1.0, 1e12, 20.0, 500.0)] {
                let (x, y) = (scale.map(a), scale.map(b));
                prop_assert!((20.0..=500.0).contains(&x));
                let rising = scale.map(1e12) > scale.map(1.0);
                prop_assert!(a == b || (a < b) == ((x < y) == rising) || (x - y).abs() < 1e-9);
            }
        }
    }
}
