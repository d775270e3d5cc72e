//! Load specifications such as `hackbench:groups=4+flood`: which loads run together, with
//! which parameters.

use std::fmt;

use punctual_core::params::{Named, ParamError};

use crate::loads::{LOADS, find};
use crate::registry::load::{Form, LoadEntry};
use crate::registry::{Values, near};

/// A load specification, checked against the registry.
#[derive(Debug, Clone)]
pub struct LoadSpec {
    canonical: String,
    parts: Vec<PartSpec>,
}

/// One part of a load.
#[derive(Debug, Clone)]
pub struct PartSpec {
    /// Its entry in the registry.
    pub entry: &'static LoadEntry,
    /// Its parameters.
    pub values: Values,
    /// The composite that it belongs to, if any.
    pub composite: Option<&'static str>,
}

/// Why a load specification is refused: a message for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError(String);

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

impl LoadSpec {
    /// Parses loads joined by `+`; everything after `cmd:` is one command.
    ///
    /// # Errors
    /// [`SpecError`] names the unknown load or parameter and lists the known ones.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut parts = Vec::new();
        let mut canonical = Vec::new();
        let elements = split(text);
        for element in &elements {
            let entry = lookup(element)?;
            canonical.push(named(element, entry)?.to_string());
            if let Form::Composite(texts) = entry.form {
                // A composite has no parameters: this refuses any.
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
        // Loads that run together have no order, except that a command takes all that follows.
        canonical.sort_by_key(|one| (name_of(one) == "cmd", one.clone()));
        Ok(Self { canonical: canonical.join("+"), parts })
    }

    /// The canonical form of this load: equal loads have equal keys.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Its parts, with composites expanded.
    #[must_use]
    pub fn parts(&self) -> &[PartSpec] {
        &self.parts
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
    let values = values(text, entry)?;
    Ok(PartSpec { entry, values, composite })
}

fn values(text: &str, entry: &'static LoadEntry) -> Result<Values, SpecError> {
    let named = Named::parse(text, entry.main_param).map_err(|error| of_load(text, &error))?;
    entry.read(&named.params).map_err(SpecError)
}

fn named(text: &str, entry: &'static LoadEntry) -> Result<Named, SpecError> {
    Ok(Named { name: entry.name.to_owned(), params: values(text, entry)?.canonical() })
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
    let hint = near::hint(name, names.iter().copied());
    let hint = if hint.is_empty() { "." } else { &hint };
    Err(SpecError(format!("there is no load \"{name}\"{hint} Loads: {}", names.join(", "))))
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
        assert_eq!(command, "expr 1 + 2, x");
        assert!(names("paper").iter().all(|(_, of)| *of == Some("paper")));
    }

    #[test]
    fn equal_loads_are_written_alike() {
        let canonical = |text: &str| LoadSpec::parse(text).unwrap().canonical().to_owned();
        assert_eq!(canonical("tree+copy:jobs=1"), "copy+tree");
        assert_eq!(canonical("cmd: a+b"), "cmd:a+b");
        assert_eq!(canonical("tree+cmd:a+b"), "tree+cmd:a+b");
        assert_eq!(
            canonical(&canonical("tree+hackbench:02,loops=100+cmd:a, b=1")),
            "hackbench:groups=2+tree+cmd:a, b=1"
        );
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
            ("none+worst", "cannot be joined"),
            ("worst:files", "load \"worst:files\": \"files\" is not of the form key=value"),
            ("flood:x=1,x=2", "x is given twice"),
        ] {
            let error = LoadSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = LoadSpec::parse(&text);
        }
    }
}
