//! What the host adds to a run's record: the plan, its judgement, the board, the group, the
//! command, an ID.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use punctual_core::channel::Order;
use punctual_core::hash::sha256;
use punctual_core::judge::judge_record;
use punctual_core::plan::Plan;
use punctual_core::preemption::Model;
use punctual_core::schema::{Cell, Condition, Lab, Run};
use punctual_core::units::{human_ns, utc};

use crate::run_dir::Complete;

/// What only the host knows about a run.
pub(super) struct Record {
    /// Name of the run directory.
    pub(super) name: String,
    /// The board as it was booted.
    pub(super) lab: Lab,
    pub(super) group: String,
    /// Number of the run within the group.
    pub(super) replicate: u32,
    /// The command line that requested it.
    pub(super) command: Vec<String>,
    /// The preemption model that the kernel must report; `None` if any will do.
    pub(super) model: Option<Model>,
    /// The plan, of which the guest knows what it measures.
    pub(super) plan: Plan,
    /// What the guest was told.
    pub(super) order: Order,
}

impl Record {
    /// Completes and judges `run.json`, and refuses a kernel that runs with another model, or a
    /// run of another order.
    pub(super) fn completes(self) -> Complete {
        let run_id = run_id(&self.name, &self.lab.initramfs_sha256);
        let ordered = self.order.plan();
        Box::new(move |run: &mut Run| {
            if let Some(model) = self.model {
                let found = run.kernel.preemption;
                ensure!(
                    found == model,
                    "{} was booted with preemption model {model}, but runs with {found}",
                    self.lab.kernel
                );
            }
            self.check(&ordered, run)?;
            run.run_id.clone_from(&run_id);
            run.plan.clone_from(&self.plan);
            run.plan_hash = self.plan.hash();
            run.tool.sha256.clone_from(&self.lab.punctual_sha256);
            run.tool.command.clone_from(&self.command);
            run.group = Some(self.group.clone());
            run.replicate = Some(self.replicate);
            run.board.name = format!("virtual-{}", self.lab.arch);
            run.board.identity.clear();
            run.board.lab = Some(self.lab.clone());
            run.conditions.insert(0, meaning(&self.lab, run.board.turn_wait_ns));
            run.conditions.extend(self.lab.snapshot_sha256.as_deref().map(warm));
            judge_record(run);
            Ok(())
        })
    }

    /// Whether a run is of the order: a guest may run any kernel, and send anything.
    fn check(&self, ordered: &Plan, run: &Run) -> Result<()> {
        let order = &self.order;
        let same = run.plan == *ordered
            && run.phase_ns == order.phase_ns
            && run.dither == order.dither
            && run.aim.is_none_or(|aim| aim == order.aim)
            && run.cells.len() == ordered.cells.len()
            && run.cells.iter().zip(&ordered.cells).all(|(cell, plan)| {
                let Cell { key, load, duration_ns, .. } = cell;
                (key, load, *duration_ns) == (&plan.key(), &plan.load, plan.duration_ns)
            });
        ensure!(same, "the guest sent a run of another order than the one that it was given");
        Ok(())
    }
}

