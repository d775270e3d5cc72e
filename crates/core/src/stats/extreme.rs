//! Extreme values: levels beyond what was observed (L2), behind gates.
//!
//! This is an answer of its own and never part of a verdict: what a distribution says beyond the
//! last sample holds if the tail goes on as it began, under the tested load and on the tested
//! paths. Where one of the gates is closed it is said which, and there is no number.
//!
//! What is estimated is the level that the largest sample of a *cluster* of seconds exceeds once on
//! average in ten times the run's length: not the share of late releases, since one stall makes
//! many. The data are the maxima of the seconds, which are exact and complete; the samples that a
//! run keeps one by one are neither above every threshold, and with clusters a second apart would
//! tell the same.

mod answer;
mod gates;
mod goodness;
mod maxima;
mod pareto;
mod peaks;
#[cfg(test)]
mod reference;
mod search;
mod table;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Extrapolation, LABEL, answer, from_cell};
pub use gates::{Gate, HORIZON, LEAST_PEAKS, Refusal};
pub use goodness::{anderson_darling, forward_stop, p_value};
pub use maxima::{ExtremeValue, Maxima};
pub use pareto::{Excess, Excesses, ONE_SIDED_95, Pareto, TWO_SIDED_95};
pub use peaks::{Peaks, Seconds};
