//! How much was late by batches of seconds, whose means bound the share of activations that is late.
//!
//! What makes activations late comes in spells, so that neither activations nor seconds are
//! independent. Means of batches of seconds nearly are, if a batch is long against a spell (G. S.
//! Fishman, Management Science 24 (1978) 510): batches are doubled until neighbours are
//! uncorrelated. The bounds are Student's, the upper one with the first term for skewness (N. J.
//! Johnson, Journal of the American Statistical Association 73 (1978) 536), without which it is too
//! low, since few batches hold most of what is late.

use std::collections::{BTreeMap, BTreeSet};

use super::bounds::real;
use super::student::student_quantile;
use crate::block::Spell;
use crate::schema::Batches;
use crate::units::SECOND_NS;

/// Fewer seconds with something late say nothing of a share.
pub const LEAST_SECONDS_LATE: u64 = 30;

/// In fewer batches they are too few spells.
pub const LEAST_BATCHES_LATE: u64 = 20;

/// Late activations by second, of those seconds that have any.
type BySeconds = BTreeMap<u64, f64>;

/// The batches of the seconds of `span_ns`, of the size from which on neighbours are uncorrelated
/// (by one standard error). `None` if there are fewer than [`LEAST_SECONDS_LATE`] seconds with
/// something late, or than [`LEAST_BATCHES_LATE`] batches. If only `observed_ns` of the span were
/// observed, numbers are those of as much time, all of it observed.
pub(super) fn batches(spells: &[Spell], span_ns: u64, observed_ns: u64) -> Option<Batches> {
    let mut late = by_seconds(spells, span_ns / SECOND_NS);
    if (late.len() as u64) < LEAST_SECONDS_LATE {
        return None;
    }
    let (mut seconds, mut number) = (1, span_ns / SECOND_NS);
    let seen = real(observed_ns.max(1)) / real(span_ns.max(1));
    while late.len() as u64 >= LEAST_BATCHES_LATE {
        let found = OfBatches::of(&late, number);
        if found.correlation <= 1.0 / real(number).sqrt() {
            return Some(Batches {
                seconds,
                number,
                late: late.len() as u64,
                mean: found.mean / seen,
                deviation: found.deviation / seen,
                skewness: found.skewness,
            });
        }
        (seconds, number) = (seconds * 2, number / 2);
        let mut doubled = BySeconds::new();
        for (place, count) in late.range(..number * 2) {
            *doubled.entry(place / 2).or_default() += count;
        }
        late = doubled;
    }
    None
}

/// What is late in a spell is spread evenly over its time.
fn by_seconds(spells: &[Spell], seconds: u64) -> BySeconds {
    let mut late = BySeconds::new();
    for spell in spells {
        let length = real(spell.to.saturating_sub(spell.from).saturating_add(1));
        for second in spell.from / SECOND_NS..(spell.to / SECOND_NS).saturating_add(1).min(seconds)
        {
            let begins = spell.from.max(second * SECOND_NS);
            let ends = spell.to.saturating_add(1).min((second + 1) * SECOND_NS);
            let share = real(ends.saturating_sub(begins)) / length;
            *late.entry(second).or_default() += share * real(spell.late);
        }
    }
    late
}

struct OfBatches {
    mean: f64,
    deviation: f64,
    skewness: f64,
    /// Of neighbours.
    correlation: f64,
}

impl OfBatches {
    /// Of so many batches, all but `late` of which hold nothing.
    fn of(late: &BySeconds, number: u64) -> Self {
        let empty = real(number.saturating_sub(late.len() as u64));
        let mean = late.values().sum::<f64>() / real(number);
        let power = |n: i32| {
            let of_late: f64 = late.values().map(|count| (count - mean).powi(n)).sum();
            of_late + empty * (-mean).powi(n)
        };
        let squares = power(2);
        let of = |place: u64| late.get(&place).copied().unwrap_or(0.0) - mean;
        let pairs: BTreeSet<u64> = late
            .keys()
            .flat_map(|at| [at.saturating_sub(1), *at])
            .filter(|at| at + 1 < number)
            .collect();
        let of_late: f64 = pairs.iter().map(|at| of(*at) * of(at + 1)).sum();
        let of_empty = real(number.saturating_sub(1 + pairs.len() as u64)) * mean * mean;
        let ratio = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
        let variance = squares / real(number);
        Self {
            mean,
            deviation: (squares / real(number.saturating_sub(1).max(1))).sqrt(),
            skewness: ratio(power(3) / real(number), variance.powf(1.5)),
            correlation: ratio(of_late + of_empty, squares),
        }
    }
}

