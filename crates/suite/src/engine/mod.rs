//! The engine: a plan in, a run directory out.
//!
//! plan -> preconditions -> for each cell: load, threads, barrier, collector ->
//! `run.json`. Nothing here is in the hot path; [`crate::recorder`] is.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use punctual_core::channel::VirtualBoard;
use punctual_core::hash::sha256;
use punctual_core::plan::Plan;
use punctual_core::schema::{
    Cell, CellState, Condition, Origin, Outcome, Run, RunState, SCHEMA, TimeBase, Verdict,
};
use punctual_core::units::utc;
use punctual_core::verdict::{Rule, judge_run};
use punctual_sys::affinity;
use punctual_sys::clock::{Clock, measure_cost, tsc};
use punctual_sys::memory;
use punctual_sys::signal::{Signal, Signals, die_by_default};

mod cell;
mod collector;
mod outcome;
mod privileges;
mod store;
mod team;
mod thread;
pub mod threads;
mod watch;

pub use collector::Collected;
pub use store::Sync;

use cell::Checked;
use privileges::Privileges;
use store::RunDir;
use threads::Reach;

use crate::facts::{self, CpuTimes, Facts, FactsRoot, Interrupts, Measurement, Ticks};
use crate::knobs::{DmaLatency, Journal};

/// How to run a plan, beside the plan.
#[derive(Debug, Clone)]
pub struct Options {
    /// The run directory; none: `punctual-runs/<UTC time>-<board>-<kernel>`.
    pub out: Option<PathBuf>,
    /// Name of the board; none: the host name.
    pub board_name: Option<String>,
    /// Exit latency to hold `/dev/cpu_dma_latency` at, us; none: leave it alone.
    pub dma_latency_us: Option<u32>,
    /// A sample above this ends the run, ns.
    pub break_ns: Option<u64>,
    /// Samples above this are all kept, ns.
    pub threshold_ns: Option<u64>,
    /// When records are forced to the disk.
    pub sync: Sync,
    /// Runs that belong together.
    pub group: Option<String>,
    /// Number within the group.
    pub replicate: Option<u32>,
    /// Delay before the first release, ns.
    pub phase_ns: u64,
    /// Allows priority 99.
    pub force: bool,
    /// The virtual board that this machine is; none elsewhere. Who made the board adds to the
    /// record what it was made of.
    pub virtual_board: Option<VirtualBoard>,
    /// SHA-256 of this program, hexadecimal, if that is known already; else it is computed.
    pub tool_sha256: Option<String>,
}

/// What is wrong with what was asked for; nothing was measured.
#[derive(Debug)]
pub struct UsageError(pub String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Progress within a cell.
#[derive(Debug)]
pub struct Progress<'a> {
    /// The cell's key.
    pub key: &'a str,
    /// Measured so far, ns.
    pub measured_ns: u64,
    /// Largest sample so far, ns.
    pub max_ns: Option<i64>,
    /// What was collected from each thread so far.
    pub threads: &'a [Collected],
}

/// Follows a run.
pub trait Observer {
    /// The run directory is there; `plan_ns` is what the plan takes, warm-ups included.
    fn started(&mut self, run: &Run, dir: &Path, plan_ns: u64);
    /// A cell begins; `before_ns` of the plan lie behind.
    fn cell_started(&mut self, cell: &Cell, number: usize, before_ns: u64);
    /// Once a second within a cell.
    fn progress(&mut self, progress: &Progress<'_>);
    /// SIGUSR1 asked for a snapshot.
    fn snapshot(&mut self);
    /// A cell has ended.
    fn cell_ended(&mut self, cell: &Cell);
}

/// What the cells of a run share.
struct Environment<'a> {
    store: &'a mut RunDir,
    signals: &'a Signals,
    journal: &'a mut Journal,
    observer: &'a mut dyn Observer,
    rule: Rule,
    privileges: Privileges,
    cpu_times: Option<CpuTimes>,
    threshold_ns: i64,
    phase_ns: u64,
    sync: Sync,
    interrupts: Interrupts,
    ended_by: Option<Signal>,
}

impl Environment<'_> {
    fn cpu_times(&self) -> Option<Ticks> {
        self.cpu_times.as_ref()?.read().ok()
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.observer.progress(progress);
    }

    /// A second signal: nothing is waited for. Loads end with this process.
    fn end_at_once(&mut self, signal: Signal) {
        self.journal.undo_or_complain();
        self.store.release_reserve();
        die_by_default(signal);
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// `run.json`.
    pub run: Run,
    /// Its directory.
    pub dir: PathBuf,
    /// The signal that ended it.
    pub ended_by: Option<Signal>,
    /// Why `run.json` could not be written at the end.
    pub not_written: Option<String>,
}

