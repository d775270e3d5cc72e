//! All clocks at one instant.

use serde::{Deserialize, Serialize};

/// The clocks, read together. They align traces (trace clock `mono`) and reveal suspends and
/// clock steps. Nanoseconds are recorded as strings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBase {
    /// `CLOCK_MONOTONIC`.
    #[serde(with = "ns_text")]
    pub monotonic_ns: u64,
    /// `CLOCK_MONOTONIC_RAW`.
    #[serde(with = "ns_text")]
    pub monotonic_raw_ns: u64,
    /// `CLOCK_BOOTTIME`.
    #[serde(with = "ns_text")]
    pub boottime_ns: u64,
    /// `CLOCK_REALTIME`.
    #[serde(with = "ns_text")]
    pub realtime_ns: u64,
    /// Time stamp counter, cycles; x86 only.
    #[serde(default)]
    pub tsc: Option<String>,
}

mod ns_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// An instant that may not be known, as a string of digits.
pub(super) mod instant {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(value),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u64>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}
