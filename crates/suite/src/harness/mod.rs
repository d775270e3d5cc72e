//! How loads are run: started, supervised, sampled, restarted, ended.
//!
//! A load consists of parts. Each part runs outside the measuring process, under its own
//! supervisor, which is exec'd from the same binary and contains the part's processes:
//!
//! ```text
//! punctual ── supervisor (init of a PID namespace) ── leader: the load's `run` ── its workers
//!     ▲            │ status pipe                          │ counters
//!     └────────────┴────────────── shared memory ─────────┘
//! ```

mod containment;
pub mod context;
pub(crate) mod memory_group;
mod order;
mod part;
pub mod phased;
pub mod phases;
pub(crate) mod procs;
pub mod set;
pub mod spec;
mod status;
pub mod supervisor;
pub(crate) mod turns;
mod watcher;
mod worked;
pub mod worker;

pub use order::LOAD_SUPERVISOR;
pub use punctual_sys::process::containment::Containment;