impl Batches {
    /// Bounds, lower and upper and each one-sided, on the number of late activations in a second.
    /// `None` if the numbers are none that batches have.
    #[must_use]
    pub fn bounds(&self, confidence: f64) -> Option<(f64, f64)> {
        let valid = self.late >= LEAST_BATCHES_LATE && self.number >= self.late && self.seconds > 0;
        let numbers = [self.mean, self.deviation, self.skewness];
        if !valid || numbers.iter().any(|number| !number.is_finite()) {
            return None;
        }
        let t = student_quantile(confidence, real(self.number - 1));
        let root = real(self.number).sqrt();
        let error = self.deviation / root;
        let skewed = (self.skewness * (1.0 + 2.0 * t * t) / (6.0 * root)).max(0.0);
        let second = |count: f64| (count / real(self.seconds)).max(0.0);
        Some((second(self.mean - t * error), second(self.mean + (t + skewed) * error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = SECOND_NS;

    fn spell(from: u64, to: u64, late: u64) -> Spell {
        Spell { thread: 0, from, to, late }
    }

    #[test]
    fn what_is_late_belongs_to_the_seconds_of_its_spell() {
        let late = by_seconds(&[spell(S / 2, 2 * S - 1, 30), spell(5 * S, 5 * S, 7)], 60);
        let found: Vec<_> = late.into_iter().map(|(at, count)| (at, count.round())).collect();
        assert_eq!(found, [(0, 10.0), (1, 20.0), (5, 7.0)]);
        // What lies beyond the time that was observed was not.
        assert_eq!(by_seconds(&[spell(0, 6 * S - 1, 6)], 1).len(), 1);
        assert_eq!(by_seconds(&[spell(u64::MAX - 1, u64::MAX, 6)], 60).len(), 0);
    }

    #[test]
    fn moments_are_those_of_all_batches() {
        let late = BySeconds::from([(0, 3.0), (1, 5.0), (4, 1.0), (9, 2.0)]);
        let found = OfBatches::of(&late, 10);
        // NumPy: mean, std(ddof=1), SciPy: skew; the autocovariance at lag 1 over that at 0.
        let all = [3.0, 5.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 2.0];
        let sum = |f: fn(f64) -> f64| all.iter().map(|x| f(x - 1.1)).sum::<f64>();
        let products: f64 = all.windows(2).map(|pair| (pair[0] - 1.1) * (pair[1] - 1.1)).sum();
        let squares = sum(|x| x * x);
        for (found, known) in [
            (found.mean, 1.1),
            (found.deviation, (squares / 9.0).sqrt()),
            (found.skewness, sum(|x| x * x * x) / 10.0 / (squares / 10.0).powf(1.5)),
            (found.correlation, products / squares),
        ] {
            assert!((found - known).abs() < 1e-12, "{found} {known}");
        }
    }

    #[test]
    fn batches_grow_until_neighbours_are_uncorrelated() {
        let alone: Vec<_> =
            (0..60).map(|n| spell((n * 7 + n % 3) * S, (n * 7 + n % 3) * S, 4)).collect();
        let found = batches(&alone, 420 * S, 420 * S).unwrap();
        assert_eq!((found.seconds, found.number, found.late), (1, 420, 60));
        // Spells of 5 s.
        let long: Vec<_> =
            (0..60).map(|n| spell(n * n * S, n * n * S + 5 * S - 1, 5_000)).collect();
        let found = batches(&long, 3_600 * S, 3_600 * S).unwrap();
        assert!(found.seconds >= 8 && found.late >= 20, "{found:?}");
        assert!((found.mean / found.seconds as f64 / (300_000.0 / 3_600.0) - 1.0).abs() < 0.05);
        assert_eq!(batches(&alone[..29], 420 * S, 420 * S), None, "too few seconds");
        // A minute of lateness is one spell.
        assert_eq!(batches(&[spell(0, 60 * S, 60_000)], 3_600 * S, 3_600 * S), None);
    }

    #[test]
    fn the_same_in_each_second_leaves_nothing_open() {
        let each: Vec<_> = (0..600).map(|n| spell(n * S, n * S + S - 1, 5)).collect();
        let bounds = |observed| batches(&each, 600 * S, observed).unwrap().bounds(0.95).unwrap();
        let (lower, upper) = bounds(600 * S);
        assert!((lower - 5.0).abs() < 1e-6 && (upper - 5.0).abs() < 1e-6, "{lower} {upper}");
        // As many in nine tenths of the time.
        let (lower, upper) = bounds(540 * S);
        assert!((lower * 0.9 - 5.0).abs() < 1e-6 && (upper * 0.9 - 5.0).abs() < 1e-6);
    }

    #[test]
    fn numbers_from_elsewhere_claim_nothing() {
        let right =
            Batches { seconds: 1, number: 30, late: 20, mean: 1.0, deviation: 1.0, skewness: 0.0 };
        assert!(right.bounds(0.95).is_some());
        for wrong in [
            Batches { mean: f64::NAN, ..right.clone() },
            Batches { late: 31, ..right.clone() },
            Batches { seconds: 0, ..right.clone() },
            Batches::default(),
        ] {
            assert_eq!(wrong.bounds(0.95), None, "{wrong:?}");
        }
    }
}
