//! The record of the run before its first cell: board, kernel, conditions, facts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use punctual_core::layout;
use punctual_core::plan::Plan;
use punctual_core::schema::{
    BoardKind, Cell, Condition, Origin, Outcome, Run, RunState, SCHEMA, Verdict,
};
use punctual_core::units::utc;
use punctual_sys::clock::ClockCost;

use super::api::Options;
use super::prepared::Prepared;
use super::privileges::Privileges;
use super::threads::Reach;
use super::time_base;
use crate::facts::{self, Facts, FactsRoot, Measurement};
use crate::recorder::Recorder;

pub(super) fn describe(plan: &Plan, options: &Options, facts: &Facts, checked: &[Prepared]) -> Run {
    let mut board = facts.board();
    if let Some(name) = &options.board_name {
        board.name.clone_from(name);
    }
    // A virtual board is what the lab that made it says.
    if options.virtual_board.is_none() {
        let given = options.board_name.as_deref();
        board.identity = facts::identity::identity(&FactsRoot::live(), given);
    }
    if let Some(of) = &options.virtual_board {
        board.kind = BoardKind::Virtual;
        board.turn_wait_ns = of.turn_wait_ns;
        board.marks = Some(Recorder::marks());
        board.modules = facts::modules::addresses(&FactsRoot::live());
    }
    let cells: Vec<Cell> = checked
        .iter()
        .enumerate()
        .map(|(number, cell)| cell.pending(number, options.dither.is_some()))
        .collect();
    let simulated = cells.iter().all(Cell::is_simulated);
    // Of a virtual board the side that ordered the run knows the whole plan. The digits of a hash
    // are no number of instructions that a course may depend on.
    let plan_hash = match options.virtual_board {
        None => plan.hash(),
        Some(_) => String::new(),
    };
    let started = time_base();
    Run {
        schema: SCHEMA.to_owned(),
        run_id: format!(
            "{}-{}-{}-{:08x}",
            utc(started.realtime_ns),
            board.name,
            facts.kernel.release,
            random_bits()
        ),
        state: RunState::Running,
        origin: if simulated { Origin::Simulated } else { Origin::Native },
        group: options.group.clone(),
        replicate: options.replicate,
        phase_ns: options.phase_ns,
        dither: options.dither.clone(),
        // Recorded once its cell has ended.
        aim: None,
        plan_hash,
        plan: plan.clone(),
        tool: facts::tool(options.program, options.tool_sha256.as_deref()),
        board,
        kernel: facts.kernel.clone(),
        privileged: false,
        is_virtual: facts.is_virtual(),
        started,
        ended: None,
        continued: Vec::new(),
        conditions: Vec::new(),
        // What delays this machine delays no simulated run.
        facts: if simulated { BTreeMap::new() } else { facts.groups() },
        cells,
        verdict: Verdict {
            outcome: Outcome::None,
            confidence: plan.confidence,
            ..Verdict::default()
        },
        judged: false,
    }
}

pub(super) fn default_dir(run: &Run) -> PathBuf {
    let name =
        format!("{}-{}-{}", utc(run.started.realtime_ns), run.board.name, run.kernel.release);
    // The name of the board is free text.
    let name = name.replace(|c: char| c == '/' || c.is_control(), "-");
    layout::unused(Path::new(layout::RUNS), &name, Path::exists)
}

/// The only condition of a run that measures nothing of the machine.
pub(super) fn simulated() -> Condition {
    Condition {
        id: "simulated".to_owned(),
        text: "SIMULATED: the latencies are made up; nothing of this machine was measured"
            .to_owned(),
    }
}

pub(super) fn conditions(
    facts: &Facts,
    privileges: &Privileges,
    options: &Options,
    spins: bool,
    dma_error: Option<&std::io::Error>,
    reach: &Reach,
) -> Vec<Condition> {
    let measurement = Measurement {
        privileged: privileges.real_time.is_none(),
        spins,
        memory_locked: privileges.memory.is_none(),
        dma_latency_us: options.dma_latency_us.filter(|_| dma_error.is_none()),
        reachable: Some(reach.cpus.clone()),
        all_cpus: options.all_cpus,
    };
    let mut conditions = facts::conditions(facts, &measurement);
    if options.virtual_board.is_some() {
        // The host does not affect a virtual board whose time is counted; the condition that the
        // lab adds says more. The load average is still that of the boot, although the board has
        // come to rest.
        let of_host = ["virtual-machine", "load-average"];
        conditions.retain(|condition| !of_host.contains(&condition.id.as_str()));
    }
    for condition in &mut conditions {
        let reason = match condition.id.as_str() {
            "unprivileged" => &privileges.real_time,
            "memory-not-locked" => &privileges.memory,
            _ => &None,
        };
        if let Some(reason) = reason {
            condition.text = format!("{} ({reason})", condition.text);
        }
    }
    conditions.extend(options.conditions.iter().cloned());
    if let Some(error) = dma_error {
        conditions.push(Condition {
            id: "dma-latency-not-held".to_owned(),
            text: format!(
                "{error}: CPUs may enter deep idle states, and wake-ups from them are late"
            ),
        });
    }
    conditions
}

pub(super) fn add_facts(
    run: &mut Run,
    clock: &ClockCost,
    privileges: &Privileges,
    options: &Options,
    state_bytes: usize,
) {
    run.facts.insert(
        "engine".to_owned(),
        serde_json::json!({
            "clock_cost_ns": clock.cost_ns,
            "clock_syscall_cost_ns": clock.syscall_cost_ns,
            "clock_granularity_ns": clock.granularity_ns,
            "clock_vdso": clock.vdso,
            "dma_latency_us": options.dma_latency_us,
            "sync": options.sync.name(),
            "break_ns": options.break_ns,
            "threshold_ns": options.threshold_ns,
            "require_rt": options.require_rt,
            "all_cpus": options.all_cpus,
            "real_time_refused": privileges.real_time,
            "memory_lock_refused": privileges.memory,
            "state_bytes_per_thread": state_bytes,
        }),
    );
}

pub(super) fn insert(run: &mut Run, group: &str, facts: &impl serde::Serialize) {
    if let Ok(value) = serde_json::to_value(facts) {
        run.facts.insert(group.to_owned(), value);
    }
}

/// Tells apart two runs that start on one board within a second.
fn random_bits() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(0)
}
