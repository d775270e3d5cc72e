//! Aimed releases: one release of a run is moved to a given instant, and is the last one.
//!
//! A virtual board repeats itself exactly up to a release that is moved, so releases can be aimed
//! at what the board is doing at an instant. That holds only if everything before that release
//! takes the same instructions whatever is aimed at, and if nothing is. So none is an aim like any
//! other ([`Aim::NONE`]), the text of all has one length, and no branch before depends on which it
//! is.

use std::hint::black_box;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::units::grouped;

/// A release that is moved to a given instant. Those before it stay where they are, and none
/// comes after it.
///
/// Its text is its three numbers in hexadecimal with 8, 16 and 16 digits, and dots between them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Aim {
    /// Index of its cell in the plan, from 0.
    pub cell: u32,
    /// Number of the release of the cell's only thread, from 1; 0 for none. All places of the
    /// schedule count, those that earlier samples missed too.
    pub release: u64,
    /// The instant, ns since that of the first release before it is dithered.
    pub at_ns: u64,
}

impl Aim {
    /// At no release: for what a board gets, where an [`Option`] would need a branch.
    pub const NONE: Self = Self { cell: 0, release: 0, at_ns: 0 };

    /// Whether it is the aim at a release.
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.release > 0
    }

    /// It, if it is one at a release of the cell with this index; otherwise one at none. Both take
    /// the same instructions.
    #[must_use]
    pub fn in_cell(self, number: usize) -> Self {
        let here = u64::from(u64::from(self.cell) == number as u64).wrapping_neg();
        // A compiler that sees through the mask makes a branch of it.
        Self { release: self.release & black_box(here), ..self }
    }

    /// The instant in seconds, such as `1.49381 s`.
    #[must_use]
    pub fn at(self) -> String {
        let seconds = format!("{}.{:09}", self.at_ns / 1_000_000_000, self.at_ns % 1_000_000_000);
        format!("{} s", seconds.trim_end_matches('0').trim_end_matches('.'))
    }

    /// Such as `release 1,491 of cell 2 at 1.49381 s`.
    #[must_use]
    pub fn words(self) -> String {
        format!("release {} of cell {} at {}", grouped(self.release), self.cell, self.at())
    }

    fn text(self) -> [u8; LENGTH] {
        let mut text = [b'.'; LENGTH];
        let numbers = [u64::from(self.cell), self.release, self.at_ns];
        for (number, digits) in numbers.into_iter().zip(DIGITS) {
            for (place, digit) in text[digits].iter_mut().rev().enumerate() {
                let value = usize::try_from((number >> (4 * place)) & 15).unwrap_or(0);
                *digit = b"0123456789abcdef"[value];
            }
        }
        text
    }

    /// Reads what [`Aim::text`] has written.
    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            "aim: must be three numbers of 8, 16 and 16 lower-case hexadecimal digits, with a dot \
             between them"
                .to_owned()
        };
        let bytes: &[u8; LENGTH] = text.as_bytes().try_into().map_err(|_| wrong())?;
        // Letters differ from numerals in bit 6. What is neither does not come back as it was.
        let value = |digit: &u8| u64::from((digit & 15) + 9 * (digit >> 6));
        let [cell, release, at_ns] =
            DIGITS.map(|of| bytes[of].iter().fold(0, |number, digit| number << 4 | value(digit)));
        let aim = Self { cell: u32::try_from(cell).map_err(|_| wrong())?, release, at_ns };
        if aim.text() == *bytes { Ok(aim) } else { Err(wrong()) }
    }
}

const LENGTH: usize = 42;

/// Where each number is in the text.
const DIGITS: [Range<usize>; 3] = [0..8, 9..25, 26..42];

impl TryFrom<String> for Aim {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text)
    }
}

impl From<Aim> for String {
    fn from(aim: Aim) -> Self {
        aim.text().map(char::from).iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AIM: Aim = Aim { cell: 2, release: 1_491, at_ns: 1_493_810_000 };

    #[test]
    fn its_text_and_its_words() {
        assert_eq!(String::from(AIM), "00000002.00000000000005d3.000000005909bb50");
        assert_eq!(AIM.words(), "release 1,491 of cell 2 at 1.49381 s");
        assert_eq!(Aim { at_ns: 20_000_000_000, ..AIM }.at(), "20 s");
        assert_eq!(Aim { at_ns: 0, ..AIM }.at(), "0 s");
    }

    #[test]
    fn it_is_one_in_its_own_cell_only() {
        assert_eq!(AIM.in_cell(2), AIM);
        assert!([0, 1, 3, usize::MAX].iter().all(|other| !AIM.in_cell(*other).is_some()));
        assert!(!Aim::NONE.in_cell(0).is_some());
    }

    #[test]
    fn damaged_text_is_refused_with_words() {
        let whole = String::from(AIM);
        for (place, _) in whole.char_indices() {
            for wrong in ["g", "F", "/", ":", "`", "@", "\u{7f}", ",", "+", " ", "\0", "ä", ""] {
                let mut text = whole.clone();
                text.replace_range(place..=place, wrong);
                let error = Aim::try_from(text.clone()).unwrap_err();
                assert!(error.contains("8, 16 and 16 lower-case"), "{text}: {error}");
            }
        }
        for text in ["", "0", &format!("{whole}0")] {
            assert!(Aim::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn an_aim_comes_back_from_its_text(cell: u32, release: u64, at_ns: u64) {
            let aim = Aim { cell, release, at_ns };
            let text = String::from(aim);
            prop_assert_eq!(&text, &format!("{cell:08x}.{release:016x}.{at_ns:016x}"));
            prop_assert_eq!(Aim::try_from(text), Ok(aim));
        }
    }
}
