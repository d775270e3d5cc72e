//! How to judge.

use super::turns::Turns;
use crate::key;
use crate::plan::{DEFAULT_PROBABILITY, Plan};
use crate::rate::Rate;
use crate::schema::{Board, Cell, Outcome, Verdict};
use crate::units::{SECOND_NS, percent};

/// How to judge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Deadline, ns. None: nothing is judged.
    pub deadline_ns: Option<u64>,
    /// Soft deadline: the rate of late episodes that is tolerated. None, as [`Self::tolerate`]:
    /// the deadline is hard, one exceedance fails.
    pub tolerate_episodes: Option<Rate>,
    /// Soft deadline: the probability of an exceedance that is tolerated, between 0 and 1.
    pub tolerate: Option<f64>,
    /// A PASS of a hard deadline needs an upper bound on the rate of late episodes of at most
    /// this.
    pub episodes: Rate,
    /// The same as a probability an activation, between 0 and 1, if that was asked for.
    pub probability: Option<f64>,
    /// Activations are late independently of each other: they are counted one by one.
    pub singly: bool,
    /// Confidence of the bounds, one-sided, between 0 and 1.
    pub confidence: f64,
    /// The board is a deterministic virtual one: a run is the whole population,
    /// and a bound would claim chance that does not exist.
    pub deterministic: bool,
    /// The board is a virtual one without instruction counting: nothing is judged,
    /// since its latencies are those of the host.
    pub plumbing: bool,
    /// What is judged ended after so many samples per thread (`-l`), and not after its time: more of
    /// them make it longer.
    pub ended_after: Option<u64>,
    /// The CPUs of the board take turns, which may be what makes a release late.
    pub turns: Option<Turns>,
}

pub(super) const PLUMBING: &str = "not a measurement: the guest ran without instruction \
counting, so its latencies are host noise";

impl Rule {
    /// The rule of a plan on a board.
    #[must_use]
    pub fn of(plan: &Plan, board: &Board) -> Self {
        Self {
            deadline_ns: plan.deadline_ns,
            tolerate_episodes: plan.tolerate_episodes,
            tolerate: plan.tolerate,
            episodes: plan.episodes,
            probability: plan.probability,
            singly: plan.singly,
            confidence: plan.confidence,
            deterministic: board.is_deterministic(),
            plumbing: board.is_plumbing(),
            ended_after: None,
            turns: Turns::of(board),
        }
    }

    /// The same for this cell: what makes it longer is known.
    #[must_use]
    pub fn in_cell(self, cell: &Cell) -> Self {
        let reached = |n: &u64| cell.threads().iter().all(|thread| thread.stats.samples >= *n);
        Self { ended_after: key::samples(&cell.key).filter(reached), ..self }
    }

    /// Whether an exceedance fails.
    pub(super) fn is_hard(&self) -> bool {
        self.tolerate.is_none() && self.tolerate_episodes.is_none()
    }

    /// What a soft deadline allows, as people write it.
    pub(super) fn allowed(&self) -> Option<String> {
        let share = self.tolerate.map(|share| format!("{} % of activations", percent(share)));
        share.or_else(|| self.tolerate_episodes.map(|rate| rate.to_string()))
    }

    /// Whether late episodes are counted: chance is involved, and activations are not taken for
    /// independent.
    pub(super) fn counts_episodes(&self) -> bool {
        self.deadline_ns.is_some() && !self.singly && !self.deterministic && !self.plumbing
    }

    /// Whether the threads of a cell are judged by their late episodes together.
    pub(super) fn judges_together(&self) -> bool {
        let rate_on_board = self.deterministic && self.tolerate_episodes.is_some();
        self.counts_episodes() || (self.deadline_ns.is_some() && !self.plumbing && rate_on_board)
    }

    /// Whether a probability was asked for that cannot be a rate of episodes.
    pub(super) fn has_no_rate(&self, interval_ns: Option<u64>) -> bool {
        self.probability.is_some() && interval_ns.is_none_or(|ns| ns == 0)
    }

    /// The rate of late episodes that a PASS of a hard deadline may leave open. A probability is
    /// one of activations that come at this interval, ns; without one it says nothing of time.
    #[must_use]
    pub fn rate(&self, interval_ns: Option<u64>) -> Rate {
        episode_rate(self.probability, interval_ns).unwrap_or(self.episodes)
    }

    /// The probability an activation that a PASS may leave open, if they are counted one by one.
    pub(super) fn probability(&self) -> f64 {
        self.tolerate.or(self.probability).unwrap_or(DEFAULT_PROBABILITY)
    }

    /// Whether what the samples are is left to chance: neither the whole population of a
    /// deterministic board nor the noise of a host.
    #[must_use]
    pub fn by_chance(&self) -> bool {
        !self.deterministic && !self.plumbing
    }

    /// A judgement by this rule, of nothing yet.
    pub(super) fn verdict(&self, outcome: Outcome, because: Vec<String>) -> Verdict {
        Verdict {
            outcome,
            deadline_ns: self.deadline_ns,
            exceedances: 0,
            episodes: 0,
            episode_rate_upper: None,
            upper_bound: None,
            confidence: self.confidence,
            because,
        }
    }
}

/// A probability an activation as a rate of late episodes, for activations at this interval, ns:
/// if each late one were an episode of its own. `None` without either.
#[must_use]
pub fn episode_rate(probability: Option<f64>, interval_ns: Option<u64>) -> Option<Rate> {
    #[allow(clippy::cast_precision_loss, reason = "an interval needs no 16th digit")]
    let seconds = interval_ns.filter(|ns| *ns > 0)? as f64 / SECOND_NS as f64;
    Rate::of_per_second(probability? / seconds)
}
