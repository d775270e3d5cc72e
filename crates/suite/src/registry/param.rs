//! Parameters: the kind of value each takes, its range and its default.

use std::fmt;

use punctual_core::units::{BareNumber, exact_duration, parse_duration_ns};
use punctual_sys::affinity::CpuSet;

use super::need::Need;
use super::size;

/// One parameter of a probe, load or cost. Help, checks, the record and what takes effect all
/// come from here: the code has no second default.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// The key, such as `groups` in `hackbench:groups=4`.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// What takes effect if it is not given.
    pub default: Default,
    /// One line of help.
    pub help: &'static str,
}

/// The kind of a parameter's values. Ranges include both ends.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A whole number.
    Count {
        /// The smallest.
        low: u64,
        /// The largest.
        high: u64,
    },
    /// A duration, ns.
    Time {
        /// How a number without a unit is read.
        bare: BareNumber,
        /// The shortest.
        low: u64,
        /// The longest.
        high: u64,
    },
    /// A size in bytes, with `K`, `M`, `G` or `T` for powers of 1024.
    Size {
        /// The smallest.
        low: u64,
    },
    /// A share in percent, with or without `%`.
    Percent {
        /// The largest.
        high: u64,
    },
    /// A list of CPUs such as `0-3+8`.
    Cpus,
    /// Any text that the check accepts.
    Text {
        /// Placeholder for the value in help, such as `DIR`.
        value: &'static str,
        /// What is wrong with a text, if anything is.
        check: fn(&str) -> Result<(), String>,
    },
    /// One of a few words.
    Choice(&'static [Choice]),
    /// One of a few words, or a value of another kind.
    Or(&'static [Choice], &'static Kind),
}

/// A word that a parameter takes.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The word.
    pub value: &'static str,
    /// What it means; empty if it needs no explanation.
    pub help: &'static str,
    /// What the board must have for it.
    pub needs: &'static [Need],
}

impl Choice {
    /// A word that needs nothing of the board.
    #[must_use]
    pub const fn of(value: &'static str, help: &'static str) -> Self {
        Self { value, help, needs: &[] }
    }
}

/// What takes effect if a parameter is not given.
#[derive(Debug, Clone, Copy)]
pub enum Default {
    /// This value, parsed like one that was given.
    Value(&'static str),
    /// The machine decides, as described in these words. Known and recorded when the cell starts.
    OfMachine(&'static str),
    /// No default: it must be given.
    Required,
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value("") => "none",
            Self::Value(text) | Self::OfMachine(text) => text,
            Self::Required => "none: it must be given",
        })
    }
}

/// A value that was read and is in range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A count, ns, bytes or percent.
    Number(u64),
    /// A set of CPUs.
    Cpus(CpuSet),
    /// A text.
    Text(String),
    /// One of the words.
    Word(&'static str),
}

impl Kind {
    /// Reads a value.
    ///
    /// # Errors
    /// What the value must be, for people.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match *self {
            Self::Count { low, high } => match text.parse::<u64>() {
                Ok(n) if (low..=high).contains(&n) => Ok(Value::Number(n)),
                _ if high == u64::MAX => Err(format!("must be a whole number of at least {low}")),
                _ => Err(format!("must be a whole number from {low} to {high}")),
            },
            Self::Time { bare, low, high } => {
                let ns = parse_duration_ns(text, bare).map_err(|error| error.to_string())?;
                match ns {
                    0 if low > 0 => Err("must be above zero".to_owned()),
                    _ if ns < low => Err(format!("must be at least {}", exact_duration(low))),
                    _ if ns > high => Err(format!("must be at most {}", exact_duration(high))),
                    _ => Ok(Value::Number(ns)),
                }
            }
            Self::Size { low } => match size::parse(text)? {
                bytes if bytes < low => Err(format!("must be at least {}", size::text(low))),
                bytes => Ok(Value::Number(bytes)),
            },
            Self::Percent { high } => match text.strip_suffix('%').unwrap_or(text).parse() {
                Ok(percent) if percent <= high => Ok(Value::Number(percent)),
                _ => Err(format!("must be a whole number of percent from 0% to {high}%")),
            },
            Self::Cpus => match CpuSet::parse(&text.replace('+', ",")) {
                Some(cpus) if !cpus.is_empty() => Ok(Value::Cpus(cpus)),
                _ => Err("must be a list of CPUs such as 0-3,8".to_owned()),
            },
            Self::Text { check, .. } => check(text).map(|()| Value::Text(text.to_owned())),
            Self::Choice(words) => {
                word(words, text).ok_or_else(|| format!("must be {}", listed(words)))
            }
            Self::Or(words, kind) => match word(words, text) {
                Some(word) => Ok(word),
                None => kind.parse(text).map_err(|error| format!("{error}, or {}", listed(words))),
            },
        }
    }

    /// The canonical text of a value, used in keys and records.
    #[must_use]
    pub fn text(&self, value: &Value) -> String {
        match (self, value) {
            (_, Value::Text(text)) => text.clone(),
            (_, Value::Word(word)) => (*word).to_owned(),
            // On the command line a comma would end the parameter.
            (_, Value::Cpus(cpus)) => cpus.to_string().replace(',', "+"),
            (Self::Or(_, kind), value) => kind.text(value),
            (Self::Time { .. }, Value::Number(ns)) => without_minutes(*ns),
            (Self::Size { .. }, Value::Number(bytes)) => size::text(*bytes),
            (Self::Percent { .. }, Value::Number(percent)) => format!("{percent}%"),
            (_, Value::Number(number)) => number.to_string(),
        }
    }

    /// Placeholder for the value in help, such as `N` or `socket|pipe`.
    #[must_use]
    pub fn placeholder(&self) -> String {
        match self {
            Self::Count { .. } => "N".to_owned(),
            Self::Time { .. } => "TIME".to_owned(),
            Self::Size { .. } => "SIZE".to_owned(),
            Self::Percent { .. } => "PERCENT".to_owned(),
            Self::Cpus => "CPUS".to_owned(),
            Self::Text { value, .. } => (*value).to_owned(),
            Self::Choice(words) => joined(words),
            Self::Or(words, kind) => format!("{}|{}", kind.placeholder(), joined(words)),
        }
    }

    /// The words that it takes, each with its meaning.
    #[must_use]
    pub fn words(&self) -> &'static [Choice] {
        match self {
            Self::Choice(words) | Self::Or(words, _) => words,
            _ => &[],
        }
    }

    /// The range of numbers in words, if it is worth telling.
    #[must_use]
    pub fn range(&self) -> Option<String> {
        match *self {
            Self::Count { low, high } if high < u64::MAX => Some(format!("{low} to {high}")),
            Self::Time { low, high, .. } if high <= DAY_NS => {
                Some(format!("{} to {}", exact_duration(low), exact_duration(high)))
            }
            Self::Percent { high } => Some(format!("0% to {high}%")),
            Self::Or(_, kind) => kind.range(),
            _ => None,
        }
    }
}

