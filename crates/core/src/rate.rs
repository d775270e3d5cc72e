//! How often something may happen, as people say it: `6/min`, `1/h`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number of times in a unit of time, above zero and finite. In files it is text, such as
/// `6/min`, so that it reads as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    times: f64,
    per: Per,
}

/// The unit of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Per {
    Second,
    Minute,
    Hour,
    Day,
}

/// Name and seconds of each unit.
const UNITS: [(Per, &str, f64); 4] = [
    (Per::Second, "s", 1.0),
    (Per::Minute, "min", 60.0),
    (Per::Hour, "h", 3_600.0),
    (Per::Day, "d", 86_400.0),
];

/// A text that is not a rate.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("\"{0}\" is not a rate: a number above zero per s, min, h or d, such as 6/min")]
pub struct RateError(String);

impl Rate {
    /// Six in a minute: what 30 s without a late episode show at a confidence of 95 %.
    pub const SIX_A_MINUTE: Self = Self { times: 6.0, per: Per::Minute };

    /// How often in a second.
    #[must_use]
    pub fn per_second(self) -> f64 {
        let seconds = UNITS.iter().find(|(per, ..)| *per == self.per).map_or(1.0, |unit| unit.2);
        self.times / seconds
    }

    /// A rate per second in the unit in which it is at least one, with three digits; none if it
    /// is not above zero or not finite.
    #[must_use]
    pub fn of_per_second(rate: f64) -> Option<Self> {
        let (per, _, seconds) =
            *UNITS.iter().find(|unit| rate * unit.2 >= 1.0).unwrap_or(&UNITS[3]);
        let times = rate * seconds;
        let scale = 10_f64.powf(2.0 - times.log10().floor());
        let times = (times * scale).round() / scale;
        (times.is_finite() && times > 0.0).then_some(Self { times, per })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = UNITS.iter().find(|(per, ..)| *per == self.per).map_or("s", |unit| unit.1);
        write!(f, "{}/{name}", self.times)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let parsed = text.split_once('/').and_then(|(times, unit)| {
            let (per, ..) = UNITS.iter().find(|(_, name, _)| *name == unit.trim())?;
            let times = times.trim().parse().ok()?;
            (f64::is_finite(times) && times > 0.0).then_some(Self { times, per: *per })
        });
        parsed.ok_or_else(|| RateError(text.to_owned()))
    }
}

impl TryFrom<String> for Rate {
    type Error = RateError;

    fn try_from(text: String) -> Result<Self, RateError> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_as_it_was_given() {
        for (text, per_second) in
            [("6/min", 0.1), ("1/h", 1.0 / 3_600.0), ("0.5/s", 0.5), ("3/d", 3.0 / 86_400.0)]
        {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.to_string(), rate.per_second()), (text.to_owned(), per_second));
        }
        for text in ["6", "0/min", "-1/h", "inf/s", "6/year", "/min", "six/min", ""] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_rate_that_was_computed_has_the_unit_that_people_use() {
        for (rate, text) in [(0.1, "6/min"), (2.0, "2/s"), (1e-3, "3.6/h"), (1e-7, "0.00864/d")] {
            assert_eq!(Rate::of_per_second(rate).unwrap().to_string(), text);
        }
        assert_eq!(Rate::of_per_second(0.0), None);
        assert_eq!(Rate::of_per_second(f64::INFINITY), None);
    }
}
