//! Units of series and costs.

use serde::{Deserialize, Serialize};

/// Unit of a series or cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    #[serde(rename = "ns")]
    Ns,
    /// Microseconds, for costs.
    #[serde(rename = "us")]
    Us,
    /// Packets in a queue.
    #[serde(rename = "packets")]
    Packets,
    /// 10^6 bytes per second.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Operations per second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// 10^6 cycles per second.
    #[serde(rename = "MHz")]
    Megahertz,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// Pages of memory.
    #[serde(rename = "pages")]
    Pages,
    /// A number without a unit.
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Packets => "packets",
            Self::MegabytesPerSecond => "MB/s",
            Self::PerSecond => "1/s",
            Self::Megahertz => "MHz",
            Self::Bytes => "bytes",
            Self::Pages => "pages",
            Self::Ratio => "ratio",
        }
    }
}
