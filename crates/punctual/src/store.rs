//! Reads run directories.
//!
//! Invariant: nothing in a run directory makes this panic. What can be read is read, and
//! [`punctual_core::run::LoadedRun::damage`] names the rest.

mod cell_files;
mod find;
mod legs;
mod load;
mod raw;
mod run_json;
mod writer;

pub use punctual_core::judge::judge_again;
pub use punctual_core::layout::RUNS;

pub use find::{all, find, find_all, find_one, set, within};
pub use load::load;
pub use raw::{Raw, read_raw};
pub use run_json::read_run;

#[cfg(test)]
mod tests;
