//! Numbers of an order: 20 decimal digits each, so that they take the same time to read.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

/// The digits of the largest number.
const DIGITS: usize = 20;

/// Writes a number.
pub fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{number:0DIGITS$}"))
}

/// Reads a number.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = <std::borrow::Cow<'de, str>>::deserialize(from)?;
    let wrong = || D::Error::custom(format!("\"{text}\": must have 20 digits, at most 2^64 - 1"));
    let plain = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain).ok_or_else(wrong)
}

/// The same for a number or none, which is written as the largest number.
pub mod or_none {
    use serde::{Deserializer, Serializer};

    /// Writes a number or none.
    #[allow(clippy::ref_option, reason = "as serde calls it")]
    pub fn serialize<S: Serializer>(number: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        super::serialize(&number.unwrap_or(u64::MAX), to)
    }

    /// Reads a number or none.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        super::deserialize(from).map(|number| (number < u64::MAX).then_some(number))
    }
}
