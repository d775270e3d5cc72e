//! How to judge.

use super::turns::Turns;
use crate::plan::Plan;
use crate::schema::{Board, Outcome, Verdict};

/// How to judge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Deadline, ns. None: nothing is judged.
    pub deadline_ns: Option<u64>,
    /// Soft deadline: the probability of an exceedance that is tolerated,
    /// between 0 and 1. None: the deadline is hard, one exceedance fails.
    pub tolerate: Option<f64>,
    /// A PASS of a hard deadline needs an upper bound of at most this, between
    /// 0 and 1.
    pub probability: f64,
    /// Confidence of the bounds, one-sided, between 0 and 1.
    pub confidence: f64,
    /// The board is a deterministic virtual one: a run is the whole population,
    /// and a bound would claim chance that does not exist.
    pub deterministic: bool,
    /// The board is a virtual one without instruction counting: nothing is judged,
    /// since its latencies are those of the host.
    pub plumbing: bool,
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
            tolerate: plan.tolerate,
            probability: plan.probability,
            confidence: plan.confidence,
            deterministic: board.is_deterministic(),
            plumbing: board.is_plumbing(),
            turns: Turns::of(board),
        }
    }

    /// The rule on a virtual board whose time is counted in instructions, or runs freely,
    /// while its record does not say so yet.
    #[must_use]
    pub fn on_virtual_board(self, counted: bool) -> Self {
        Self { deterministic: counted, plumbing: !counted, ..self }
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
            upper_bound: None,
            confidence: self.confidence,
            because,
        }
    }
}
