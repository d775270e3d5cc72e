//! The costs: what the kernel costs in throughput. One file a family, one line a metric in
//! [`COSTS`]. How they are timed is in [`crate::engine`]'s body of a cost cell.

use crate::registry::cost::CostEntry;
use crate::registry::near;

mod syscall;

/// Every metric.
pub static COSTS: &[CostEntry] = &[syscall::GETPPID];

/// The metric of that name.
///
/// # Errors
/// A message that lists the metrics there are, and one that may have been meant.
pub fn find(name: &str) -> Result<&'static CostEntry, String> {
    COSTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<_> = COSTS.iter().map(|entry| entry.name).collect();
        let hint = near::hint(name, known.iter().copied());
        let hint = if hint.is_empty() { ";" } else { &hint };
        format!("unknown cost \"{name}\"{hint} there are: {}", known.join(", "))
    })
}
