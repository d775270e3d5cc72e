//! How a command ended, and the corresponding exit status.

use std::fmt;

use punctual_core::schema::{Outcome, Run, RunState};

/// Exit status of usage errors, and of errors of punctual or the board.
pub const ERROR: u8 = 2;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Done, with nothing to judge.
    Done,
    /// Judged.
    Judged(Outcome),
    /// Two runs that should be identical are not.
    Different,
    /// The runs cannot be compared; the reason has been reported.
    Refused,
    /// Ended by an error, which has been reported; what was measured is kept.
    Failed,
    /// A virtual board failed.
    GuestFailed,
    /// A kernel cannot be judged for a bisection.
    NotJudged,
    /// No kernel can be judged by this command on this machine.
    NoCheck,
    /// Ended by a signal.
    Interrupted,
}

/// A guest that failed although nothing can be told without it, and why.
#[derive(Debug)]
pub struct GuestFailure(pub String);

impl fmt::Display for GuestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GuestFailure {}

/// The exit status for a command line that cannot be parsed; `status` is the usual one. `lab
/// check` differs, because `git bisect run` must neither take the kernel for a bad one nor skip it.
pub fn of_usage(arguments: &[String], status: u8) -> u8 {
    match arguments {
        [_, lab, check, ..] if status != 0 && lab == "lab" && check == "check" => {
            Ending::NoCheck.status()
        }
        _ => status,
    }
}

impl Ending {
    /// The exit status; docs/command-line.md lists them all.
    pub fn status(self) -> u8 {
        match self {
            Self::Done | Self::Judged(Outcome::None | Outcome::Pass) => 0,
            Self::Judged(Outcome::Fail) | Self::Different => 1,
            Self::Failed => ERROR,
            Self::Judged(Outcome::Inconclusive) => 3,
            Self::Judged(Outcome::Skipped) | Self::Refused => 4,
            Self::Judged(Outcome::Break) => 5,
            Self::GuestFailed => 69,
            Self::NotJudged => 125,
            // `git bisect run` stops at 128 or more.
            Self::NoCheck => 129,
            Self::Interrupted => 130,
        }
    }

    /// The ending of a command with this error.
    pub fn of_error(error: &anyhow::Error) -> Self {
        if error.is::<GuestFailure>() { Self::GuestFailed } else { Self::Failed }
    }

    /// The ending of a run with the record `run`. A signal takes precedence, because the plan
    /// was not completed; then an error, because the evidence for the verdict may be
    /// incomplete.
    pub fn of(run: &Run, by_signal: bool, written: bool) -> Self {
        match run.state {
            _ if by_signal => Self::Interrupted,
            _ if !written => Self::Failed,
            RunState::Failed => Self::Failed,
            RunState::Interrupted if run.verdict.outcome < Outcome::Inconclusive => {
                Self::Interrupted
            }
            RunState::Interrupted | RunState::Running | RunState::Complete => {
                Self::Judged(run.verdict.outcome)
            }
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
        assert_eq!(status("punctual lab check --mux 1us", ERROR), 129);
        assert_eq!(status("punctual lab check --help", 0), 0);
        assert_eq!(status("punctual lab run check", ERROR), ERROR);
        assert_eq!(status("punctual", ERROR), ERROR);
    }

    /// The table of exit statuses in the document: status and text.
    fn documented() -> Vec<(u8, &'static str)> {
        let text = include_str!("../../../docs/command-line.md");
        let (_, section) = text.split_once("## Exit status").unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
        let cells = rows.filter_map(|row| row.split_once(" | "));
        cells.filter_map(|(status, text)| Some((status.parse().ok()?, text))).collect()
    }

    /// Each ending with words that tell it in the document.
    const ENDINGS: &[(Ending, &str)] = &[
        (Ending::Done, "nothing to judge"),
        (Ending::Judged(Outcome::None), "nothing to judge"),
        (Ending::Judged(Outcome::Pass), "PASS"),
        (Ending::Judged(Outcome::Fail), "FAIL"),
        (Ending::Different, "not identical"),
        (Ending::Judged(Outcome::Break), "BREAK"),
        (Ending::Failed, "error of punctual"),
        (Ending::Judged(Outcome::Inconclusive), "INCONCLUSIVE"),
        (Ending::Judged(Outcome::Skipped), "SKIPPED"),
        (Ending::Refused, "refused"),
        (Ending::GuestFailed, "guest failed"),
        (Ending::NotJudged, "cannot be judged"),
        (Ending::NoCheck, "no kernel can be judged"),
        (Ending::Interrupted, "interrupted"),
    ];

    #[test]
    fn the_document_lists_every_exit_status_and_no_other() {
        for (ending, words) in ENDINGS {
            let row = documented().into_iter().find(|(status, _)| *status == ending.status());
            let (_, text) = row.unwrap_or_else(|| panic!("{ending:?} is not in the document"));
            assert!(text.contains(words), "{ending:?}: {words:?} is not in {text:?}");
        }
        for (status, text) in documented() {
            let known = ENDINGS.iter().any(|(ending, _)| ending.status() == status);
            assert!(known, "nothing ends with {status}: {text}");
        }
    }

    #[test]
    fn a_failed_guest_is_told_from_other_errors() {
        let failure = anyhow::anyhow!(GuestFailure("a panic".to_owned())).context("debian-rt-0");
        assert_eq!(format!("{failure:#}"), "debian-rt-0: a panic");
        assert_eq!(Ending::of_error(&failure), Ending::GuestFailed);
        assert_eq!(Ending::of_error(&anyhow::anyhow!("a panic")), Ending::Failed);
    }

    /// The lists in help are excerpts of the document's.
    #[test]
    fn statuses_in_help_are_documented() {
        let mut command = crate::cli::command();
        command.build();
        for path in [&["run"][..], &["show"], &["pool"], &["lab", "run"], &["lab", "check"]] {
            let found = path.iter().try_fold(&mut command, |c, name| c.find_subcommand_mut(name));
            let help = found.unwrap().render_long_help().to_string();
            let (_, list) = help.split_once("Exit status").unwrap();
            let rows = list.lines().filter_map(|line| line.trim().split_once("  "));
            let listed: Vec<u8> = rows.filter_map(|(status, _)| status.parse().ok()).collect();
            assert!(listed.len() > 3 && listed.is_sorted(), "{path:?}: {listed:?}");
            for status in listed {
                assert!(documented().iter().any(|(known, _)| *known == status), "{status}");
            }
        }
    }
}
