//! Whether the largest maxima come in stretches that last longer than neighbours resemble each
//! other.

use super::chance::of_each;
use crate::random::Random;

/// Neighbours may be correlated up to this distance, or further if that is found, blocks.
const LEAST: usize = 9;

/// Pairs are counted at so many distances.
const DISTANCES: usize = 4;

/// Fewer pieces have no order.
const FEWEST_PIECES: usize = 8;

/// One in so many blocks is among the largest.
const ONE_IN: usize = 10;

/// Fewer have no order.
const FEWEST: usize = 8;

const SEED: u64 = 2;

/// The largest tenth of a series, and the pairs of them that are 9 to 12 blocks apart, or
/// further: just beyond the distance up to which neighbours may be correlated.
#[derive(Debug, PartialEq)]
pub(super) struct Stretches {
    pub(super) largest: usize,
    pub(super) pairs: u64,
    /// Their distances, blocks.
    pub(super) from: usize,
    pub(super) to: usize,
    /// How many there would be if their order were chance.
    pub(super) expected: f64,
    pub(super) p: f64,
}

impl Stretches {
    /// p is the share of orders with as many pairs, among random orders of pieces of 9 blocks: what
    /// lies within a piece stays as it was, so that short correlation makes no stretch (H. R.
    /// Künsch, Annals of Statistics 17, 1989). Pieces are of `reach` blocks if that is more. None if
    /// fewer than 8 blocks are the largest tenth, or there are fewer than 8 pieces.
    #[allow(clippy::cast_precision_loss, reason = "counts of blocks")]
    pub(super) fn of(values: &[f64], reach: usize) -> Option<Self> {
        let from = reach.max(LEAST);
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let bound = *sorted.get(values.len().checked_sub(values.len() / ONE_IN + 1)?)?;
        let is_large: Vec<bool> = values.iter().map(|value| *value > bound).collect();
        let largest = is_large.iter().filter(|large| **large).count();
        let mut pieces: Vec<&[bool]> = is_large.chunks(from).collect();
        if largest < FEWEST || pieces.len() < FEWEST_PIECES {
            return None;
        }
        let found = pairs(&is_large, from);
        let mut random = Random::new(SEED);
        let mut order = Vec::with_capacity(is_large.len());
        let [p] = of_each(|| {
            shuffle(&mut pieces, &mut random);
            order.clear();
            pieces.iter().for_each(|piece| order.extend_from_slice(piece));
            [pairs(&order, from) >= found]
        });
        let (n, to) = (values.len() as f64, from + DISTANCES - 1);
        let places: f64 = (from..=to).map(|lag| values.len().saturating_sub(lag) as f64).sum();
        let expected = places * largest as f64 * (largest as f64 - 1.0) / (n * (n - 1.0));
        Some(Self { largest, pairs: found, from, to, expected, p })
    }
}

fn pairs(is_large: &[bool], from: usize) -> u64 {
    let one = |at: usize| {
        let later = is_large.get(at + from..).unwrap_or_default();
        later.iter().take(DISTANCES).filter(|large| **large).count() as u64
    };
    is_large.iter().enumerate().filter(|(_, large)| **large).map(|(at, _)| one(at)).sum()
}

/// R. A. Fisher and F. Yates' shuffle.
fn shuffle<T>(all: &mut [T], random: &mut Random) {
    for last in (1..all.len()).rev() {
        let with = usize::try_from(random.below(last as u64 + 1)).unwrap_or(last);
        all.swap(last, with);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_nine_to_twelve_apart() {
        let at = |large: &[usize]| (0..40).map(|i| large.contains(&i)).collect::<Vec<_>>();
        assert_eq!(pairs(&at(&[0, 8]), 9), 0);
        assert_eq!(pairs(&at(&[0, 9, 12, 13, 39]), 9), 2);
        assert_eq!(pairs(&at(&[0, 9, 12, 13, 39]), 13), 1);
    }

    #[test]
    fn as_many_pairs_are_expected_as_random_orders_have() {
        let mut random = Random::new(1);
        let mut values: Vec<f64> = (0..200_u32).map(f64::from).collect();
        let mut sum = 0;
        for _ in 0..2_000 {
            shuffle(&mut values, &mut random);
            let found = Stretches::of(&values, 1).unwrap();
            assert_eq!(found.largest, 20);
            sum += found.pairs;
        }
        let expected = Stretches::of(&values, 1).unwrap().expected;
        assert!((sum as f64 / 2_000.0 / expected - 1.0).abs() < 0.03, "{sum} {expected}");
    }

    #[test]
    fn equal_values_and_few_have_no_stretch() {
        assert_eq!(Stretches::of(&[1.0; 500], 1), None);
        assert_eq!(Stretches::of(&[], 1), None);
        let few: Vec<f64> = (0..79_u32).map(f64::from).collect();
        assert_eq!(Stretches::of(&few, 1), None);
        let more: Vec<f64> = (0..200_u32).map(f64::from).collect();
        assert!(Stretches::of(&more, 25).is_some());
        assert_eq!(Stretches::of(&more, 30), None);
    }
}
