//! How much a search may try.

use std::str::FromStr;

use punctual_core::units::{BareNumber, parse_duration_ns};

/// Guests, or the time of their boards. Neither depends on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// So many guests.
    Tries(usize),
    /// So much time of boards, warm-ups included, ns.
    Virtual(u64),
}

impl Budget {
    /// How many tries it is if each takes so long, ns.
    pub fn tries(self, each_ns: u64) -> usize {
        match self {
            Self::Tries(tries) => tries,
            Self::Virtual(ns) => usize::try_from(ns / each_ns.max(1)).unwrap_or(usize::MAX),
        }
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(tries) = text.parse() {
            return match tries {
                0 => Err("must be above zero".to_owned()),
                _ => Ok(Self::Tries(tries)),
            };
        }
        let ns = parse_duration_ns(text, BareNumber::Refused);
        let ns = ns.map_err(|_| "must be tries (60) or time of the boards (60s)".to_owned())?;
        if ns == 0 { Err("must be above zero".to_owned()) } else { Ok(Self::Virtual(ns)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_tries_and_a_time_is_that_of_boards() {
        let of = |text: &str| text.parse::<Budget>().map(|budget| budget.tries(1_200_000_000));
        assert_eq!((of("60"), of("60s"), of("1.2s")), (Ok(60), Ok(50), Ok(1)));
        for wrong in ["0", "0s", "-1", "many", ""] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
