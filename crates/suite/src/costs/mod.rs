//! The costs: throughput of the kernel's basic operations. One file per family, one line per
//! metric in [`COSTS`]. [`crate::engine`]'s body of a cost cell times them.

use crate::registry::cost::CostEntry;
use crate::registry::near;

mod apart;
mod calls;
mod futex;
mod process;
mod signal;
mod syscall;

/// Every metric.
pub static COSTS: &[CostEntry] = &[
    syscall::GETPPID,
    calls::IO,
    calls::SELECT,
    signal::SIGNAL,
    signal::PROTFAULT,
    process::FORK,
    process::EXEC,
    process::SH,
    process::RATE,
    futex::FUTEX,
];

/// The metric of that name.
///
/// # Errors
/// A message that lists the known metrics and suggests the one that may have been meant.
pub fn find(name: &str) -> Result<&'static CostEntry, String> {
    COSTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<_> = COSTS.iter().map(|entry| entry.name).collect();
        near::unknown("cost", name, &known)
    })
}
