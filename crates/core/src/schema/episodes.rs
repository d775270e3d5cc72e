//! How often a cell or a thread was late.

use serde::{Deserialize, Serialize};

/// Late episodes: sets of late activations of which consecutive ones (the start of the one, the
/// release of the next) are at most `episode_gap_ns` apart, on any CPU of the cell. Missed
/// releases that were later than the deadline belong to the episode of the start that missed
/// them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Episodes {
    /// The gap, ns: 1 s for all probes and boards, and never taken from the run that is judged.
    pub episode_gap_ns: u64,
    /// Episodes.
    pub count: u64,
    /// What their number would be with a gap of 0.1 s.
    pub count_100ms: u64,
    /// What their number would be with a gap of 10 s.
    pub count_10s: u64,
    /// Time from the first release of the longest one to its last start, ns.
    pub longest_ns: u64,
    /// Sum of the lengths of all, ns.
    pub total_ns: u64,
    /// Late activations of the largest one, missed releases included.
    pub largest: u64,
    /// Late activations of all, missed releases included.
    pub size_sum: u64,
    /// Sum of the squares of their sizes; `u64::MAX` stands for anything larger.
    pub size_sum_sq: u64,
    /// Seconds of the cell in which anything was late.
    pub seconds_late: u64,
    /// Whether they come in clusters themselves, so that their number says little of how often
    /// something goes wrong.
    #[serde(default)]
    pub clustered: bool,
    /// Whether they were found in whole seconds, for another deadline than that of the run:
    /// two that share or touch a second then count as one.
    #[serde(default)]
    pub in_seconds: bool,
    /// Time in which lateness would have been seen, ns: scheduled releases times the interval,
    /// of the thread that has the least; without an interval the time that was measured.
    pub observed_ns: u64,
    /// The same of the thread that has the most, ns.
    #[serde(default)]
    pub most_observed_ns: u64,
    /// Whether spells were merged because nobody took them: there were more episodes, and the longest
    /// was shorter.
    #[serde(default, skip_serializing_if = "is_false")]
    pub joined: bool,
    /// How much was late by batches of seconds, over all threads; none if that was in too few, or
    /// in an older record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<Batches>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Batches of seconds of which neighbours are uncorrelated, and how many activations were late in
/// each: what bounds the share that is late.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Batches {
    /// Length of one, s: a power of two.
    pub seconds: u64,
    /// Batches within the time that was measured.
    pub number: u64,
    /// How many of them hold a late activation.
    pub late: u64,
    /// Late activations in one, missed releases included: the mean. Of a probe that leaves a
    /// margin, as many as if it had none.
    pub mean: f64,
    /// The standard deviation (n - 1).
    pub deviation: f64,
    /// The skewness, m3 / m2^1.5.
    pub skewness: f64,
}