/// Runs a plan on this machine. Call it in the main thread, before others start.
///
/// # Errors
/// [`UsageError`] for what was asked for; others where nothing could be measured.
pub fn run(
    plan: &Plan,
    options: &Options,
    observer: &mut dyn Observer,
) -> anyhow::Result<Finished> {
    let wrong = |text: String| anyhow!(UsageError(text));
    plan.check().map_err(|error| wrong(error.to_string()))?;
    let clock_cost = measure_cost(Clock::Monotonic);
    let reach = Reach {
        cpus: affinity::reachable().context("the CPUs that can be had")?,
        inherited: affinity::get().context("the inherited affinity")?,
        clock_cost_ns: clock_cost.cost_ns,
        force: options.force,
    };
    let break_ns = limit(options.break_ns);
    let checked: Vec<Checked> = plan
        .cells
        .iter()
        .map(|cell| Checked::new(cell, &reach, break_ns))
        .collect::<Result<_, _>>()
        .map_err(wrong)?;

    let facts = Facts::read(&FactsRoot::live());
    let mut run = describe(plan, options, &facts, &checked);
    let dir = options.out.clone().unwrap_or_else(|| default_dir(&run));
    let mut store = RunDir::create(&dir).map_err(wrong)?;

    let signals = Signals::block().context("signals")?;
    let dma_latency = options.dma_latency_us.map(DmaLatency::hold).transpose();
    let privileges = Privileges::try_out(&facts);
    run.privileged = privileges.all();
    run.conditions = conditions(&facts, &privileges, options, dma_latency.as_ref().err());
    add_facts(&mut run, &clock_cost, &privileges, options);
    let interrupts = Interrupts::read(&FactsRoot::live());
    insert(&mut run, "interrupts_before", &interrupts);

    let mut journal = Journal::new().context("the journal of what is to be undone")?;
    let plan_ns: u64 =
        plan.cells.iter().map(|cell| cell.duration_ns.saturating_add(plan.warmup_ns)).sum();
    observer.started(&run, &dir, plan_ns);
    let rule = Rule::of(plan, &run.board);
    let rule = match &options.virtual_board {
        Some(board) => rule.on_virtual_board(board.mips.is_some()),
        None => rule,
    };
    let mut environment = Environment {
        store: &mut store,
        signals: &signals,
        journal: &mut journal,
        observer,
        rule,
        privileges,
        cpu_times: CpuTimes::open(&FactsRoot::live()).ok(),
        threshold_ns: limit(options.threshold_ns),
        phase_ns: options.phase_ns,
        sync: options.sync,
        interrupts,
        ended_by: None,
    };
    let not_written = run_cells(&mut environment, plan, &checked, &mut run);
    let ended_by = environment.ended_by;
    memory::unlock_all();
    journal.undo_or_complain();
    Ok(Finished { run, dir, ended_by, not_written })
}

fn limit(ns: Option<u64>) -> i64 {
    ns.map_or(i64::MAX, |ns| i64::try_from(ns).unwrap_or(i64::MAX))
}

/// Runs the cells and rewrites `run.json` after each. What was measured is never
/// given up for an error of the disk: returns why the last `run.json` is not there.
fn run_cells(
    environment: &mut Environment<'_>,
    plan: &Plan,
    checked: &[Checked],
    run: &mut Run,
) -> Option<String> {
    let mut not_written = None;
    let mut before_ns = 0;
    for (number, cell) in checked.iter().enumerate() {
        run.cells[number].state = CellState::Running;
        // What fails here fails again behind the cell, and is told then.
        let _ = environment.store.write_run(run);
        environment.observer.cell_started(&run.cells[number], number, before_ns);
        let done = cell::run(environment, plan, cell, &mut run.cells[number]);
        if let Err(error) = done {
            run.cells[number].state = CellState::Failed;
            run.cells[number].reason = Some(error.to_string());
            run.state = RunState::Failed;
        }
        before_ns += plan.cells[number].duration_ns.saturating_add(plan.warmup_ns);
        environment.observer.cell_ended(&run.cells[number]);
        let state = run.cells[number].state;
        if state == CellState::Interrupted {
            run.state = RunState::Interrupted;
        }
        if state == CellState::Failed {
            run.state = RunState::Failed;
        }
        let over = matches!(run.state, RunState::Interrupted | RunState::Failed);
        if over || number + 1 == checked.len() {
            finish(run, &environment.interrupts);
        } else {
            run.verdict = judge_run(&run.cells[..=number]);
        }
        not_written = environment.store.write_run(run).err();
        if over {
            break;
        }
    }
    environment.store.release_reserve();
    // With the reserve given back there may be room for what was refused.
    if not_written.is_some() {
        not_written = environment.store.write_run(run).err();
    }
    not_written.map(|error| error.to_string())
}

