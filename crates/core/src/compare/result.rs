//! What a comparison comes to.

use serde::Serialize;

use super::cost::MatchedCost;
use super::differences::Difference;
use super::groups::KernelRuns;
use super::matching::Unmatched;
use super::replicates::Replicates;
use super::row::Row;
use super::spread::Spread;
use crate::preemption::Model;
use crate::schema::{Origin, Outcome, RunState};

/// Two or more runs, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs, in the order given; `run` elsewhere is an index into them.
    pub runs: Vec<RunLabel>,
    /// The runs by kernel, in the order of their first runs.
    pub groups: Vec<KernelRuns>,
    /// The cells of latencies that at least two runs have, in the order of the first run.
    pub cells: Vec<MatchedCell>,
    /// The costs that at least two runs have, in the order of the first run.
    pub costs: Vec<MatchedCost>,
    /// The cells that only one run has.
    pub unmatched: Vec<Unmatched>,
    /// What differs between the runs besides their results.
    pub differences: Vec<Difference>,
    /// Estimates over replicates, if the first kernel and another one have several
    /// runs.
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
}

/// Which run a column stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunLabel {
    /// Its unique name.
    pub run_id: String,
    /// What its reader calls it, as in [`crate::run::LoadedRun::label`].
    pub label: Option<String>,
    /// Name of the board.
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
    /// Number of its cells with a result.
    pub cells_measured: usize,
    /// Number of its cells whose latencies are made up.
    pub cells_simulated: usize,
}

/// One cell as several runs measured it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MatchedCell {
    /// What the cells were matched by; a number follows if a plan contains the
    /// same cell several times.
    pub key: String,
    /// One row for each run that has the cell, in their order.
    pub rows: Vec<Row>,
    /// The same by kernel, one for each of [`Comparison::groups`].
    pub spreads: Vec<Spread>,
}
