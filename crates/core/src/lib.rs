//! Pure parts of punctual: units, histogram, blocks, run schema, statistics,
//! verdict, comparison, plan.
//!
//! Architecture invariant: no I/O, no clock, no unsafe. Everything here is a
//! function of its arguments, so that a run judged today is judged the same
//! tomorrow.
#![forbid(unsafe_code)]

pub mod aim;
pub mod aimed;
pub mod allowance;
pub mod block;
pub mod channel;
pub mod compare;
pub mod coverage;
pub mod dither;
pub mod explanation;
pub mod format;
pub mod hash;
pub mod histogram;
pub mod history;
pub mod indices;
pub mod interval;
pub mod judge;
pub mod kconfig;
pub mod key;
pub mod layout;
pub mod legs;
pub mod params;
pub mod phases;
pub mod plan;
pub mod preemption;
pub mod published;
pub mod random;
pub mod rate;
pub mod recover;
pub mod release;
pub mod run;
pub mod schema;
pub mod search;
pub mod sections;
pub mod stats;
pub mod text;
pub mod units;
mod vain;
pub mod verdict;
pub mod weakened;