fn finish(run: &mut Run, interrupts: &Interrupts) {
    if run.state == RunState::Running {
        run.state = RunState::Complete;
    }
    for cell in run.cells.iter_mut().filter(|cell| cell.state == CellState::Pending) {
        cell.reason = Some("the run ended before its turn".to_owned());
    }
    run.ended = Some(time_base());
    let after = Interrupts::read(&FactsRoot::live());
    insert(run, "interrupts_during", &interrupts.until(&after));
    insert(run, "interrupts_after", &after);
    let judged: Vec<Cell> =
        run.cells.iter().filter(|cell| cell.state != CellState::Pending).cloned().collect();
    run.verdict = judge_run(&judged);
}

fn describe(plan: &Plan, options: &Options, facts: &Facts, checked: &[Checked]) -> Run {
    let mut board = facts.board();
    if let Some(name) = &options.board_name {
        board.name.clone_from(name);
    }
    if options.virtual_board.is_some() {
        board.kind = "virtual".to_owned();
    }
    let plan_hash = sha256(&serde_json::to_vec(plan).unwrap_or_default());
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
        origin: Origin::Native,
        group: options.group.clone(),
        replicate: options.replicate,
        phase_ns: options.phase_ns,
        plan_hash,
        plan: plan.clone(),
        tool: facts::tool(options.tool_sha256.as_deref()),
        board,
        kernel: facts.kernel.clone(),
        privileged: false,
        is_virtual: facts.is_virtual(),
        started,
        ended: None,
        conditions: Vec::new(),
        facts: facts.groups(),
        cells: checked.iter().enumerate().map(|(number, cell)| cell.pending(number)).collect(),
        verdict: Verdict {
            outcome: Outcome::None,
            confidence: plan.confidence,
            ..Verdict::default()
        },
    }
}

fn default_dir(run: &Run) -> PathBuf {
    let name =
        format!("{}-{}-{}", utc(run.started.realtime_ns), run.board.name, run.kernel.release);
    let folder = Path::new("punctual-runs");
    let plain = folder.join(&name);
    // Two runs within a second do not share a folder.
    (2..100)
        .map(|n| folder.join(format!("{name}-{n}")))
        .fold(plain, |dir, next| if dir.exists() { next } else { dir })
}

fn conditions(
    facts: &Facts,
    privileges: &Privileges,
    options: &Options,
    dma_error: Option<&std::io::Error>,
) -> Vec<Condition> {
    let measurement = Measurement {
        privileged: privileges.real_time.is_none(),
        memory_locked: privileges.memory.is_none(),
        dma_latency_us: options.dma_latency_us.filter(|_| dma_error.is_none()),
    };
    let mut conditions = facts::conditions(facts, &measurement);
    if let Some(board) = &options.virtual_board {
        // The host is no part of a virtual board whose time is counted; what it is says more.
        conditions.retain(|condition| condition.id != "virtual-machine");
        conditions.insert(0, facts::virtual_board(board));
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

fn add_facts(
    run: &mut Run,
    clock: &punctual_sys::clock::ClockCost,
    privileges: &Privileges,
    options: &Options,
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
            "real_time_refused": privileges.real_time,
            "memory_lock_refused": privileges.memory,
            "state_bytes_per_thread": crate::recorder::state_bytes(),
        }),
    );
}

fn insert(run: &mut Run, group: &str, facts: &impl serde::Serialize) {
    if let Ok(value) = serde_json::to_value(facts) {
        run.facts.insert(group.to_owned(), value);
    }
}

/// Tells two runs apart that start within a second on one board.
fn random_bits() -> u32 {
    use std::hash::{BuildHasher, RandomState};
    u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or(0)
}

/// All clocks, read one after the other.
fn time_base() -> TimeBase {
    TimeBase {
        monotonic_ns: Clock::Monotonic.now_ns(),
        monotonic_raw_ns: Clock::MonotonicRaw.now_ns(),
        boottime_ns: Clock::Boottime.now_ns(),
        realtime_ns: Clock::Realtime.now_ns(),
        tsc: tsc::is_invariant().then(|| tsc::read().to_string()),
    }
}
