//! The registry: what probes, loads and costs declare about themselves. An entry is the only
//! place for each of its facts; lists, help, man pages, checks, keys, records and labels
//! derive from it.

pub mod cost;
pub mod load;
pub mod near;
pub mod need;
mod pace;
pub mod param;
pub mod placement;
pub mod probe;
pub mod room;
pub mod size;
mod step;
pub mod threads;
mod values;

pub use need::Need;
pub use param::{Choice, Default, Kind, Param, Value, any_text};
pub use values::Values;

#[cfg(test)]
mod tests;
