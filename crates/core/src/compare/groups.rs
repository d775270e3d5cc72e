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

/// The runs by kernel (release, version, preemption model and command line), in
/// the order of their first runs. A run that was given twice counts once; if its name
/// does not show that, a sentence says so.
pub(super) fn by_kernel(runs: &[&Run]) -> (Vec<KernelRuns>, Vec<String>) {
    let identity = |run: &Run| {
        let kernel = &run.kernel;
        (
            kernel.release.clone(),
            kernel.version.clone(),
            kernel.preemption,
            kernel.command_line.clone(),
        )
    };
    let mut groups: Vec<KernelRuns> = Vec::new();
    let mut notes = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let known = groups.iter_mut().find(|group| identity(runs[group.runs[0]]) == identity(run));
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
        let board = (&lab.qemu, &lab.options, &lab.kernel_sha256, &lab.initramfs_sha256);
        Some((lab.seed, run.phase_ns, &run.plan_hash, board))
    }
    origin(a).is_some_and(|a| origin(b) == Some(a))
}
