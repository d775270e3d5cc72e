//! How the samples of a probe are paced.

use super::values::Values;

/// How the samples of a probe are paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Waits for a release in every interval.
    Periodic,
    /// Waits for the ticks of a device, `rate` a second, which is a parameter of the probe.
    Ticks,
    /// One sample directly after the other: without a period, nothing can be missed.
    BackToBack,
    /// Periodic in simulated time: runs at full speed and measures nothing of this machine.
    Simulated,
}

impl Pace {
    /// Whether the probe has a period, which the parameter `interval` says.
    #[must_use]
    pub fn has_interval(self) -> bool {
        matches!(self, Self::Periodic | Self::Simulated)
    }

    /// The period, in whole ns; 0 without one.
    #[must_use]
    pub fn interval_ns(self, values: &Values) -> u64 {
        match self {
            Self::Periodic | Self::Simulated => values.number("interval"),
            Self::Ticks => 1_000_000_000 / values.number("rate"),
            Self::BackToBack => 0,
        }
    }
}
