//! The judgement against a deadline: PASS, FAIL, BREAK, INCONCLUSIVE or SKIPPED, with
//! the evidence in sentences.
//!
//! Judged per thread; a cell is its worst thread, a run its worst cell. The
//! bounds are one-sided Clopper-Pearson bounds of the probability that a release
//! is later than the deadline (L1), and hold for the load that was tested.

mod cell;
mod head;
mod load;
mod rule;
mod run;
mod sentences;
mod thread;
mod turns;

pub use cell::judge_cell;
pub use rule::Rule;
pub use run::judge_run;
pub use thread::{Evidence, judge_thread, judge_threads};
pub use turns::Turns;

#[cfg(test)]
mod tests;
