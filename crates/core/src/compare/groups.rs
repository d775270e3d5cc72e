//! The sides of a comparison: which runs are replicates of each other.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::boards::board_names;
use super::settings::{SETTINGS, Setting};
use crate::preemption::Model;
use crate::schema::{Board, Cell, Run};

/// What a run is compared as a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedSide {
    /// What its reader calls it.
    pub name: String,
    /// Whether all of its runs are replicates of each other because their reader says so, whatever
    /// kernels, boards, groups and settings they are of.
    pub whole: bool,
}

/// The runs of one side: of one kernel on one board with the same settings, of one group, and of
/// one argument if arguments are sides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct KernelRuns {
    /// What the reader calls it, if that makes it a side.
    pub side: Option<String>,
    /// Whether only that makes it a side: its runs may be of several kernels, boards and settings.
    /// What follows is of the first run then.
    pub whole: bool,
    /// The board, as [`super::board_names`] calls it.
    pub board: String,
    /// What they were measured as, such as one `lab run`; of the first run that says so.
    pub group: Option<String>,
    /// The values of [`super::SETTINGS`], by their names; those that could be read.
    pub settings: BTreeMap<&'static str, String>,
    /// `uname -r`.
    pub kernel: String,
    /// Preemption model.
    pub preemption: Model,
    /// Indices of its runs.
    pub runs: Vec<usize>,
    /// Largest latency of all cells of all of its runs, ns; of cells that other sides lack too.
    pub max_ns: Option<i64>,
}

/// What the sides are called: `kernel` if each is of another preemption model or release and is
/// named by it, else `side`.
#[must_use]
pub fn side_noun(groups: &[KernelRuns]) -> &'static str {
    let models: BTreeSet<_> = groups.iter().map(|group| group.preemption).collect();
    let kernels: BTreeSet<_> =
        groups.iter().map(|group| (group.preemption, &*group.kernel)).collect();
    let sides: BTreeSet<_> = groups.iter().filter_map(|group| group.side.as_deref()).collect();
    let by_kernel = models.len() == groups.len()
        || (kernels.len() == groups.len() && sides.len() < groups.len());
    if by_kernel && !groups.iter().any(|group| group.whole) { "kernel" } else { "side" }
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
    named: [&'a str; 3],
    board: &'a Board,
    preemption: Model,
    /// What it was measured as a part of; none tells nothing apart.
    group: Option<&'a str>,
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
            named: [&kernel.release, &kernel.version, &kernel.command_line],
            board,
            preemption: kernel.preemption,
            group: run.group.as_deref(),
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
        let is_pooled = self.side.is_some_and(|side| side.whole);
        self.is_but_for_group(other) && (is_pooled || are_alike(&[self.group], &[other.group]))
    }

    fn is_but_for_group(&self, other: &Self) -> bool {
        if self.side.is_some_and(|side| side.whole) {
            return self.side == other.side;
        }
        self.side == other.side
            && self.named == other.named
            && !self.board.is_other(other.board)
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

/// The runs by kernel, as [`by_side`] tells them apart, whatever groups they were measured as.
pub(crate) fn by_kernel(runs: &[&Run]) -> Vec<KernelRuns> {
    let identities: Vec<_> =
        runs.iter().map(|run| Identity { group: None, ..Identity::of(run, None) }).collect();
    told_apart(runs, &identities).0
}

/// The runs by kernel (release, version, preemption model, command line, configuration,
/// image), board, settings and group, and by their sides if they have any, in the order of their
/// first runs. A run that was given twice to a side counts once; if its name does not show that, a
/// sentence says so.
pub(super) fn by_side(
    runs: &[&Run],
    sides: &[Option<&ComparedSide>],
) -> (Vec<KernelRuns>, Vec<String>) {
    let side = |number: usize| sides.get(number).copied().flatten();
    let identities: Vec<_> =
        (0..).zip(runs).map(|(number, run)| Identity::of(run, side(number))).collect();
    told_apart(runs, &identities)
}

/// Whether nothing tells two runs apart, so that they are replicates of each other; not if one is
/// the other, made twice.
#[must_use]
pub fn are_replicates(a: &Run, b: &Run) -> bool {
    Identity::of(a, None).is(&Identity::of(b, None)) && !is_repeated(a, b)
}

fn told_apart(runs: &[&Run], identities: &[Identity<'_>]) -> (Vec<KernelRuns>, Vec<String>) {
    let mut groups: Vec<KernelRuns> = Vec::new();
    let mut notes = Vec::new();
    let boards = board_names(runs);
    for (number, (run, of_run)) in runs.iter().zip(identities).enumerate() {
        // A course that was made twice is one run, whatever it was measured as a part of.
        let is_again = |other: usize| {
            is_repeated(runs[other], run) && identities[other].is_but_for_group(of_run)
        };
        let known = groups.iter_mut().find(|group| {
            group.runs.iter().all(|other| identities[*other].is(of_run))
                || group.runs.iter().any(|other| is_again(*other))
        });
        let Some(group) = known else {
            let first = first_of(number, run, of_run.side);
            groups.push(KernelRuns { board: boards[number].clone(), ..first });
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
        group.max_ns = group.max_ns.max(max_ns(run));
        if group.group.is_none() {
            group.group.clone_from(&run.group);
        }
    }
    (groups, notes)
}

/// A side that has only this run as yet.
fn first_of(number: usize, run: &Run, side: Option<&ComparedSide>) -> KernelRuns {
    let setting = |one: &Setting| Some((one.name, one.of(run)?));
    KernelRuns {
        side: side.map(|side| side.name.clone()),
        whole: side.is_some_and(|side| side.whole),
        board: run.board.name.clone(),
        group: run.group.clone(),
        settings: SETTINGS.iter().filter_map(setting).collect(),
        kernel: run.kernel.release.clone(),
        preemption: run.kernel.preemption,
        runs: vec![number],
        max_ns: max_ns(run),
    }
}

/// The largest latency of a run over all of its cells, ns.
pub(super) fn max_ns(run: &Run) -> Option<i64> {
    run.cells.iter().filter_map(Cell::max_ns).max()
}

/// Whether two runs are of different kernels, whatever their command lines are.
pub(super) fn are_other_kernels(a: &Run, b: &Run) -> bool {
    let (of, other) = (&a.kernel, &b.kernel);
    let are_built_alike = are_alike(
        &[of.config_sha256.as_deref(), build_id(a)],
        &[other.config_sha256.as_deref(), build_id(b)],
    );
    let named = (&of.release, &of.version, of.preemption);
    named != (&other.release, &other.version, other.preemption) || !are_built_alike
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

#[cfg(test)]
mod tests;