/// What the numbers of a virtual board mean, and what they do not.
fn meaning(lab: &Lab, turn_wait_ns: Option<u64>) -> Condition {
    if !lab.counted {
        return Condition {
            id: "free-running".to_owned(),
            text: "not a measurement: the guest runs without instruction counting, so its \
                   latencies are host noise"
                .to_owned(),
        };
    }
    let mut text = format!(
        "virtual board: time is counted in instructions, {} per microsecond; latencies reflect \
         instruction counts only (no caches, buses or device delays)",
        lab.mips
    );
    if lab.cpus > 1 {
        let each = turn_wait_ns.map_or_else(String::new, |ns| {
            let longest = human_ns(i64::try_from(ns).unwrap_or(i64::MAX));
            format!(", each of up to {longest} while all CPUs are busy and only ticks end a turn")
        });
        text.push_str(&format!(
            "; its CPUs take turns: a latency may include waits for a turn{each}, which are not \
             work of the kernel"
        ));
    }
    for reason in &lab.not_exact {
        text.push_str(&format!("; not exact: {reason}"));
    }
    Condition { id: "counted-instructions".to_owned(), text }
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

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::schema::{BoardIdentity, CellState, IdentityKind, Outcome, RunState};

    /// What the host makes of a run, and why it refuses it.
    fn completed(change: impl Fn(&mut Run, &mut Plan)) -> Result<Run> {
        let simulated = include_bytes!("../../../../fuzz/seeds/run_json/simulated");
        let mut run: Run = serde_json::from_slice(simulated).unwrap();
        let text = "name = \"of the host\"\ndeadline = \"1ns\"\nconfidence = 0.99\n[[cell]]\n\
                    probe = \"sim\"\n";
        let mut plan = Plan::from_toml(text).unwrap();
        run.cells.truncate(1);
        run.cells[0].key = plan.cells[0].key();
        (run.cells[0].load, run.cells[0].duration_ns) =
            (plan.cells[0].load.clone(), plan.cells[0].duration_ns);
        for thread in &mut run.cells[0].latency_mut().unwrap().threads {
            thread.verdict.exceedances = 1;
        }
        let order = Order { phase_ns: run.phase_ns, ..Order::of(&plan, 1) };
        run.plan = order.plan();
        run.judged = false;
        run.verdict.outcome = Outcome::Pass;
        change(&mut run, &mut plan);
        let lab = Lab { counted: true, mips: 250, cpus: 1, ..Lab::default() };
        let record = Record {
            name: "debian-rt-0".to_owned(),
            lab: Lab { arch: "x86_64".to_owned(), punctual_sha256: "be".to_owned(), ..lab },
            group: "g".to_owned(),
            replicate: 3,
            command: vec!["punctual".to_owned()],
            model: None,
            plan,
            order,
        };
        record.completes()(&mut run).map(|()| run)
    }

    #[test]
    fn a_run_gets_its_names_and_its_judgement_from_the_host() {
        let run = completed(|run, _| {
            run.board.identity = vec![BoardIdentity::of(IdentityKind::Uuid, "sent by the guest")];
        });
        let run = run.unwrap();
        assert_eq!(run.board.identity, []);
        assert_eq!((run.plan.name.as_str(), run.plan_hash), ("of the host", run.plan.hash()));
        assert_eq!((run.group.as_deref(), run.replicate), (Some("g"), Some(3)));
        assert_eq!((run.board.name.as_str(), run.tool.sha256.as_str()), ("virtual-x86_64", "be"));
        assert_eq!(run.conditions[0].id, "counted-instructions");
        assert!(run.judged && run.state == RunState::Complete);
        // One of its samples is later than the deadline, whatever the guest says of it.
        assert_eq!(run.verdict.outcome, Outcome::Fail);
        assert_eq!(run.verdict.confidence.to_bits(), 0.99_f64.to_bits());
    }

    #[test]
    fn a_run_of_another_order_is_refused() {
        let changes: [fn(&mut Run, &mut Plan); 11] = [
            |run, _| run.plan.cells[0].duration_ns += 1,
            |run, _| run.plan.deadline_ns = None,
            |run, _| run.cells[0].duration_ns += 1,
            |run, _| run.cells[0].key.push('x'),
            |run, _| run.cells[0].load.push('x'),
            |run, _| run.plan.cells[0].samples = Some(1),
            |run, _| run.plan.cells[0].load.push('x'),
            |run, _| run.cells.clear(),
            |run, _| {
                let more = run.cells[0].clone();
                run.cells.push(more);
            },
            |run, _| run.phase_ns += 1,
            |run, _| run.dither = Some(punctual_core::dither::Dither::of_seed(9)),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let error = completed(change).unwrap_err().to_string();
            assert!(error.contains("of another order"), "change {number}: {error}");
        }
    }

    #[test]
    fn a_cell_that_is_not_over_is_not_judged() {
        let run = completed(|run, _| {
            run.state = RunState::Running;
            run.cells[0].state = CellState::Running;
            run.cells[0].verdict = punctual_core::schema::Verdict::default();
        });
        assert_eq!(run.unwrap().cells[0].verdict.outcome, Outcome::None);
    }

    #[test]
    fn several_cpus_and_devices_limit_what_the_numbers_mean() {
        let lab = Lab { counted: true, mips: 250, cpus: 2, ..Lab::default() };
        let text = meaning(&Lab { not_exact: vec!["a disk".to_owned()], ..lab }, Some(4_000_000));
        assert!(text.text.contains("250 per microsecond"), "{text:?}");
        assert!(text.text.contains("each of up to 4.000 ms"), "{text:?}");
        assert!(text.text.ends_with("not exact: a disk"), "{text:?}");
        assert_eq!(meaning(&Lab::default(), None).id, "free-running");
    }
}
