//! What the loads of a run executed of its kernel: what was tested, and what was not. Found by
//! watching a virtual board from outside.

use serde::{Deserialize, Serialize};

/// What of a kernel was executed while the cells of one run were measured.
///
/// A function counts as executed if a block in it was: this is not every way through it. Blocks
/// are QEMU's: they end at a jump, at the end of a page, and where an interrupt is due. Parts of a
/// function that the compiler moved elsewhere (`.cold`) count as blocks only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Functions of the kernel and its modules, without what only runs at boot.
    pub functions: u64,
    /// Functions of the kernel that take a raw spin lock or a lock for readers and writers by a
    /// direct call, or forbid preemption themselves. What only turns interrupts off is not among
    /// them, and modules are not.
    pub locking: u64,
    /// Blocks at different addresses that any cell executed, as in [`CellCoverage::blocks`].
    pub blocks: u64,
    /// By cell, in the order of the plan.
    pub cells: Vec<CellCoverage>,
    /// All functions that a cell executed, by name and address; several may have the same name.
    pub executed: Vec<ExecutedFunction>,
    /// The `locking` functions that no cell executed, those with the most places that do it first.
    pub unreached: Vec<LockingFunction>,
}

/// What one cell executed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCoverage {
    /// Key of the cell, such as `wakeup @ hackbench @ 2s`.
    pub key: String,
    /// Its load; `none` without.
    pub load: String,
    /// Blocks of the kernel and its modules at different addresses, also those of code that has no
    /// name.
    pub blocks: u64,
    /// Functions.
    pub functions: u64,
    /// Those of [`Coverage::locking`].
    pub locking: u64,
    /// The functions that no other cell of the run executed, by name.
    pub only: Vec<String>,
}

/// A function that was executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutedFunction {
    /// Its name; that of a module follows in brackets.
    pub name: String,
    /// How many different blocks of it each cell executed, in the order of [`Coverage::cells`].
    pub blocks: Vec<u64>,
}

/// A function that takes a lock or forbids preemption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockingFunction {
    /// Its name.
    pub name: String,
    /// In how many places it does, 1 or more.
    pub places: u64,
}

impl Coverage {
    /// How many `locking` functions were executed in any cell.
    #[must_use]
    pub fn reached(&self) -> u64 {
        self.locking.saturating_sub(self.unreached.len() as u64)
    }
}
