//! What weakens every claim that rests on a run.

use serde::Serialize;

use crate::schema::{Cell, Origin, Run};

/// How many of the runs claim less than a run in real time on real hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Weakened {
    /// Made up, whole.
    pub simulated: usize,
    /// Made up in part.
    pub simulated_in_part: usize,
    /// Measured without real-time scheduling or locked memory.
    pub not_real_time: usize,
    /// Measured in a virtual machine.
    pub virtual_machine: usize,
    /// Of which a cell drifted.
    pub drift: usize,
}

impl Weakened {
    /// What weakens the claims of these runs.
    #[must_use]
    pub fn of(runs: &[&Run]) -> Self {
        let count = |is: &dyn Fn(&Run) -> bool| runs.iter().filter(|run| is(run)).count();
        let made_up = |run: &Run| run.origin == Origin::Simulated;
        let in_part = |run: &Run| !made_up(run) && run.cells.iter().any(Cell::is_simulated);
        Self {
            simulated: count(&made_up),
            simulated_in_part: count(&in_part),
            not_real_time: count(&|run| !made_up(run) && !run.privileged),
            virtual_machine: count(&|run| !made_up(run) && run.is_virtual),
            drift: count(&|run| run.cells.iter().any(Cell::drifted)),
        }
    }

    /// What weakens the claims of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            simulated: self.simulated + other.simulated,
            simulated_in_part: self.simulated_in_part + other.simulated_in_part,
            not_real_time: self.not_real_time + other.not_real_time,
            virtual_machine: self.virtual_machine + other.virtual_machine,
            drift: self.drift + other.drift,
        }
    }
}
