//! Settings, folders and cgroups that punctual leaves on a board while it runs: noted in a
//! journal first, undone at the end.
//!
//! Architecture invariant: nothing is changed before the line that undoes it is on disk. A
//! SIGKILL between any two instructions leaves at most one superfluous line.

mod dma_latency;
mod entry;
mod folders;
mod journal;
mod owner;
mod restore;

pub use dma_latency::DmaLatency;
pub(crate) use entry::remove_scratch;
pub use entry::{CGROUP_PREFIX, SCRATCH_PREFIX};
pub use journal::Journal;
pub use restore::{RestoreReport, restore, restore_in};
