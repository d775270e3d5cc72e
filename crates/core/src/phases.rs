//! A load that changes on a schedule: `none for 5s then hackbench for 5s`.

use std::fmt;

use thiserror::Error;

use crate::units::{BareNumber, SECOND_NS, UnitError, exact_duration, parse_duration_ns};

/// The shortest phase, ns: in the first second of a phase the load changes, which belongs to none.
pub const MIN_PHASE_NS: u64 = 2 * SECOND_NS;

/// The most phases of a schedule: each has a histogram of every thread.
pub const MAX_PHASES: usize = 16;

/// How often the load of a cell may change.
pub const MAX_CHANGES: u64 = 10_000;

/// What stands between two phases.
const THEN: &str = " then ";
/// What stands before the length of a phase.
const FOR: &str = " for ";

/// One phase of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Its load, as it is written without a schedule.
    pub load: String,
    /// How long it lasts, ns: whole seconds, at least [`MIN_PHASE_NS`].
    pub for_ns: u64,
}

/// Why a schedule is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PhaseError {
    /// A phase without a length.
    #[error("load \"{0}\" has no duration; write \"LOAD for TIME then LOAD for TIME\"")]
    NoDuration(String),
    /// A length that is no duration.
    #[error("load \"{load}\": {reason}")]
    Duration {
        /// The phase.
        load: String,
        /// What is wrong.
        reason: UnitError,
    },
    /// A length with a fraction of a second, or too short.
    #[error("load \"{0}\": a phase lasts whole seconds, at least 2")]
    Length(String),
    /// One phase only.
    #[error(
        "load \"{0} for {1}\" is one phase: write \"{0}\" and --duration {1}, or a second phase \
         after then"
    )]
    Single(String, String),
    /// More phases than a schedule may have.
    #[error("a schedule has at most 16 phases; this one has {0}")]
    TooMany(usize),
    /// It does not fit the duration of its cell.
    #[error("duration = {duration}: {reason}")]
    Cell {
        /// The duration of the cell.
        duration: String,
        /// Why it does not fit, and what does.
        reason: String,
    },
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{FOR}{}", self.load, exact_duration(self.for_ns))
    }
}

/// The phases of a load, `None` if it does not change. A command (`cmd:`) takes the words `for` and
/// `then` unless both are there with a duration between them, or it is the last phase.
///
/// # Errors
/// [`PhaseError`] if it looks like a schedule and is none.
pub fn parse(text: &str) -> Result<Option<Vec<Phase>>, PhaseError> {
    let mut phases = Vec::new();
    let mut open = String::new();
    let mut pieces = text.split(THEN).peekable();
    while let Some(piece) = pieces.next() {
        open.push_str(piece);
        let is_last = pieces.peek().is_none();
        match timed(&open) {
            Some(Ok(phase)) => {
                phases.push(phase?);
                open.clear();
            }
            // The words belong to the command.
            _ if is_command(&open) && !is_last => open.push_str(THEN),
            _ if is_last && phases.is_empty() && (is_command(&open) || !open.contains(FOR)) => {
                return Ok(None);
            }
            Some(Err(reason)) => {
                return Err(PhaseError::Duration { load: open.trim().to_owned(), reason });
            }
            None => return Err(PhaseError::NoDuration(open.trim().to_owned())),
        }
    }
    match &phases[..] {
        [one] if is_command(&one.load) => Ok(None),
        [one] => Err(PhaseError::Single(one.load.clone(), exact_duration(one.for_ns))),
        _ if phases.len() > MAX_PHASES => Err(PhaseError::TooMany(phases.len())),
        _ => Ok(Some(phases)),
    }
}

/// A load with a length behind it; `None` if there is no length.
fn timed(text: &str) -> Option<Result<Result<Phase, PhaseError>, UnitError>> {
    let (load, time) = text.rsplit_once(FOR)?;
    let load = load.trim();
    Some(parse_duration_ns(time, BareNumber::Seconds).map(|for_ns| {
        if for_ns < MIN_PHASE_NS || !for_ns.is_multiple_of(SECOND_NS) {
            return Err(PhaseError::Length(text.trim().to_owned()));
        }
        Ok(Phase { load: load.to_owned(), for_ns })
    }))
}

/// How long a load's schedule takes once, ns; `None` if it has none or is wrong.
#[must_use]
pub fn length_ns(load: &str) -> Option<u64> {
    let phases = parse(load).ok()??;
    phases.iter().try_fold(0_u64, |sum, phase| sum.checked_add(phase.for_ns))
}

/// A schedule in its canonical form.
#[must_use]
pub fn text(phases: &[Phase]) -> String {
    phases.iter().map(Phase::to_string).collect::<Vec<_>>().join(THEN)
}

/// Whether a load is a command or has one joined to it, which takes whatever follows.
fn is_command(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("cmd:") || text.contains("+cmd:")
}

/// Where the first element of a list of loads ends: at a comma that no command takes.
pub(crate) fn element_end(text: &str) -> usize {
    let mut from = 0;
    loop {
        let rest = &text[from..];
        let comma = rest.find(',').unwrap_or(rest.len());
        let then = rest[..comma].find(THEN);
        if is_command(&rest[..then.unwrap_or(comma)]) {
            match command_end(rest, from > 0) {
                End::Phase(length) => from += length,
                End::Element(length) => return from + length,
            }
            continue;
        }
        match then {
            Some(then) => from += then + THEN.len(),
            None => return from + comma,
        }
    }
}

