//! Late seconds: episodes of them, and whether these come in any order.

use std::collections::BTreeSet;

use super::chance::of_each;
use crate::random::Random;

/// Distances of pairs that are counted, s.
const NEAR: u64 = 10;
const FAR: u64 = 60;

/// Parts of the cell in which episodes are counted.
const PARTS: u64 = 13;

/// Pairs are also counted up to this share of the cell.
const SHARE: u64 = 12;

/// Fewer episodes have no order.
const FEWEST: usize = 3;
/// More take too long to draw: the maxima of the seconds show what theirs would.
const MOST: usize = 4_000;

const SEED: u64 = 1;

/// The late seconds of a cell: adjacent ones are one episode, since a disturbance that lasts a
/// few seconds, or crosses the end of one, is no drift; and so are those that are so near that
/// seconds resemble each other.
///
/// Time is counted in seconds in which an episode can begin. An episode then takes none: if their order is
/// chance, every choice of as many different instants is equally likely, however long each lasts.
#[derive(Debug)]
pub(super) struct LateOrder {
    /// When each begins, ascending.
    starts: Vec<u64>,
    /// The instants at which one can begin.
    slots: u64,
}

/// The probabilities of orders that are at least as unequal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ByChance {
    pub(super) halves: f64,
    pub(super) parts: f64,
    /// Of pairs, by [`LateOrder::distances`].
    pub(super) pairs: [f64; 3],
}

