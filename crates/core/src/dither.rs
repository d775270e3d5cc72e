//! Dithered releases: each is moved within its own interval by a seeded, recorded amount.
//!
//! Clocks, ticks and much that delays a wake-up are periodic. Releases with the same period, or
//! with one that it is a multiple of, meet such a delay always or never, depending on their
//! phase, and a measurement that never meets it calls the kernel good. Dithered releases meet
//! it by chance, as do those of the aperiodic sampling of signals (Bilinskis and Mikelsons,
//! Randomized Signal Processing, Prentice Hall 1992).

use std::fmt::Write as _;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::hash::sha256;
use crate::random::Random;

/// Length of the list. A prime: a disturbance whose period is a whole number of intervals, but no
/// multiple of this number, meets all of the list, not a part of it again and again.
pub const OFFSETS: usize = 1_021;

/// By how much the releases of a thread are moved, in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dither {
    /// The seed of the list.
    pub seed: u64,
    /// The list: [`OFFSETS`] fractions of the interval, in 65,536ths; four hexadecimal digits
    /// each, so that changing one changes the length of nothing.
    #[serde(serialize_with = "to_hex", deserialize_with = "from_hex")]
    offsets: Vec<u16>,
}

impl Dither {
    /// The list of a seed: each offset is equally likely anywhere in the interval, except that
    /// two releases are at least a quarter of an interval apart.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut offsets: Vec<u16> = Vec::with_capacity(OFFSETS);
        while offsets.len() < OFFSETS {
            let next = u16::try_from(random.below(1 << 16)).unwrap_or(u16::MAX);
            let follows = offsets.last().is_none_or(|before| are_apart(*before, next));
            // The list is repeated: its first offset comes after its last.
            let leads = offsets.len() + 1 < OFFSETS || are_apart(next, offsets[0]);
            if follows && leads {
                offsets.push(next);
            }
        }
        Self { seed, offsets }
    }

    /// The list in words: its seed, or that it is not the list of its seed any more.
    #[must_use]
    pub fn words(&self) -> String {
        if *self == Self::of_seed(self.seed) {
            return format!("seed {}", self.seed);
        }
        let bytes: Vec<u8> = self.offsets.iter().flat_map(|of| of.to_be_bytes()).collect();
        format!("seed {}, changed ({})", self.seed, &sha256(&bytes)[..8])
    }

    /// By how much releases every `interval` ns are moved, ns: less than an interval each.
    #[must_use]
    pub fn offsets_ns(&self, interval: u64) -> Box<[u64]> {
        self.offsets.iter().map(|of| share(*of, interval)).collect()
    }

    /// By how much the release with this index, from 0, is moved if they come every `interval` ns;
    /// ns.
    #[must_use]
    pub fn offset_ns(&self, index: u64, interval: u64) -> u64 {
        let place = usize::try_from(index % OFFSETS as u64).unwrap_or(0);
        share(self.offsets[place], interval)
    }
}

/// So many 65,536ths of an interval, ns.
fn share(offset: u16, interval: u64) -> u64 {
    u64::try_from((u128::from(interval) * u128::from(offset)) >> 16).unwrap_or(0)
}

/// Whether a release that is moved by `next` is at least a quarter of an interval after the one
/// before it, which is moved by `before`.
fn are_apart(before: u16, next: u16) -> bool {
    u32::from(next) + (1 << 16) >= u32::from(before) + (1 << 14)
}

fn to_hex<S: Serializer>(offsets: &[u16], to: S) -> Result<S::Ok, S::Error> {
    let mut text = String::with_capacity(4 * offsets.len());
    for offset in offsets {
        // Writing to a String cannot fail.
        let _ = write!(text, "{offset:04x}");
    }
    to.serialize_str(&text)
}

fn from_hex<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u16>, D::Error> {
    let text = String::deserialize(from)?;
    let digits = text.as_bytes().chunks(4);
    let number = |four: &[u8]| {
        let plain = four.len() == 4 && four.iter().all(u8::is_ascii_hexdigit);
        plain.then(|| u16::from_str_radix(std::str::from_utf8(four).ok()?, 16).ok())?
    };
    let offsets: Option<Vec<u16>> = digits.map(number).collect();
    offsets.filter(|offsets| offsets.len() == OFFSETS).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "offsets: must be {OFFSETS} times four hexadecimal digits"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_comes_back_from_its_text_and_has_one_length() {
        for seed in [0, 1, u64::MAX] {
            let dither = Dither::of_seed(seed);
            let text = serde_json::to_string(&dither).unwrap();
            assert_eq!(serde_json::from_str::<Dither>(&text).unwrap(), dither);
            assert_eq!(text.len() - seed.to_string().len(), 4 * OFFSETS + 22);
        }
        assert_ne!(Dither::of_seed(1).offsets, Dither::of_seed(2).offsets);
        let mut moved = Dither::of_seed(1);
        assert_eq!(moved.words(), "seed 1");
        moved.offsets[7] ^= 1;
        assert!(moved.words().starts_with("seed 1, changed ("), "{}", moved.words());
        for wrong in ["", "00g0", "+0010000", "ffff"] {
            let text = format!("{{\"seed\":1,\"offsets\":\"{wrong}\"}}");
            let error = serde_json::from_str::<Dither>(&text).unwrap_err().to_string();
            assert!(error.contains("1021 times four"), "{error}");
        }
    }

    #[test]
    fn offsets_are_spread_evenly_and_releases_stay_apart() {
        for seed in 1..=8 {
            let offsets = Dither::of_seed(seed).offsets_ns(1_000_000);
            assert!(offsets.iter().all(|ns| *ns < 1_000_000));
            let dither = Dither::of_seed(seed);
            let repeated = offsets.iter().cycle().zip(0..2_000);
            assert!(repeated.clone().all(|(ns, at)| dither.offset_ns(at, 1_000_000) == *ns));
            for (before, next) in offsets.iter().zip(offsets.iter().cycle().skip(1)) {
                assert!(next + 1_000_000 + 16 >= before + 250_000, "{before} {next}");
            }
            for tenth in 0..10_u64 {
                let here = offsets.iter().filter(|ns| **ns / 100_000 == tenth).count();
                // 102 on average, with a standard deviation of 9.6; the lowest are rarer, since
                // they may not follow the highest.
                assert!((60..150).contains(&here), "seed {seed}: {here} in tenth {tenth}");
            }
        }
    }

    /// The share of lists whose releases of 1 ms meet the first `ns` of one of the events, which
    /// come every `period` releases for 4 s.
    fn found(period: usize, ns: u64) -> f64 {
        let meets = |seed: u64| {
            let offsets = Dither::of_seed(seed).offsets_ns(1_000_000);
            let phase = seed * 7_919 % 1_000_000;
            (0..4_000 / period).any(|event| {
                let offset = offsets[event * period % OFFSETS];
                (offset + 1_000_000 - phase) % 1_000_000 < ns
            })
        };
        let lists: u32 = 400;
        let met: u32 = (0..lists).map(|seed| u32::from(meets(u64::from(seed)))).sum();
        f64::from(met) / f64::from(lists)
    }

    #[test]
    fn no_period_hides_from_dithered_releases() {
        for period in [1, 2, 4, 10, 50, 97, 100] {
            let events = u32::try_from((4_000 / period).min(OFFSETS)).unwrap();
            let expected = 1.0 - 0.9_f64.powf(f64::from(events));
            let found = found(period, 100_000);
            assert!((found - expected).abs() < 0.05, "every {period} ms: {found}, {expected}");
        }
    }
}