enum End {
    /// Of a phase; another one follows.
    Phase(usize),
    /// Of the element.
    Element(usize),
}

/// Where a command ends that is a phase of a schedule, `within` which it may be the last one.
fn command_end(text: &str, within: bool) -> End {
    let mut from = 0;
    while let Some(at) = text[from..].find(FOR) {
        from += at + FOR.len();
        let behind = &text[from..];
        let end = behind.find([' ', ',']).unwrap_or(behind.len());
        if parse_duration_ns(&behind[..end], BareNumber::Seconds).is_err() {
            continue;
        }
        if behind[end..].starts_with(THEN) {
            return End::Phase(from + end + THEN.len());
        }
        if within && !behind[end..].starts_with(' ') {
            return End::Element(from + end);
        }
    }
    End::Element(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::split_list;
    use proptest::prelude::*;

    fn phases(text: &str) -> Vec<(String, u64)> {
        let phases = parse(text).unwrap().unwrap();
        phases.into_iter().map(|phase| (phase.load, phase.for_ns / SECOND_NS)).collect()
    }

    #[test]
    fn a_schedule_names_loads_with_their_lengths() {
        let told = |list: &[(&str, u64)]| -> Vec<(String, u64)> {
            list.iter().map(|(load, seconds)| ((*load).to_owned(), *seconds)).collect()
        };
        for (text, expected) in [
            ("none for 5s then hackbench for 5s", vec![("none", 5), ("hackbench", 5)]),
            (
                " none for 1min then hackbench:groups=4,fds=20+flood for 90 then none for 2s",
                vec![("none", 60), ("hackbench:groups=4,fds=20+flood", 90), ("none", 2)],
            ),
            (
                "cmd:for i in 1; do if a; then b; fi; done for 30s then copy for 2s",
                vec![("cmd:for i in 1; do if a; then b; fi; done", 30), ("copy", 2)],
            ),
            (
                "copy for 2s then tree+cmd:a then b for 3s",
                vec![("copy", 2), ("tree+cmd:a then b", 3)],
            ),
        ] {
            assert_eq!(phases(text), told(&expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_schedule_stays_a_load() {
        for text in [
            "none",
            "hackbench:groups=4+flood",
            "",
            "cmd:sleep 5",
            "cmd:echo for 5s",
            "cmd:if a then b for 5s",
            "cmd:a then b",
        ] {
            assert_eq!(parse(text), Ok(None), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_remedy() {
        for (text, expected) in [
            ("none for 5s", "is one phase: write \"none\" and --duration 5s"),
            ("none for 5s then copy", "load \"copy\" has no duration"),
            ("none then copy for 5s", "load \"none\" has no duration"),
            ("none for 5x then copy for 5s", "\"5x\" is not a time"),
            ("none for 5s then copy for 5", ""),
            ("none for 1s then copy for 5s", "whole seconds, at least 2"),
            ("none for 2500ms then copy for 5s", "whole seconds, at least 2"),
            ("none for 5s then ", "load \"\" has no duration"),
            ("none for 5s then cmd:a", "load \"cmd:a\" has no duration"),
        ] {
            match parse(text) {
                Ok(_) => assert_eq!(expected, "", "{text}"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(!expected.is_empty() && said.contains(expected), "{text}: {said}");
                }
            }
        }
        let many = vec!["none for 2s"; MAX_PHASES + 1].join(THEN);
        assert_eq!(parse(&many), Err(PhaseError::TooMany(MAX_PHASES + 1)));
    }

    #[test]
    fn schedules_are_elements_of_lists() {
        for (text, expected) in [
            (
                "none,none for 5s then hackbench:groups=4,fds=20 for 5s,copy",
                vec!["none", "none for 5s then hackbench:groups=4,fds=20 for 5s", "copy"],
            ),
            (
                "cmd:dd a,b for 5s then none for 5s,copy",
                vec!["cmd:dd a,b for 5s then none for 5s", "copy"],
            ),
            (
                "none for 5s then tree+cmd:a, b for c for 5s,copy",
                vec!["none for 5s then tree+cmd:a, b for c for 5s", "copy"],
            ),
            ("cmd:a,b for 5s,c", vec!["cmd:a,b for 5s,c"]),
            ("cmd:a for 2s then cmd:b,c", vec!["cmd:a for 2s then cmd:b,c"]),
        ] {
            assert_eq!(split_list(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_read_back(
            loads in prop::collection::vec("[a-z]{1,8}(:[a-z]{1,3}=[0-9]{1,3})?", 2..5),
            seconds in 2_u64..100_000,
        ) {
            let phases: Vec<_> = loads
                .into_iter()
                .map(|load| Phase { load, for_ns: seconds * SECOND_NS })
                .collect();
            prop_assert_eq!(parse(&text(&phases)).unwrap().unwrap(), phases);
        }

        #[test]
        fn no_text_panics(text in "(.|( then )|( for )|(5s)|,|cmd:|\\+)*") {
            if let Ok(Some(phases)) = parse(&text) {
                prop_assert!(phases.len() > 1);
            }
            let list = split_list(&text);
            prop_assert_eq!(list.join(","), text);
        }
    }
}
