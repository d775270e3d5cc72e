//! The judgement against a deadline: PASS, FAIL, BREAK, INCONCLUSIVE or SKIPPED, with
//! the evidence in sentences.
//!
//! A cell is judged by the late episodes of its threads together, or, if activations are taken for
//! independent, by its worst thread; a run by its worst cell. The bounds are one-sided (L1): on the
//! rate of late episodes, or on the probability that a release is later than the deadline. They
//! hold for the load that was tested.

mod ahead;
mod broke;
mod cell;
mod episodes;
mod evidence;
mod head;
mod load;
mod pool;
mod rule;
mod run;
mod sentences;
mod thread;
mod turns;

pub use ahead::ahead;
pub use cell::judge_cell;
pub use episodes::observation_needed_ns;
pub use evidence::Evidence;
pub use pool::{PoolError, Pooled, PooledCell, pool};
pub use rule::{Rule, episode_rate};
pub use run::judge_run;
pub use thread::{judge_thread, judge_threads};
pub use turns::Turns;

#[cfg(test)]
mod tests;
