//! What a probe that spins leaves to the rest of the system: a spinning real-time thread can hang a
//! board.

use std::time::Duration;

use crate::registry::{Default, Kind, Param, Values};

/// The parameter, of every probe that spins.
pub(super) const MARGIN: Param = Param {
    name: "margin",
    kind: Kind::Percent { high: 90 },
    default: Default::Value("10%"),
    help: "share of the time that is left to the rest of the system",
};

/// Percent of the time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Margin(pub(super) u64);

impl Margin {
    /// How long the thread spins between two sleeps, margin included, ns.
    pub(super) const ROUND_NS: u64 = 10_000_000;

    pub(super) fn of(values: &Values) -> Self {
        Self(values.number(MARGIN.name))
    }

    /// How long the thread spins before it sleeps, ns.
    pub(super) fn spin_ns(self) -> u64 {
        Self::ROUND_NS - Self::ROUND_NS / 100 * self.0
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(super) fn sleep(self) {
        std::thread::sleep(Duration::from_nanos(Self::ROUND_NS - self.spin_ns()));
    }
}