impl LateOrder {
    /// Of late seconds among so many; those at most `gap` apart, 1 or more, are one episode.
    pub(super) fn of(late: &BTreeSet<u64>, seconds: u64, gap: u64) -> Self {
        let mut starts = Vec::new();
        // Seconds in which no other one can begin: those of episodes, and those right behind them.
        let mut taken = 0_u64;
        let mut before: Option<u64> = None;
        for second in late {
            match before.map(|before| second - before) {
                Some(apart) if apart <= gap => taken += apart,
                Some(_) => {
                    taken = taken.saturating_add(gap);
                    starts.push(second.saturating_sub(taken));
                }
                None => starts.push(*second),
            }
            before = Some(*second);
        }
        let taken = taken.saturating_add(u64::from(before.is_some()));
        let slots = seconds.saturating_sub(taken).saturating_add(1);
        Self { starts, slots }
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn in_first_half(&self) -> usize {
        in_first_half(&self.starts, self.slots)
    }

    /// How many begin in each part.
    pub(super) fn parts(&self) -> [u64; 13] {
        parts(&self.starts, self.slots)
    }

    /// The distances up to which pairs are counted, s.
    pub(super) fn distances(&self) -> [u64; 3] {
        distances(self.slots)
    }

    /// Pairs that begin within so many seconds of each other.
    pub(super) fn pairs(&self, within: u64) -> u64 {
        pairs(&self.starts, within)
    }

    /// How many such pairs there are on average if their order is chance.
    #[allow(clippy::cast_precision_loss, reason = "one decimal is shown")]
    pub(super) fn pairs_by_chance(&self, within: u64) -> f64 {
        let (k, slots) = (self.starts.len() as f64, self.slots as f64);
        let within = within.min(self.slots - 1) as f64;
        let near = within * slots - within * (within + 1.0) / 2.0;
        k * (k - 1.0) / 2.0 * near / (slots * (slots - 1.0) / 2.0)
    }

    /// How probable such orders are by chance, from random ones. None of fewer than 3 episodes, or
    /// more than 4,000.
    pub(super) fn by_chance(&self) -> Option<ByChance> {
        let k = self.starts.len();
        if !(FEWEST..=MOST).contains(&k) || self.slots < 4 * FAR {
            return None;
        }
        let found = unequal(&self.starts, self.slots);
        let mut random = Random::new(SEED);
        let mut starts = Vec::with_capacity(2 * k);
        let p = of_each(|| {
            draw(&mut starts, k, self.slots, &mut random);
            let drawn = unequal(&starts, self.slots);
            std::array::from_fn(|count| drawn[count] >= found[count])
        });
        let [halves, parts, near, far, widest] = p;
        Some(ByChance { halves, parts, pairs: [near, far, widest] })
    }
}

/// So many different instants, ascending.
fn draw(starts: &mut Vec<u64>, count: usize, slots: u64, random: &mut Random) {
    // Of nearly all of them the last ones would take long to hit.
    if count as u64 > slots / 2 {
        draw_few(starts, usize::try_from(slots).unwrap_or(0).saturating_sub(count), slots, random);
        let left_out: BTreeSet<u64> = starts.drain(..).collect();
        starts.extend((0..slots).filter(|slot| !left_out.contains(slot)));
    } else {
        draw_few(starts, count, slots, random);
    }
}

fn draw_few(starts: &mut Vec<u64>, count: usize, slots: u64, random: &mut Random) {
    starts.clear();
    while starts.len() < count {
        let missing = count - starts.len();
        starts.extend((0..missing).map(|_| random.below(slots)));
        starts.sort_unstable();
        starts.dedup();
    }
}

/// How unequal an order is, by each of the tests.
fn unequal(starts: &[u64], slots: u64) -> [u64; 5] {
    let first = in_first_half(starts, slots) as u64;
    let squares = parts(starts, slots).iter().map(|number| number * number).sum();
    let halves = (2 * first).abs_diff(starts.len() as u64);
    let [near, far, widest] = distances(slots).map(|within| pairs(starts, within));
    [halves, squares, near, far, widest]
}

fn distances(slots: u64) -> [u64; 3] {
    [NEAR, FAR, slots / SHARE]
}

fn in_first_half(starts: &[u64], slots: u64) -> usize {
    starts.partition_point(|start| *start < slots / 2)
}

fn parts(starts: &[u64], slots: u64) -> [u64; 13] {
    let mut parts = [0; 13];
    for start in starts {
        let part = u128::from(*start) * u128::from(PARTS) / u128::from(slots);
        if let Some(number) = usize::try_from(part).ok().and_then(|part| parts.get_mut(part)) {
            *number += 1;
        }
    }
    parts
}

fn pairs(starts: &[u64], within: u64) -> u64 {
    let mut from = 0;
    let mut pairs = 0;
    for (number, start) in starts.iter().enumerate() {
        while start - starts[from] > within {
            from += 1;
        }
        pairs += (number - from) as u64;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(late: &[u64], seconds: u64) -> LateOrder {
        LateOrder::of(&late.iter().copied().collect(), seconds, 1)
    }

    #[test]
    fn adjacent_late_seconds_are_one_episode_that_takes_no_time() {
        let late = of(&[3, 4, 5, 7, 100, 101], 300);
        assert_eq!((&late.starts[..], late.slots), (&[3, 4, 96][..], 295));
        assert_eq!((late.pairs(10), late.pairs(100)), (1, 3));
        assert_eq!((late.in_first_half(), late.parts()[0], late.parts()[4]), (3, 2, 1));
    }

    #[test]
    fn late_seconds_that_resemble_each_other_are_one_episode() {
        let late = LateOrder::of(&[3, 5, 20, 60].into_iter().collect(), 300, 15);
        // The first lasts from 3 to 20; from there to 35 none begins.
        assert_eq!((&late.starts[..], late.slots), (&[3, 28][..], 268));
        // With every second of a cell late, and a gap longer than it.
        let all = LateOrder::of(&(0..50).collect(), 50, 99);
        assert_eq!((&all.starts[..], all.slots), (&[0][..], 1));
    }

    #[test]
    fn as_many_instants_are_drawn_as_there_are() {
        let (mut starts, mut random) = (Vec::new(), Random::new(3));
        for (count, slots) in [(0, 10), (3, 1_000), (6, 10), (1_800, 1_801), (10, 10)] {
            draw(&mut starts, count, slots, &mut random);
            assert_eq!(starts.len(), count);
            assert!(starts.is_sorted_by(|a, b| a < b) && starts.iter().all(|at| *at < slots));
        }
    }

    #[test]
    fn pairs_by_chance_are_their_mean_over_all_orders() {
        // All 45 pairs of 10 instants: 9 + 8 + 7 are within 3.
        let late = LateOrder { starts: vec![0, 1, 2], slots: 10 };
        assert!((late.pairs_by_chance(3) - 3.0 * 24.0 / 45.0).abs() < 1e-12);
    }

    #[test]
    fn the_probability_of_halves_is_the_hypergeometric_one() {
        // 9 of 10 in one half of 400 instants, two-sided: 2 (C(200,9) C(200,1) + C(200,10)) /
        // C(400,10) = 0.0200.
        let late: Vec<u64> = (0..9).map(|i| 20 * i).chain([350]).collect();
        let p = of(&late, 400 + 10 - 1).by_chance().unwrap().halves;
        assert!((0.012..0.027).contains(&p), "{p}");
    }

    #[test]
    fn few_episodes_and_short_cells_have_no_order() {
        assert_eq!(of(&[3, 50], 600).by_chance(), None);
        assert_eq!(of(&[3, 50, 70], 200).by_chance(), None);
        assert!(of(&[3, 50, 70], 600).by_chance().is_some());
        assert_eq!(of(&[u64::MAX - 1], u64::MAX).count(), 1);
    }
}
