//! What a comparison comes to.

use serde::Serialize;

use super::cost::MatchedCost;
use super::cost_mean::CostMean;
use super::differences::Difference;
use super::groups::{self, KernelRuns};
use super::matched::MatchedCell;
use super::matching::Unmatched;
use super::replicates::Replicates;
use super::trade::Trade;
use crate::indices::IndexValue;
use crate::preemption::Model;
use crate::schema::{Origin, Outcome, RunState};
use crate::weakened::Weakened;

/// Two or more runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs, in the order given; `run` elsewhere is an index into them.
    pub runs: Vec<RunLabel>,
    /// The sides, in the order of their first runs.
    pub groups: Vec<KernelRuns>,
    /// The cells of latencies that at least two runs have, in the order of the first run.
    pub cells: Vec<MatchedCell>,
    /// The costs that at least two runs have, in the order of the first run.
    pub costs: Vec<MatchedCost>,
    /// What each kernel costs altogether, compared with the first; of runs of one kernel, each run.
    pub cost_means: Vec<CostMean>,
    /// The indices of each run.
    pub indices: Vec<Vec<IndexValue>>,
    /// The worst case of each kernel beside what it costs; empty unless both were measured of
    /// several kernels.
    pub trade: Vec<Trade>,
    /// The cells that only one run has.
    pub unmatched: Vec<Unmatched>,
    /// What differs between the runs besides their results.
    pub differences: Vec<Difference>,
    /// Estimates over replicates, if the first kernel and another one have several
    /// runs, and latencies in common.
    pub replicates: Option<Replicates>,
    /// What may not be concluded, one sentence each, the most important first.
    pub caveats: Vec<String>,
}

impl Comparison {
    /// Whether the runs are shown by kernel, as replicates, rather than one by one.
    #[must_use]
    pub fn is_replicated(&self) -> bool {
        self.runs.len() > 2 && self.groups.iter().any(|group| group.runs.len() > 1)
    }

    /// Whether costs are shown by kernel rather than by run.
    #[must_use]
    pub fn has_costs_by_kernel(&self) -> bool {
        groups::are_shown(&self.groups, self.runs.len())
    }
}

/// Which run a column stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunLabel {
    /// Its unique name.
    pub run_id: String,
    /// What its reader calls it, as in [`crate::run::LoadedRun::label`].
    pub label: Option<String>,
    /// The board, as [`super::board_names`] calls it.
    pub board: String,
    /// `uname -r`.
    pub kernel: String,
    /// Preemption model.
    pub preemption: Model,
    /// Whether the run ended, and how.
    pub state: RunState,
    /// Whether it was measured, imported or simulated.
    pub origin: Origin,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its largest latency over all of its cells, ns; those that other runs lack too.
    pub max_ns: Option<i64>,
    /// Number of its cells with a result.
    pub cells_measured: usize,
    /// Number of its cells whose latencies are made up.
    pub cells_simulated: usize,
    /// What weakens it, each 0 or 1; that a board of the lab is virtual does not.
    pub weakened: Weakened,
}
