//! What the host adds to a run's record: the board, the group, the command, an ID.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::ensure;
use punctual_core::hash::sha256;
use punctual_core::preemption::Model;
use punctual_core::schema::{Condition, Lab, Run};
use punctual_core::units::utc;

use crate::run_dir::Complete;

/// What only the host knows about a run.
pub(super) struct Record {
    /// Name of the run directory.
    pub(super) name: String,
    /// The board as it was booted.
    pub(super) lab: Lab,
    pub(super) group: String,
    /// The command line that requested it.
    pub(super) command: Vec<String>,
    /// The preemption model that the kernel must report; `None` if any will do.
    pub(super) model: Option<Model>,
}

impl Record {
    /// Completes `run.json`, and refuses a kernel that runs with another model.
    pub(super) fn completes(self) -> Complete {
        let run_id = run_id(&self.name, &self.lab.initramfs_sha256);
        Box::new(move |run: &mut Run| {
            if let Some(model) = self.model {
                let found = run.kernel.preemption;
                ensure!(
                    found == model,
                    "{} was booted with preemption model {model}, but runs with {found}",
                    self.lab.kernel
                );
            }
            run.run_id.clone_from(&run_id);
            run.tool.command.clone_from(&self.command);
            run.group = Some(self.group.clone());
            run.board.lab = Some(self.lab.clone());
            run.conditions.extend(self.lab.snapshot_sha256.as_deref().map(warm));
            Ok(())
        })
    }
}

/// Says that the board did not boot.
fn warm(snapshot_sha256: &str) -> Condition {
    Condition {
        id: "warm".to_owned(),
        text: format!(
            "warm board: it went on from the kept state {}, of one boot, with all other runs from \
             there; not comparable with boards that booted",
            &snapshot_sha256[..8]
        ),
    }
}

/// Unique and sorted by time. It uses the host's clock, because the guest's starts on the same
/// day in every boot.
fn run_id(name: &str, initramfs_sha256: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let bits = sha256(format!("{name} {initramfs_sha256} {now_ns}").as_bytes());
    format!("{}-{name}-{}", utc(now_ns), &bits[..8])
}
