//! Pseudo-random numbers that are the same for the same seed: SplitMix64 (Steele, Lea and
//! Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).

/// What the state grows by with each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number that follows `state`.
#[must_use]
pub const fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A sequence of numbers. Neighbouring seeds have unrelated ones.
#[derive(Debug, Clone, Copy)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number, any of 64 bits.
    #[inline(always)]
    pub const fn word(&mut self) -> u64 {
        let word = mix(self.state);
        self.state = self.state.wrapping_add(STEP);
        word
    }

    /// A number below `limit`, each equally likely but for one part in 2^64 / `limit`; 0 if
    /// `limit` is 0.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the high half of the product")]
    pub const fn below(&mut self, limit: u64) -> u64 {
        ((self.word() as u128 * limit as u128) >> 64) as u64
    }

    /// True with the probability 1 / `n`.
    #[inline(always)]
    pub const fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_reference() {
        // splitmix64.c of Sebastiano Vigna, seed 1234567.
        let mut random = Random::new(1_234_567);
        for word in
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        {
            assert_eq!(random.word(), word);
        }
    }

    #[test]
    fn all_numbers_below_a_limit_come_equally_often() {
        let mut random = Random::new(1);
        let numbers: Vec<_> = (0..100_000).map(|_| random.below(10)).collect();
        for limit in 0..10 {
            let times = numbers.iter().filter(|&&number| number == limit).count();
            // The standard deviation is 95.
            assert!(times.abs_diff(10_000) < 500, "{limit}: {times}");
        }
        assert!(numbers.iter().all(|&number| number < 10));
    }
}
