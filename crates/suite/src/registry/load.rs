//! Loads: what the registry says of one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;

use super::need::Need;
use super::param::{Param, Value};
use super::values::Values;
use crate::harness::worker::{LoadError, Worker};

/// One load of the registry.
#[derive(Debug, Clone, Copy)]
pub struct LoadEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// A paragraph for help: what it does, what it follows.
    pub help: &'static str,
    /// The parameter that a bare value after the colon sets; empty for none.
    pub main_param: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it counts, at most [`punctual_sys::shared::COUNTERS`].
    pub counters: &'static [&'static str],
    /// What it needs of the board, whatever its parameters are.
    pub needs: &'static [Need],
    /// How it runs.
    pub form: Form,
}

/// How a load runs.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// No process at all.
    Idle,
    /// One part under one supervisor.
    Part(PartForm),
    /// Other loads that run together, as text that [`crate::harness::spec::LoadSpec::parse`] reads.
    Composite(&'static [&'static str]),
    /// A later version brings it. Plans may name it: its cells are SKIPPED until then.
    Planned,
}

/// How one part is prepared and run.
#[derive(Debug, Clone, Copy)]
pub struct PartForm {
    /// Gives every parameter that the machine decides on its value, and checks those that
    /// were given against the machine. Runs in the measuring process when the cell starts.
    /// The error names the parameter.
    pub resolve: fn(&mut Values, &Machine) -> Result<(), String>,
    /// Whether it is given a folder of its own, below its parameter `dir`.
    pub scratch: bool,
    /// Does the work, in the leader, until it is killed.
    pub run: fn(&Worker<'_>) -> Result<Infallible, LoadError>,
}

/// What the defaults of parameters depend on.
#[derive(Debug, Clone)]
pub struct Machine {
    /// CPUs that a load may run on.
    pub cpus: u64,
    /// Memory that is available without swapping, bytes.
    pub memory: u64,
    /// Where folders of loads are made unless told otherwise.
    pub scratch_parent: PathBuf,
}

impl Machine {
    /// The folder that the parameter `dir` names, made absolute and set; the machine's
    /// own if it was not given.
    ///
    /// # Errors
    /// What is wrong with the folder.
    pub fn resolve_dir(&self, values: &mut Values) -> Result<PathBuf, String> {
        let given = values.is_known("dir").then(|| PathBuf::from(values.text("dir")));
        let dir = given.unwrap_or_else(|| self.scratch_parent.clone());
        let wrong = |error: &std::io::Error| {
            format!("{}: {}", dir.display(), punctual_sys::error::text(error))
        };
        let dir = std::fs::canonicalize(&dir).map_err(|error| wrong(&error))?;
        let text = dir.to_str().ok_or("dir: not UTF-8")?.to_owned();
        values.set("dir", Value::Text(text));
        Ok(dir)
    }
}

/// For loads of which the machine decides nothing.
///
/// # Errors
/// None.
pub fn nothing_to_resolve(_: &mut Values, _: &Machine) -> Result<(), String> {
    Ok(())
}

impl LoadEntry {
    /// A load that a later version brings.
    #[must_use]
    pub const fn planned(name: &'static str, summary: &'static str) -> Self {
        Self {
            name,
            summary,
            help: "Planned, not in this version: a cell with it is SKIPPED.",
            main_param: "",
            params: &[],
            counters: &[],
            needs: &[],
            form: Form::Planned,
        }
    }

    /// Whether a later version brings it.
    #[must_use]
    pub const fn is_planned(&self) -> bool {
        matches!(self.form, Form::Planned)
    }

    /// Reads its parameters.
    ///
    /// # Errors
    /// A message that names the load, the parameter and what is wrong with it.
    pub fn read(&self, given: &BTreeMap<String, String>) -> Result<Values, String> {
        Values::read(self.name, self.params, given)
    }
}
