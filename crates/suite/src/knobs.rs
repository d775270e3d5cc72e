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
mod scratch;
mod trace;
mod watched;

pub use dma_latency::DmaLatency;
pub use entry::CGROUP_PREFIX;
pub(crate) use folders::temporary_folders;
pub use journal::Journal;
pub use restore::{RestoreReport, remove_abandoned, restore, restore_in};
pub(crate) use scratch::{OwnFolder, open_scratch, remove_scratch};
pub use trace::Trace;
pub(crate) use watched::WatchedScratch;
