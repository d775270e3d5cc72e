//! The sides of a comparison: which runs are replicates of each other.

use std::collections::BTreeMap;

use serde::Serialize;

use super::settings::{SETTINGS, Setting};
use crate::preemption::Model;
use crate::schema::Run;

/// What a run is compared as a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedSide {
    /// What its reader calls it.
    pub name: String,
    /// Whether all of its runs are replicates of each other because their reader says so, whatever
    /// kernels, boards and settings they are of.
    pub whole: bool,
}

/// The runs of one side: of one kernel on one board with the same settings, and of one argument if
/// arguments are sides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct KernelRuns {
    /// What the reader calls it, if that makes it a side.
    pub side: Option<String>,
    /// Whether only that makes it a side: its runs may be of several kernels, boards and settings.
    /// What follows is of the first run then.
    pub whole: bool,
    /// Name of the board.
    pub board: String,
    /// The values of [`super::SETTINGS`], by their names; those that could be read.
    pub settings: BTreeMap<&'static str, String>,
    /// `uname -r`.
    pub kernel: String,
    /// Preemption model.
    pub preemption: Model,
    /// Indices of its runs.
    pub runs: Vec<usize>,
}

/// Whether kernels are shown rather than runs, for what has no table of its own of either: two
/// runs of one kernel stand for themselves.
pub(super) fn are_shown(groups: &[KernelRuns], runs: usize) -> bool {
    groups.len() > 1 || runs > 2
}

/// What tells kernels apart, by the kernel's own account: its name, and then hashes of its
/// configuration and image, since reproducible builds of different trees have equal names.
/// The board belongs to it, and its settings: replicates are of one kernel on one board that nobody
/// has set up otherwise between them.
struct Identity<'a> {
    side: Option<&'a ComparedSide>,
    named: [&'a str; 5],
    preemption: Model,
    /// Whether it went on from a kept state: its boot is not its own.
    is_warm: bool,
    /// Hashes; none where a run could not read it, which tells nothing apart.
    hashes: [Option<&'a str>; 3],
    /// The values of [`SETTINGS`]; none where a run could not read it.
    settings: Vec<Option<String>>,
}

impl<'a> Identity<'a> {
    fn of(run: &'a Run, side: Option<&'a ComparedSide>) -> Self {
        let Run { kernel, board, .. } = run;
        Self {
            side,
            named: [
                &kernel.release,
                &kernel.version,
                &kernel.command_line,
                &board.name,
                &board.fingerprint,
            ],
            preemption: kernel.preemption,
            is_warm: board.is_warm(),
            hashes: [
                kernel.config_sha256.as_deref(),
                build_id(run),
                board.lab.as_ref().map(|lab| lab.kernel_sha256.as_str()),
            ],
            settings: SETTINGS.iter().map(|setting| setting.of(run)).collect(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        if self.side.is_some_and(|side| side.whole) {
            return self.side == other.side;
        }
        self.side == other.side
            && self.named == other.named
            && self.preemption == other.preemption
            && self.is_warm == other.is_warm
            && are_alike(&self.hashes, &other.hashes)
            && are_alike(&self.settings, &other.settings)
    }
}

/// Whether nothing that both have read differs.
fn are_alike<T: PartialEq>(a: &[Option<T>], b: &[Option<T>]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.is_none() || b.is_none() || a == b)
}

/// The GNU build ID of the run's kernel, if it was recorded.
pub(super) fn build_id(run: &Run) -> Option<&str> {
    run.facts.get("kernel")?.get("build_id")?.as_str()
}

/// The runs by kernel (release, version, preemption model, command line, configuration,
/// image), board and settings, and by their sides if they have any, in the order of their first runs.
/// A run that was given twice to a side counts once; if its name does not show that, a sentence says
/// so.
pub(crate) fn by_kernel(
    runs: &[&Run],
    sides: &[Option<&ComparedSide>],
) -> (Vec<KernelRuns>, Vec<String>) {
    let side = |number: usize| sides.get(number).copied().flatten();
    let mut groups: Vec<KernelRuns> = Vec::new();
    let mut notes = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let known = groups.iter_mut().find(|group| {
            let members = group.runs.iter().map(|of| Identity::of(runs[*of], side(*of)));
            members.into_iter().all(|member| member.is(&Identity::of(run, side(number))))
        });
        let Some(group) = known else {
            let setting = |one: &Setting| Some((one.name, one.of(run)?));
            groups.push(KernelRuns {
                side: side(number).map(|side| side.name.clone()),
                whole: side(number).is_some_and(|side| side.whole),
                board: run.board.name.clone(),
                settings: SETTINGS.iter().filter_map(setting).collect(),
                kernel: run.kernel.release.clone(),
                preemption: run.kernel.preemption,
                runs: vec![number],
            });
            continue;
        };
        let mut members = group.runs.iter().map(|r| runs[*r]);
        if members.clone().any(|member| member.run_id == run.run_id) {
            continue;
        }
        if let Some(member) = members.find(|member| is_repeated(member, run)) {
            notes.push(format!(
                "{} repeats {}: the same plan, seed and phase on a deterministic virtual board; \
                 they count as one run",
                run.run_id, member.run_id
            ));
            continue;
        }
        group.runs.push(number);
    }
    (groups, notes)
}

/// Whether two runs of a kernel are one deterministic run, made twice.
fn is_repeated(a: &Run, b: &Run) -> bool {
    fn origin(run: &Run) -> Option<impl PartialEq + '_> {
        let lab = run.board.lab.as_ref().filter(|lab| lab.counted)?;
        let board = (&lab.qemu, &lab.options, &lab.firmware_sha256, &lab.snapshot_sha256);
        let guest = (&lab.kernel_sha256, &lab.initramfs_sha256);
        Some((lab.seed, run.phase_ns, &run.dither, run.aim, &run.plan_hash, board, guest))
    }
    origin(a).is_some_and(|a| origin(b) == Some(a))
}
