//! The runs by kernel: which are replicates of each other.

use serde::Serialize;

use crate::preemption::Model;
use crate::schema::Run;

/// The runs of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelRuns {
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
/// The board belongs to it: replicates are of one kernel on one board.
struct Identity<'a> {
    named: [&'a str; 4],
    preemption: Model,
    /// Whether it went on from a kept state: its boot is not its own.
    is_warm: bool,
    /// Hashes; none where a run could not read it, which tells nothing apart.
    hashes: [Option<&'a str>; 3],
}

impl<'a> Identity<'a> {
    fn of(run: &'a Run) -> Self {
        let Run { kernel, board, .. } = run;
        Self {
            named: [&kernel.release, &kernel.version, &kernel.command_line, &board.fingerprint],
            preemption: kernel.preemption,
            is_warm: board.is_warm(),
            hashes: [
                kernel.config_sha256.as_deref(),
                build_id(run),
                board.lab.as_ref().map(|lab| lab.kernel_sha256.as_str()),
            ],
        }
    }

    fn is(&self, other: &Self) -> bool {
        let hashes = self.hashes.iter().zip(other.hashes);
        self.named == other.named
            && self.preemption == other.preemption
            && self.is_warm == other.is_warm
            && hashes.clone().all(|(a, b)| a.is_none() || b.is_none() || *a == b)
    }
}

/// The GNU build ID of the run's kernel, if it was recorded.
pub(super) fn build_id(run: &Run) -> Option<&str> {
    run.facts.get("kernel")?.get("build_id")?.as_str()
}

/// The runs by kernel (release, version, preemption model, command line, configuration,
/// image and board), in the order of their first runs. A run that was given twice counts
/// once; if its name does not show that, a sentence says so.
pub(crate) fn by_kernel(runs: &[&Run]) -> (Vec<KernelRuns>, Vec<String>) {
    let mut groups: Vec<KernelRuns> = Vec::new();
    let mut notes = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let known = groups.iter_mut().find(|group| {
            let members = group.runs.iter().map(|member| Identity::of(runs[*member]));
            members.into_iter().all(|member| member.is(&Identity::of(run)))
        });
        let Some(group) = known else {
            groups.push(KernelRuns {
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
