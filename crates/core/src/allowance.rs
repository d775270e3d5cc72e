//! How much may be late, as people say it: so often (`6/min`), or a share of activations (`1%`).

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::rate::Rate;
use crate::units::{BareNumber, parse_duration_ns, percent};

/// How much may be late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Allowance {
    /// How often lateness may begin.
    Rate(Rate),
    /// The share of activations that may be late, above 0 and below 1.
    Share(f64),
}

/// A text that is neither a rate nor a share.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AllowanceError {
    /// A time, which only a deadline is.
    #[error(
        "\"{0}\" is a time, neither a rate such as 6/min nor a share such as 1%: did you mean \
         --deadline {0}"
    )]
    Time(String),
    /// A number alone.
    #[error(
        "\"{0}\" has no unit: a rate is per s, min, h or d, such as 6/min; a share has %, \
         such as 1%"
    )]
    Bare(String),
    /// A percentage out of range.
    #[error("\"{0}\" is no share: it must be above 0% and below 100%, such as 1%")]
    Share(String),
    /// Anything else.
    #[error(
        "\"{0}\" is neither a rate (a number above zero per s, min, h or d, such as 6/min) nor \
         a share such as 1%"
    )]
    Neither(String),
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(rate) => rate.fmt(f),
            Self::Share(share) => write!(f, "{}%", percent(*share)),
        }
    }
}

impl FromStr for Allowance {
    type Err = AllowanceError;

    fn from_str(text: &str) -> Result<Self, AllowanceError> {
        let text = text.trim();
        if let Ok(rate) = text.parse() {
            return Ok(Self::Rate(rate));
        }
        if let Some(number) = text.strip_suffix('%') {
            let share = share(number.trim()).filter(|share| *share > 0.0 && *share < 1.0);
            return share.map(Self::Share).ok_or_else(|| AllowanceError::Share(text.to_owned()));
        }
        Err(match text {
            _ if text.parse::<f64>().is_ok() => AllowanceError::Bare(text.to_owned()),
            _ if parse_duration_ns(text, BareNumber::Refused).is_ok() => {
                AllowanceError::Time(text.to_owned())
            }
            _ => AllowanceError::Neither(text.to_owned()),
        })
    }
}

/// A number of percent as a share. Its digits are shifted and not divided, so that 0.07% is the
/// number that 7e-4 is.
fn share(percent: &str) -> Option<f64> {
    match percent.contains(['e', 'E']) {
        true => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
        false => format!("{percent}e-2").parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_a_rate_or_a_share_and_reads_as_it_was_given() {
        for text in ["6/min", "1/h", "1%", "0.01%", "99.9%", "0.000001%", "0.07%"] {
            let read: Allowance = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
        }
        assert_eq!("0.07 %".parse(), Ok(Allowance::Share(7e-4)));
        assert_eq!("1e-2%".parse(), Ok(Allowance::Share(1e-4)));
    }

    #[test]
    fn what_is_neither_is_refused_with_what_it_may_have_been() {
        for (text, says) in [
            ("1ms", "did you mean --deadline 1ms"),
            ("200us", "did you mean --deadline 200us"),
            ("6", "has no unit"),
            ("1e-4", "has no unit"),
            ("0%", "above 0% and below 100%"),
            ("100%", "above 0% and below 100%"),
            ("NaN%", "above 0% and below 100%"),
            ("0/min", "neither a rate"),
            ("6/year", "neither a rate"),
            ("", "neither a rate"),
        ] {
            let said = text.parse::<Allowance>().unwrap_err().to_string();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