impl Param {
    /// Its help line, with the meaning of each word and the range of its numbers.
    #[must_use]
    pub fn full_help(&self) -> String {
        let mut help = self.help.to_owned();
        let words: Vec<_> = self
            .kind
            .words()
            .iter()
            .filter(|choice| !choice.help.is_empty())
            .map(|choice| format!("{} ({})", choice.value, choice.help))
            .collect();
        if !words.is_empty() {
            help.push_str(&format!(": {}", words.join(", ")));
        }
        match self.kind.range() {
            Some(range) => format!("{help}, {range}"),
            None => help,
        }
    }
}

/// An upper bound beyond this is left out of help: nobody comes near it.
const DAY_NS: u64 = 86_400 * punctual_core::units::SECOND_NS;

/// Takes any text.
///
/// # Errors
/// None.
pub fn any_text(_: &str) -> Result<(), String> {
    Ok(())
}

fn word(words: &'static [Choice], text: &str) -> Option<Value> {
    words.iter().find(|choice| choice.value == text).map(|choice| Value::Word(choice.value))
}

fn joined(words: &[Choice]) -> String {
    words.iter().map(|choice| choice.value).collect::<Vec<_>>().join("|")
}

fn listed(words: &[Choice]) -> String {
    let names: Vec<_> = words.iter().map(|choice| choice.value).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

/// Exact, but without minutes: parameters do not take `m`.
fn without_minutes(ns: u64) -> String {
    let text = exact_duration(ns);
    if text.ends_with("min") { format!("{}s", ns / punctual_core::units::SECOND_NS) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WORDS: &[Choice] = &[Choice::of("auto", "each its own"), Choice::of("all", "")];
    const TIME: Kind =
        Kind::Time { bare: BareNumber::Microseconds, low: 1_000, high: 3_600_000_000_000 };

    #[test]
    fn values_out_of_range_say_what_they_must_be() {
        for (kind, text, error) in [
            (Kind::Count { low: 1, high: 9 }, "10", "from 1 to 9"),
            (Kind::Count { low: 1, high: u64::MAX }, "0", "at least 1"),
            (TIME, "0", "above zero"),
            (TIME, "20ns", "at least 1us"),
            (TIME, "2h", "at most 1h"),
            (TIME, "1m", "m is a minute"),
            (Kind::Percent { high: 90 }, "91", "0% to 90%"),
            (Kind::Cpus, "x", "list of CPUs"),
            (Kind::Size { low: 4_096 }, "1K", "at least 4K"),
            (Kind::Choice(WORDS), "none", "must be auto or all"),
            (Kind::Or(WORDS, &Kind::Cpus), "none", "such as 0-3,8, or auto or all"),
        ] {
            let message = kind.parse(text).unwrap_err();
            assert!(message.contains(error), "{text}: {message}");
        }
    }

    #[test]
    fn help_tells_words_and_ranges() {
        let param = Param {
            name: "x",
            kind: Kind::Or(WORDS, &Kind::Count { low: 1, high: 9 }),
            default: Default::Value("all"),
            help: "which",
        };
        assert_eq!(param.full_help(), "which: auto (each its own), 1 to 9");
        assert_eq!(param.kind.placeholder(), "N|auto|all");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(number in 1_000_u64..3_600_000_000_000) {
            for kind in [TIME, Kind::Count { low: 0, high: u64::MAX }, Kind::Size { low: 0 }, Kind::Or(WORDS, &TIME)] {
                let value = Value::Number(number);
                prop_assert_eq!(kind.parse(&kind.text(&value)), Ok(value));
            }
        }

        #[test]
        fn no_text_panics(text in ".*") {
            for kind in [TIME, Kind::Cpus, Kind::Percent { high: 100 }, Kind::Size { low: 0 }] {
                let _ = kind.parse(&text);
            }
        }
    }
}
