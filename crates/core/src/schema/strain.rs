//! What strained the machine while a cell measured.

use serde::{Deserialize, Serialize};

/// Interrupts, context switches and pressure over a cell; `None` for what the kernel does not tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CellStrain {
    /// Interrupts that all CPUs served in a second, on average.
    #[serde(default)]
    pub interrupts_per_second: Option<f64>,
    /// Context switches of all CPUs in a second, on average.
    #[serde(default)]
    pub switches_per_second: Option<f64>,
    /// How long tasks waited.
    #[serde(default)]
    pub pressure: Pressure,
}

/// Shares of the time in which at least one task waited, 0 to 1: `some` of
/// Documentation/accounting/psi.rst.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// For a CPU.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// For memory.
    #[serde(default)]
    pub memory: Option<f64>,
    /// For I/O.
    #[serde(default)]
    pub io: Option<f64>,
}
