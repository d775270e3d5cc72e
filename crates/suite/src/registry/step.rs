//! Values that are larger or smaller by a factor, for a search for the worst sizes.

use super::param::{Kind, Value};

impl Kind {
    /// The canonical text of a number `factor` times as large, or as small, as `text`, within the
    /// range; of a word its neighbour. `None` at the end of the range, and for what is neither.
    #[must_use]
    pub fn step(&self, text: &str, larger: bool, factor: u64) -> Option<String> {
        let next = match (self.parse(text).ok()?, *self) {
            (Value::Number(number), _) => {
                let (low, high) = self.ends()?;
                let next = if larger {
                    number.max(1).saturating_mul(factor).min(high)
                } else {
                    (number / factor.max(1)).max(low)
                };
                (next != number).then_some(Value::Number(next))?
            }
            (Value::Word(word), Self::Choice(words)) => {
                let at = words.iter().position(|choice| choice.value == word)?;
                let next = if larger { at.checked_add(1)? } else { at.checked_sub(1)? };
                Value::Word(words.get(next)?.value)
            }
            _ => return None,
        };
        Some(self.text(&next))
    }

    fn ends(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Count { low, high } | Self::Time { low, high, .. } => Some((low, high)),
            Self::Size { low } => Some((low, u64::MAX)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Choice;
    use punctual_core::units::BareNumber;

    const WORDS: &[Choice] = &[Choice::of("socket", ""), Choice::of("pipe", "")];

    #[test]
    fn numbers_stay_in_their_range_and_words_have_neighbours() {
        let count = Kind::Count { low: 2, high: 100 };
        let steps = |text| [true, false].map(|larger| count.step(text, larger, 4));
        assert_eq!(steps("8"), [Some("32".into()), Some("2".into())]);
        assert_eq!(steps("30"), [Some("100".into()), Some("7".into())]);
        assert_eq!((&steps("100")[0], &steps("2")[1]), (&None, &None));
        let from_none = Kind::Count { low: 0, high: 9 };
        assert_eq!(from_none.step("0", true, 4).as_deref(), Some("4"));
        assert_eq!(Kind::Size { low: 1 }.step("4M", true, 4).as_deref(), Some("16M"));
        let time = Kind::Time { bare: BareNumber::Microseconds, low: 100, high: 1_000_000_000 };
        assert_eq!(time.step("10ms", false, 4).as_deref(), Some("2500us"));
        let words = Kind::Choice(WORDS);
        assert_eq!(words.step("socket", true, 4).as_deref(), Some("pipe"));
        assert_eq!((words.step("socket", false, 4), words.step("pipe", true, 4)), (None, None));
        assert_eq!(Kind::Cpus.step("0-3", true, 4), None);
        assert_eq!(count.step("many", true, 4), None);
    }
}
