//! The loads: one file each, and their registry.
//!
//! A load is made of parts. Each part runs outside the measuring process, under
//! a supervisor of its own that is exec'd from the same binary and holds the
//! part's processes together:
//!
//! ```text
//! punctual ── supervisor (init of a PID namespace) ── leader: the load's `run` ── its workers
//!     ▲            │ status pipe                          │ counters
//!     └────────────┴────────────── shared memory ─────────┘
//! ```
//!
//! Architecture invariants: a load counts its work in shared memory and never
//! reports in any other way while it runs; it never ends by itself; it never
//! asks for real-time scheduling; it sends nothing beyond the loopback addresses.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;

use crate::registry::{Need, Param, Values};

mod bytes;
mod cmd;
mod compile;
mod containment;
mod copy;
mod disk;
mod flood;
mod hackbench;
mod none;
mod paper;
mod part;
pub mod planned;
mod process;
mod procs;
mod set;
mod spec;
mod supervisor;
mod tree;
mod worker;

pub use punctual_sys::process::spawn::Containment;
pub use set::{LoadContext, LoadSet, LoadStartError, PartSample, default_scratch_parent};
pub use spec::{LoadSpec, PartSpec, SpecError};
pub use supervisor::supervisor_main;
pub use worker::{LoadError, Tally, Worker};

/// Every load, in the order of lists.
pub static LOADS: &[LoadEntry] = &[
    none::ENTRY,
    hackbench::ENTRY,
    compile::ENTRY,
    copy::ENTRY,
    disk::ENTRY,
    tree::ENTRY,
    flood::ENTRY,
    process::ENTRY,
    cmd::ENTRY,
    paper::ENTRY,
];

/// One load of the registry.
#[derive(Debug, Clone, Copy)]
pub struct LoadEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// A paragraph for help: what it does, what it follows, what it needs.
    pub help: &'static str,
    /// The parameter that a bare value behind the colon sets; empty for none.
    pub main_param: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// What it counts, at most [`punctual_sys::shared::COUNTERS`].
    pub counters: &'static [&'static str],
    /// What it needs of the board, for lists and help. Whether a need is met shows
    /// when the load starts: it may depend on the parameters.
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
    /// Other loads that run together, as text that [`LoadSpec::parse`] reads.
    Composite(&'static [&'static str]),
}

/// How one part is prepared and run.
#[derive(Debug, Clone, Copy)]
pub struct PartForm {
    /// Gives every parameter its value as it takes effect on this machine; runs
    /// in the measuring process. The error names the parameter.
    pub resolve: fn(&Values, &Machine) -> Result<Params, String>,
    /// Whether it is given a folder of its own, below its parameter `dir`.
    pub scratch: bool,
    /// Does the work, in the leader, until it is killed.
    pub run: fn(&Worker<'_>) -> Result<Infallible, LoadError>,
}

/// The parameters of a part as they took effect.
pub type Params = BTreeMap<String, String>;

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

/// The entry of a load.
#[must_use]
pub fn find(name: &str) -> Option<&'static LoadEntry> {
    LOADS.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_sys::shared::COUNTERS;

    #[test]
    fn the_registry_is_sound() {
        for (i, entry) in LOADS.iter().enumerate() {
            let name = entry.name;
            assert!(LOADS[..i].iter().all(|other| other.name != name), "{name}");
            assert!(entry.counters.len() <= COUNTERS, "{name}");
            assert!(!entry.summary.is_empty() && entry.help.len() > 40, "{name}");
            let main = entry.main_param;
            let known = |key| entry.params.iter().any(|param| param.name == key);
            assert!(main.is_empty() || known(main), "{name}");
            match entry.form {
                Form::Idle => assert!(entry.counters.is_empty(), "{name}"),
                Form::Part(part) => {
                    assert!(!entry.counters.is_empty(), "{name}");
                    assert!(!part.scratch || known("dir"), "{name}");
                }
                Form::Composite(parts) => {
                    assert!(parts.len() > 1 && entry.params.is_empty(), "{name}");
                    let spec = LoadSpec::parse(name).unwrap();
                    assert_eq!(spec.parts().len(), parts.len(), "{name}");
                }
            }
        }
    }

    #[test]
    fn what_is_resolved_is_what_the_registry_lists() {
        let machine = Machine { cpus: 2, memory: 4 << 30, scratch_parent: std::env::temp_dir() };
        for entry in LOADS {
            let Form::Part(part) = entry.form else {
                continue;
            };
            let text = match entry.name {
                "cmd" => "cmd:true",
                name => name,
            };
            let spec = LoadSpec::parse(text).unwrap();
            let params = (part.resolve)(&spec.parts()[0].values, &machine).unwrap();
            let keys: Vec<_> = params.keys().map(String::as_str).collect();
            let mut listed: Vec<_> = entry.params.iter().map(|param| param.name).collect();
            listed.sort_unstable();
            assert_eq!(keys, listed, "{}", entry.name);
        }
    }
}
