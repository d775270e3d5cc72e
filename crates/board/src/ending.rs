//! How a command ended, and the exit status.

use punctual_core::schema::{CellState, Run, RunState};

use crate::numbers::{broke, later};

/// Exit status of usage errors, and of errors of this program or of the board.
pub const ERROR: u8 = 2;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Done, and nothing was later than a deadline.
    Done,
    /// Something was later than the deadline.
    Later,
    /// An error, which has been told.
    Failed,
    /// Something that was asked for is missing on this machine.
    Skipped,
    /// A sample was above the break value.
    Broke,
    /// A signal.
    Interrupted,
}

impl Ending {
    /// The exit status; those of `punctual`.
    pub fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Later => 1,
            Self::Failed => ERROR,
            Self::Skipped => 4,
            Self::Broke => 5,
            Self::Interrupted => 130,
        }
    }

    /// The ending of a run.
    pub fn of(run: &Run, by_signal: bool, written: bool) -> Self {
        let skipped = |state| state == CellState::Skipped;
        let asked = run.cells.iter().zip(&run.plan.cells);
        let mut missing = asked.filter(|(cell, plan)| skipped(cell.state) && !plan.available);
        match run.state {
            _ if by_signal => Self::Interrupted,
            RunState::Failed => Self::Failed,
            _ if !written => Self::Failed,
            _ if later(run) > 0 => Self::Later,
            _ if broke(run) => Self::Broke,
            RunState::Interrupted => Self::Interrupted,
            _ if missing.next().is_some() => Self::Skipped,
            RunState::Running | RunState::Complete => Self::Done,
        }
    }
}
