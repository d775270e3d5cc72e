//! Load specifications such as `hackbench:groups=4+flood`: which loads run together, with
//! which parameters.

use std::fmt;

use punctual_core::params::{COMMAND, Named, ParamError};
use punctual_core::schema::LoadWork;

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
pub struct SpecError(pub(super) String);

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
                // What it is given is for each of its parts.
                let given = named(element, entry)?.params;
                for text in texts {
                    let inner = lookup(text)?;
                    let mut of_part = named(text, inner)?;
                    of_part.params.extend(given.clone());
                    parts.push(part(&of_part.to_string(), inner, Some(entry.name))?);
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
        canonical.sort_by_key(|one| (name_of(one) == COMMAND, one.clone()));
        Ok(Self { canonical: canonical.join("+"), parts })
    }

    /// The text of a load with a parameter for each of its parts that does not have it.
    ///
    /// # Errors
    /// [`SpecError`] as for [`LoadSpec::parse`], or for a part that cannot have it.
    pub fn with(text: &str, param: &str, value: &str) -> Result<String, SpecError> {
        let mut elements = Vec::new();
        for element in split(text) {
            let entry = lookup(element)?;
            if matches!(entry.form, Form::Idle) {
                elements.push(element.to_owned());
                continue;
            }
            if entry.name == COMMAND {
                return Err(SpecError(format!(
                    "\"{element}\": {param} cannot be set for a command; let taskset, chrt or nice \
                     start it"
                )));
            }
            let mut named = named(element, entry)?;
            named.params.entry(param.to_owned()).or_insert_with(|| value.to_owned());
            elements.push(named.to_string());
        }
        let text = elements.join("+");
        Self::parse(&text)?;
        Ok(text)
    }

    /// The canonical form of this load: equal loads have equal keys.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Gives its parts the parameters that took effect when they were started, so that they are
    /// the same when they are started again.
    pub(super) fn pin(&mut self, started: &[LoadWork]) {
        for (part, work) in self.parts.iter_mut().zip(started) {
            if let Ok(values) = part.entry.read(&work.params) {
                part.values = values;
            }
        }
    }

    /// Its parts, with composites expanded.
    #[must_use]
    pub fn parts(&self) -> &[PartSpec] {
        &self.parts
    }
}

/// Splits at `+`, but not inside a command, and not before the digits of a list of CPUs.
fn split(text: &str) -> Vec<&str> {
    let mut elements = Vec::new();
    let mut rest = text;
    while !rest.trim_start().starts_with("cmd:") {
        let is_list = |behind: &str| behind.starts_with(|c: char| c.is_ascii_digit());
        let Some((at, _)) = rest.match_indices('+').find(|(at, _)| !is_list(&rest[at + 1..]))
        else {
            break;
        };
        elements.push(&rest[..at]);
        rest = &rest[at + 1..];
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
    fn a_list_of_cpus_is_whole_and_that_of_a_composite_is_for_each_part() {
        let spec = LoadSpec::parse("copy:cpus=0+2-3+paper:cpus=others,nice=5").unwrap();
        assert_eq!(spec.canonical(), "copy:cpus=0+2-3+paper:cpus=others,nice=5");
        let placed = |part: &PartSpec| {
            let values = &part.values;
            (part.entry.name, values.effective()["cpus"].clone(), values.number("nice"))
        };
        let placed: Vec<_> = spec.parts().iter().map(placed).collect();
        assert_eq!(placed[0], ("copy", "0+2-3".to_owned(), 0));
        assert!(placed.contains(&("hackbench", "others".to_owned(), 5)), "{placed:?}");
        assert!(placed[1..].iter().all(|(_, cpus, nice)| cpus == "others" && *nice == 5));
    }

    #[test]
    fn a_parameter_is_added_to_each_part_that_does_not_have_it() {
        let with = |text: &str| LoadSpec::with(text, "cpus", "0+2").map_err(|error| error.0);
        assert_eq!(with("none").as_deref(), Ok("none"));
        assert_eq!(
            with("hackbench:2+paper").as_deref(),
            Ok("hackbench:cpus=0+2,groups=2+paper:cpus=0+2")
        );
        assert_eq!(with("copy:cpus=1").as_deref(), Ok("copy:cpus=1"));
        assert!(with("copy+cmd:a+b").unwrap_err().contains("let taskset"));
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
            ("paper:x=1", "paper has no parameter \"x\"; it has: cpus, nice"),
            ("none:cpus=1", "none has no parameter \"cpus\"; it has: none"),
            (
                "copy:cpus=a",
                "copy: cpus=a: must be a list of CPUs such as 0-3,8, or inherited, all",
            ),
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
