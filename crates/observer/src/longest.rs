//! The longest stretches so far.

use crate::arguments::LONGEST_MAX;

/// The lengths of the longest stretches, the shortest of them first.
#[derive(Debug)]
pub struct Longest {
    lengths: [u64; LONGEST_MAX],
    /// How many are kept.
    wanted: u8,
}

impl Longest {
    /// Keeps this many, at most [`LONGEST_MAX`].
    #[must_use]
    pub const fn new(wanted: u8) -> Self {
        Self { lengths: [0; LONGEST_MAX], wanted }
    }

    /// Whether a stretch of this length is among the longest so far, and then counts as one.
    pub fn takes(&mut self, length: u64) -> bool {
        let kept = self.lengths.get_mut(..self.wanted.into()).unwrap_or_default();
        // A sorted list: what is shorter moves down, and the shortest drops out.
        let below = kept.partition_point(|known| *known < length);
        let Some(shorter) = kept.get_mut(..below).filter(|shorter| !shorter.is_empty()) else {
            return false;
        };
        shorter.rotate_left(1);
        if let Some(place) = shorter.last_mut() {
            *place = length;
        }
        true
    }

    /// Forgets all.
    pub const fn clear(&mut self) {
        self.lengths = [0; LONGEST_MAX];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_longest_are_taken() {
        let mut longest = Longest::new(3);
        let taken: Vec<u64> =
            [5, 1, 9, 1, 2, 2, 7, 6, 6, 5].into_iter().filter(|n| longest.takes(*n)).collect();
        assert_eq!(taken, [5, 1, 9, 2, 7, 6]);
        longest.clear();
        assert!(longest.takes(1));
        assert!(!Longest::new(0).takes(u64::MAX));
        assert!(!longest.takes(0));
    }
}
