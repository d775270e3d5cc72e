//! How a command ended, and the exit status that says so.

use punctual_core::schema::{Outcome, Run, RunState};

/// Exit status of a usage error and of an error of punctual or of the board.
pub const ERROR: u8 = 2;

/// How a command that did its work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Done, and nothing to judge.
    Done,
    /// Judged.
    Judged(Outcome),
    /// Two runs that were to be identical are not.
    Different,
    /// Runs that may not be compared were to be; which and why has been said.
    Refused,
    /// A sample was above the break value.
    Broken,
    /// Ended by an error, which has been said; what was measured is kept.
    Failed,
    /// A virtual board failed.
    GuestFailed,
    /// A kernel that was to be judged for a bisection cannot be.
    NotJudged,
    /// Ended by a signal.
    Interrupted,
}

/// The exit status of a command line that cannot be read, where `status` is the usual one:
/// what judges for `git bisect run` must not say by it that a kernel is bad.
pub fn of_usage(arguments: &[String], status: u8) -> u8 {
    match arguments {
        [_, lab, check, ..] if status != 0 && lab == "lab" && check == "check" => {
            Ending::NotJudged.status()
        }
        _ => status,
    }
}

impl Ending {
    /// The exit status; the help of `run` lists them.
    pub fn status(self) -> u8 {
        match self {
            Self::Done | Self::Judged(Outcome::None | Outcome::Pass) => 0,
            Self::Judged(Outcome::Fail) | Self::Different | Self::Broken => 1,
            Self::Failed => ERROR,
            Self::Judged(Outcome::Inconclusive) => 3,
            Self::Judged(Outcome::Skipped) | Self::Refused => 4,
            Self::GuestFailed => 69,
            Self::NotJudged => 125,
            Self::Interrupted => 130,
        }
    }

    /// The ending of a run that came to `run`: a signal goes before all, since
    /// the plan was not executed; an error before the judgement, since its
    /// evidence may be incomplete.
    pub fn of(run: &Run, by_signal: bool, written: bool) -> Self {
        match run.state {
            _ if by_signal => Self::Interrupted,
            _ if !written => Self::Failed,
            RunState::Failed => Self::Failed,
            RunState::Interrupted => Self::Broken,
            RunState::Running | RunState::Complete => Self::Judged(run.verdict.outcome),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_command_line_makes_no_kernel_bad() {
        let status = |line: &str, status| {
            of_usage(&line.split(' ').map(str::to_owned).collect::<Vec<_>>(), status)
        };
        assert_eq!(status("punctual lab check --mux 1us", ERROR), 125);
        assert_eq!(status("punctual lab check --help", 0), 0);
        assert_eq!(status("punctual lab run check", ERROR), ERROR);
        assert_eq!(status("punctual", ERROR), ERROR);
    }
}
