//! `hackbench:groups=4+flood`: which loads run together, with which parameters.

use std::fmt;

use punctual_core::params::{Named, ParamError};

use super::{Form, LOADS, LoadEntry, find, planned};
use crate::registry::{Planned, Values};

/// A load as it was asked for, checked against the registry.
#[derive(Debug, Clone)]
pub struct LoadSpec {
    text: String,
    parts: Vec<PartSpec>,
    planned: Option<&'static Planned>,
}

/// One part of a load.
#[derive(Debug, Clone)]
pub struct PartSpec {
    /// Its entry in the registry.
    pub entry: &'static LoadEntry,
    /// Its parameters.
    pub values: Values,
    /// The composite it belongs to.
    pub composite: Option<&'static str>,
}

/// Why a load could not be read: a message for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError(String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

impl LoadSpec {
    /// Reads loads joined by `+`; all that is behind `cmd:` is one command. The
    /// parameters of planned loads are taken as they are written.
    ///
    /// # Errors
    /// [`SpecError`] names the unknown load or parameter and lists the known ones.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut parts = Vec::new();
        let mut planned = None;
        let elements = split(text);
        for element in &elements {
            if let Some(later) = planned::find(name_of(element)) {
                Named::parse(element, "").map_err(|error| of_load(element, &error))?;
                planned = planned.or(Some(later));
                continue;
            }
            let entry = lookup(element)?;
            if let Form::Composite(texts) = entry.form {
                // Refuses parameters, of which a composite has none.
                part(element, entry, None)?;
                for inner in texts {
                    parts.push(part(inner, lookup(inner)?, Some(entry.name))?);
                }
            } else {
                parts.push(part(element, entry, None)?);
            }
        }
        let idle = |part: &PartSpec| matches!(part.entry.form, Form::Idle);
        if elements.len() > 1 && parts.iter().any(idle) {
            return Err(SpecError(format!(
                "\"{text}\": none is the absence of load and cannot be joined with others"
            )));
        }
        Ok(Self { text: text.to_owned(), parts, planned })
    }

    /// The text it was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its parts; composites are taken apart.
    #[must_use]
    pub fn parts(&self) -> &[PartSpec] {
        &self.parts
    }

    /// The first of its loads that is not in this version: the load cannot start.
    #[must_use]
    pub fn planned(&self) -> Option<&'static Planned> {
        self.planned
    }
}

/// Splits at `+`, but not inside a command.
fn split(text: &str) -> Vec<&str> {
    let mut elements = Vec::new();
    let mut rest = text;
    while !rest.trim_start().starts_with("cmd:") {
        match rest.split_once('+') {
            Some((element, behind)) => {
                elements.push(element);
                rest = behind;
            }
            None => break,
        }
    }
    elements.push(rest);
    elements
}

fn part(
    text: &str,
    entry: &'static LoadEntry,
    composite: Option<&'static str>,
) -> Result<PartSpec, SpecError> {
    let named = Named::parse(text, entry.main_param).map_err(|error| of_load(text, &error))?;
    let values = Values::check(&named, entry.params).map_err(SpecError)?;
    Ok(PartSpec { entry, values, composite })
}

fn of_load(text: &str, error: &ParamError) -> SpecError {
    SpecError(format!("load \"{text}\": {error}"))
}

fn name_of(text: &str) -> &str {
    text.split(':').next().unwrap_or("").trim()
}

fn lookup(text: &str) -> Result<&'static LoadEntry, SpecError> {
    let name = name_of(text);
    if let Some(entry) = find(name) {
        return Ok(entry);
    }
    let names: Vec<_> = LOADS.iter().map(|entry| entry.name).collect();
    let near = names
        .iter()
        .map(|known| (distance(name, known), known))
        .min()
        .filter(|(distance, known)| *distance <= 2 && *distance < known.len());
    let hint = near.map_or(".".to_owned(), |(_, known)| format!("; did you mean \"{known}\"?"));
    Err(SpecError(format!("there is no load \"{name}\"{hint} Loads: {}", names.join(", "))))
}

/// Edits (insertions, deletions, replacements) from one name to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(text: &str) -> Vec<(&'static str, Option<&'static str>)> {
        let spec = LoadSpec::parse(text).unwrap();
        let parts = spec.parts().iter();
        parts.map(|part| (part.entry.name, part.composite)).collect()
    }

    #[test]
    fn loads_are_joined_by_plus_but_a_command_is_whole() {
        assert_eq!(names("hackbench:4,loops=20+flood"), [("hackbench", None), ("flood", None)]);
        assert_eq!(names("copy+cmd:a+b"), [("copy", None), ("cmd", None)]);
        let spec = LoadSpec::parse("copy+cmd:expr 1 + 2, x").unwrap();
        let command = spec.parts()[1].values.text("command");
        assert_eq!(command, Some("expr 1 + 2, x"));
        assert!(names("paper").iter().all(|(_, of)| *of == Some("paper")));
    }

    #[test]
    fn what_is_unknown_is_named_with_what_exists() {
        for (text, expected) in [
            ("hackbensh", "did you mean \"hackbench\"?"),
            ("xyzzy", "there is no load \"xyzzy\". Loads: none, hackbench"),
            ("", "there is no load \"\". Loads: none"),
            ("copy+", "there is no load \"\""),
            ("flood:speed=1", "flood has no parameter \"speed\"; it has: proto"),
            ("paper:x=1", "paper has no parameter \"x\"; it has: none"),
            ("none+copy", "cannot be joined"),
            ("none+untar", "cannot be joined"),
            ("untar:files", "load \"untar:files\": \"files\" is not of the form key=value"),
            ("flood:x=1,x=2", "x is given twice"),
        ] {
            let error = LoadSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn planned_loads_are_taken_as_they_are_written() {
        let spec = LoadSpec::parse("copy+untar:files=9+dohell").unwrap();
        assert_eq!(spec.planned().map(|load| load.name), Some("untar"));
        assert_eq!(names("copy+untar:files=9+dohell"), [("copy", None)]);
        assert!(LoadSpec::parse("copy+cmd:untar + 2").unwrap().planned().is_none());
    }

    #[test]
    fn distances_are_edits() {
        for (a, b, edits) in [("", "abc", 3), ("abc", "abc", 0), ("abcd", "axd", 2)] {
            assert_eq!((distance(a, b), distance(b, a)), (edits, edits));
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = LoadSpec::parse(&text);
        }
    }
}
