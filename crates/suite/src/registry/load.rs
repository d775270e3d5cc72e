//! Loads: the registry entry of one, and how it runs.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;

use punctual_core::params::COMMAND;

use super::need::Need;
use super::param::{Default, Kind, Param, Value, any_text};
use super::placement::PLACE_PARAMS;
use super::values::Values;
use crate::harness::worker::{LoadError, Worker};

/// One load of the registry.
#[derive(Debug, Clone, Copy)]
pub struct LoadEntry {
    /// Name on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// A paragraph for help: what it does, what it is modelled on.
    pub help: &'static str,
    /// The parameter that a bare value after the colon sets; empty for none.
    pub main_param: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it counts, at most [`punctual_sys::shared::COUNTERS`].
    pub counters: &'static [&'static str],
    /// What it needs of the board, whatever its parameters.
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
    /// Other loads that run together, in the syntax of [`crate::harness::spec::LoadSpec::parse`].
    Composite(&'static [&'static str]),
}

/// How one part is prepared and run.
#[derive(Debug, Clone, Copy)]
pub struct PartForm {
    /// Sets every parameter whose default depends on the machine, and checks the given ones
    /// against the machine. Runs in the measuring process when the cell starts. An error names
    /// the parameter.
    pub resolve: fn(&mut Values, &Machine) -> Result<(), String>,
    /// What is made for it before it starts, and removed after its end.
    pub owns: Owns,
    /// `None`: each counter counts units of work. Otherwise the index of the first counter of
    /// what goes on all the time, such as CPU time; those before it count events.
    pub steady_from: Option<usize>,
    /// Does the work, in the leader, until it is killed.
    pub run: fn(&Worker<'_>) -> Result<Infallible, LoadError>,
}

/// What is made for one part before it starts, noted in the journal, and removed after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owns {
    /// Nothing.
    Nothing,
    /// A scratch folder, below its parameter `dir`.
    ScratchFolder,
    /// A control group with a limit of memory, its parameter `limit`.
    MemoryGroup,
}

/// What the defaults of parameters depend on.
#[derive(Debug, Clone)]
pub struct Machine {
    /// CPUs that a load may run on, where it is placed.
    pub cpus: u64,
    /// Memory that is available without swapping, bytes.
    pub memory: u64,
    /// Where the scratch folders of loads go by default.
    pub scratch_parent: PathBuf,
}

/// The parameter `jobs` of loads that run one job per CPU by default.
#[must_use]
pub const fn jobs(help: &'static str) -> Param {
    Param {
        name: "jobs",
        kind: Kind::Count { low: 1, high: 1024 },
        default: Default::OfMachine("one per CPU"),
        help,
    }
}

/// The parameter `dir` of loads that work in a folder of their own.
pub const SCRATCH_DIR: Param = Param {
    name: "dir",
    kind: Kind::Text { value: "DIR", check: any_text },
    default: Default::OfMachine("$TMPDIR or /var/tmp"),
    help: "parent of its scratch folder",
};

impl Machine {
    /// The number of jobs that was given, or one per CPU; sets it.
    pub fn resolve_jobs(&self, values: &mut Values) -> u64 {
        let jobs = values.known_number("jobs").unwrap_or(self.cpus);
        values.set("jobs", Value::Number(jobs));
        jobs
    }

    /// Sets the parameter `dir` to an absolute path and returns it; the default is the
    /// machine's scratch folder.
    ///
    /// # Errors
    /// Why the folder cannot be used.
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

/// For loads whose defaults do not depend on the machine.
///
/// # Errors
/// None.
pub fn nothing_to_resolve(_: &mut Values, _: &Machine) -> Result<(), String> {
    Ok(())
}

/// For loads of which only the number of jobs depends on the machine.
///
/// # Errors
/// None.
pub fn jobs_to_resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    machine.resolve_jobs(values);
    Ok(())
}

impl LoadEntry {
    /// Index of the first counter of what goes on all the time, if it has such counters.
    #[must_use]
    pub fn steady_from(&self) -> Option<usize> {
        match self.form {
            Form::Part(form) => form.steady_from,
            _ => None,
        }
    }

    /// Its parameters and those that every load has.
    #[must_use]
    pub fn all_params(&self) -> Vec<Param> {
        let placed = match self.form {
            // All that follows its colon is the command.
            _ if self.name == COMMAND => &[],
            Form::Part(_) | Form::Composite(_) => PLACE_PARAMS,
            Form::Idle => &[],
        };
        self.params.iter().chain(placed).copied().collect()
    }

    /// Reads its parameters.
    ///
    /// # Errors
    /// A message that names the load, the parameter and what is wrong with it.
    pub fn read(&self, given: &BTreeMap<String, String>) -> Result<Values, String> {
        Values::read(self.name, &self.all_params(), given)
    }
}
