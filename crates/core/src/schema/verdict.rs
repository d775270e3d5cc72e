//! Verdicts and notes on a thread, a cell or a run.

use serde::{Deserialize, Serialize};

/// Outcome of a judgement, ordered from best to worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Outcome {
    /// No deadline was given: nothing to judge.
    #[default]
    None,
    /// Good enough, with the requested evidence.
    Pass,
    /// Something that was requested could not be measured.
    Skipped,
    /// Not enough evidence either way.
    Inconclusive,
    /// A sample was above the break value, which ended the run.
    Break,
    /// A deadline was missed, or missed too often.
    Fail,
}

/// A verdict against a deadline, with its evidence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// The deadline, ns.
    pub deadline_ns: Option<u64>,
    /// Releases later than the deadline, missed periods included.
    pub exceedances: u64,
    /// Late episodes.
    #[serde(default)]
    pub episodes: u64,
    /// Upper bound of the rate of late episodes, per second (L1, one-sided).
    #[serde(default)]
    pub episode_rate_upper: Option<f64>,
    /// Upper bound of the probability that a release exceeds the deadline (L1, one-sided); only if
    /// the run is judged by that.
    pub upper_bound: Option<f64>,
    /// Confidence of the bounds, such as 0.95.
    pub confidence: f64,
    /// The reasons, one sentence each, the most important first.
    pub because: Vec<String>,
}

/// One circumstance that makes the numbers suspect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Stable name for programs, such as `virtual-machine` or `unprivileged`.
    pub id: String,
    /// One line for people: the circumstance and its effect on the numbers.
    pub text: String,
}
