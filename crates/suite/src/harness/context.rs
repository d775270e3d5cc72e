//! What a load is started with, and what its parts show while they run.

use std::path::PathBuf;

use punctual_sys::affinity::CpuSet;
use punctual_sys::process::containment::Containment;
use punctual_sys::storage;

use super::order::LOAD_SUPERVISOR;
use crate::knobs::{Journal, temporary_folders};

/// What a load is started with.
#[derive(Debug)]
pub struct LoadContext<'a> {
    /// The program that supervisors are exec'd from; `/proc/self/exe` by default.
    pub executable: PathBuf,
    /// Arguments that make it call [`super::supervisor::supervisor_main`]; [`LOAD_SUPERVISOR`] by
    /// default.
    pub self_args: Vec<String>,
    /// Where scratch folders of loads are made, unless a parameter says otherwise.
    pub scratch_parent: PathBuf,
    /// CPUs that threads of the probe are bound to; none by default. The loads run on those of the
    /// calling thread, unless their parameters say otherwise.
    pub probe: CpuSet,
    /// The containments to try, in order; all of them by default.
    pub containments: Vec<Containment>,
    /// The journal, in which folders are noted before they are made.
    pub journal: &'a mut Journal,
}

impl<'a> LoadContext<'a> {
    /// The defaults.
    #[must_use]
    pub fn new(journal: &'a mut Journal) -> Self {
        Self {
            executable: "/proc/self/exe".into(),
            self_args: vec![LOAD_SUPERVISOR.to_owned()],
            scratch_parent: default_scratch_parent(),
            probe: CpuSet::default(),
            containments: Containment::ALL.to_vec(),
            journal,
        }
    }
}

/// `$TMPDIR` or `/var/tmp`, whichever comes first on a disk; otherwise the first that exists.
#[must_use]
pub fn default_scratch_parent() -> PathBuf {
    let candidates = temporary_folders();
    let on_disk = |path: &&PathBuf| storage::room(path).is_ok_and(|room| !room.in_memory);
    let best = candidates.iter().find(on_disk).or(candidates.first());
    best.cloned().unwrap_or_else(|| "/tmp".into())
}

/// The state of a part at one call of [`super::set::LoadSet::sample`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartSample {
    /// Name of the load.
    pub load: &'static str,
    /// Name and cumulative count since the start of the load.
    pub counters: Vec<(&'static str, u64)>,
    /// How often it ended and was restarted since the start of the load.
    pub restarts: u64,
    /// Why it no longer runs or never did; `None` while it runs.
    pub died: Option<String>,
}
