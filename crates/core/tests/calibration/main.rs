//! What is claimed, held against simulations in which the truth is known. Seeds are fixed, so that
//! a failure is one of the claim and not of chance; `make calibrate` repeats all with ten times as
//! many replicates and prints the tables of METHODOLOGY.md.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "simulated times and shares"
)]

mod bounds;
mod generators;
mod passes;
mod pools;
mod real;
mod shares;

/// Replicates of each case in the ordinary tests.
const REPLICATES: u64 = 2_000;

/// And in `make calibrate`.
const MANY: u64 = 20_000;

/// The seed, fixed before the first run.
const SEED: u64 = 1;

/// Share of `count` in `of`, in percent.
fn percent(count: u64, of: u64) -> f64 {
    100.0 * count as f64 / of as f64
}
