//! Whether a cell was the same from its start to its end: change points, slow cycles and bunches
//! of late seconds, by tests on its seconds.
//!
//! The null hypothesis is that the seconds are exchangeable but for what lasts a few of them:
//! neighbouring maxima and means may be correlated (the variances of the rank tests are widened
//! by that), and adjacent late seconds, or as near ones as are correlated, are one episode. What is left is chance in the order of
//! the seconds; no distribution is assumed.

mod by_second;
mod chance;
mod episodes;
mod found;
mod note;
mod ranks;
mod stretches;

pub use by_second::BySecond;
pub use found::{Drift, changes};
pub use note::note_drift;

#[cfg(test)]
mod tests;
