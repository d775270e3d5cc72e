//! The engine: a plan in, a run directory out.
//!
//! plan -> preconditions -> for each cell: load, body, main thread -> `run.json`. Nothing
//! here is in the hot path; [`crate::recorder`] is.

use anyhow::{Context, anyhow};
use punctual_core::judge::Judge;
use punctual_core::plan::Plan;
use punctual_core::schema::{Cell, CellState, Origin, Run, RunState, TimeBase};
use punctual_core::units::{SECOND_NS, exact_duration};
use punctual_sys::clock::{Clock, measure_cost, tsc};
use punctual_sys::memory;
use punctual_sys::signal::Signals;

mod advice;
mod aimed;
mod api;
mod beside;
mod body;
mod by_phase;
mod cell;
mod collector;
mod continued;
mod cost;
mod describe;
mod environment;
mod foreign;
mod latency;
mod main_thread;
mod outcome;
mod pending;
mod prepared;
mod privileges;
mod reach;
mod room;
mod run_dir;
mod stops;
mod team;
mod thread;
pub mod threads;
mod timing;

pub use api::{Finished, Observer, Options, Program, Progress, ThreadProgress, UsageError};
pub use prepared::{canonical, long_enough_ns};
pub use run_dir::{Draft, RunDir, SyncPolicy};

use describe::{add_facts, conditions, default_dir, describe, insert, simulated};
use environment::Environment;
use foreign::Foreign;
use prepared::Prepared;
use privileges::Privileges;

use crate::facts::{CpuTimes, Facts, FactsRoot, Interrupts, StrainReader};
use crate::knobs::{DmaLatency, Journal};

/// Longer delays are useless, and sums of instants stay far below 2^64 ns.
const LONGEST_DELAY_NS: u64 = 3_600 * SECOND_NS;

/// Runs a plan on this machine, and has `judge` judge what is found. Call it in the main thread,
/// before others start.
///
/// # Errors
/// [`UsageError`] if the request itself is wrong; other errors if nothing could be measured.
pub fn run(
    plan: &Plan,
    options: &Options,
    judge: &dyn Judge,
    observer: &mut dyn Observer,
) -> anyhow::Result<Finished> {
    let wrong = |text: String| anyhow!(UsageError(text));
    plan.check().map_err(|error| wrong(error.to_string()))?;
    for (what, ns) in [("warm-up", plan.warmup_ns), ("phase", options.phase_ns)] {
        if ns > LONGEST_DELAY_NS {
            return Err(wrong(format!("the {what} is {}: at most 1h", exact_duration(ns))));
        }
    }
    let plan = &canonical(plan).map_err(wrong)?;
    let clock_cost = measure_cost(Clock::Monotonic);
    let (reach, left_out) = reach::find(options, clock_cost.cost_ns)?;
    let break_ns = limit(options.break_ns);
    let prepared: Vec<Prepared> = plan
        .cells
        .iter()
        .map(|cell| Prepared::new(cell, &reach, break_ns))
        .collect::<Result<_, _>>()
        .map_err(wrong)?;

    if let Some(text) = aimed::refused(options.aim, &prepared, options.dither.as_ref()) {
        return Err(wrong(text));
    }

    let facts = Facts::read(&FactsRoot::live());
    let described = describe(plan, options, &facts, &prepared);
    // Before the run directory, which stays empty if any of this fails.
    let mut signals = Signals::block().context("signals")?;
    signals.watch_stops().context("signals")?;
    let mut journal = Journal::new().context("the journal of what is to be undone")?;
    let memory = |bound: usize| prepared.iter().map(|cell| cell.memory_bytes()[bound]).max();
    let memory = [0, 1].map(|bound| memory(bound).unwrap_or(0).saturating_add(RESULTS_BYTES));
    let fits = room::memory(memory, &FactsRoot::live()).map_err(wrong)?;
    let privileges = Privileges::try_out(&facts, memory[1]);
    let dir = options.out.clone().unwrap_or_else(|| default_dir(&described));
    let before = options.continued.as_deref();
    let needed = room::Needed::by(continued::left(&prepared, before)).times(options.runs);
    // Of several runs, users know the folder that they share.
    let shared = dir.parent().filter(|_| options.runs > 1);
    let takes = room::check(needed, shared.unwrap_or(&dir)).map_err(wrong)?;
    let dma_latency = options.dma_latency_us.map(DmaLatency::hold).transpose();
    let conditions = if described.origin == Origin::Simulated {
        vec![simulated()]
    } else {
        let spins = prepared.iter().any(Prepared::spins);
        let dma_error = dma_latency.as_ref().err();
        let mut found = conditions(&facts, &privileges, options, spins, dma_error, &reach);
        found.extend(left_out.filter(|_| prepared.iter().any(Prepared::is_on_each_cpu)));
        found.extend(beside::condition(&FactsRoot::live().path("proc")));
        found
    };
    let mut run = Run { privileged: privileges.all(), conditions, ..described };
    let state_bytes = prepared.iter().map(Prepared::state_bytes).max().unwrap_or(0);
    add_facts(&mut run, &clock_cost, &privileges, options, state_bytes);
    let (mut run, mut store) = match before {
        None => (run, RunDir::create(&dir).map_err(wrong)?),
        Some(before) => {
            let store = RunDir::reopen(&dir).map_err(wrong)?;
            // Now that no other process writes it.
            continued::check_unchanged(before, &store).map_err(wrong)?;
            (continued::merge(before, run, &dir).map_err(wrong)?, store)
        }
    };
    if options.virtual_board.is_some() {
        // It is sent out as it is.
        store.keep_whole();
    }
    let interrupts = Interrupts::read(&FactsRoot::live());
    if run.origin != Origin::Simulated {
        insert(&mut run, "interrupts_before", &interrupts);
    }

    let plan_ns =
        plan.cells.iter().fold(0, |sum: u64, cell| sum.saturating_add(plan.takes_ns(cell)));
    observer.started(&run, &dir, plan_ns);
    if !signals.ignored().is_empty() {
        observer.ignoring(signals.ignored());
    }
    store.warning().inspect(|text| observer.warn(text));
    for takes in [takes, fits] {
        match takes {
            room::Takes::Little => {}
            room::Takes::Enough(text) => observer.takes(&text),
            room::Takes::Scarce(text) => observer.warn(&text),
        }
    }
    let mut environment = Environment {
        store: &mut store,
        signals: &signals,
        journal: &mut journal,
        observer,
        judge,
        refused: privileges.of(options.require_rt),
        privileges,
        cpu_times: CpuTimes::open(&FactsRoot::live()).ok(),
        strain: StrainReader::open(&FactsRoot::live()),
        foreign: (run.origin != Origin::Simulated).then(Foreign::find),
        threshold_ns: limit(options.threshold_ns),
        phase_ns: options.phase_ns,
        dither: options.dither.as_ref(),
        aim: options.aim,
        sync: options.sync,
        mips: options
            .virtual_board
            .filter(|board| board.cpus == 1)
            .and_then(|board| u32::try_from(board.mips?).ok()),
        interrupts,
        hash_at_end: options.tool_sha256.is_none(),
        ended_by: None,
        stuck: false,
    };
    let not_written = run_cells(&mut environment, plan, &prepared, &mut run);
    let ended_by = environment.ended_by;
    memory::unlock_all();
    journal.undo_or_complain();
    Ok(Finished { run, dir: store, signals, ended_by, not_written })
}

/// What the main thread may allocate for results: generous, since running out of locked memory
/// ends the process.
const RESULTS_BYTES: usize = 4 << 20;

fn limit(ns: Option<u64>) -> i64 {
    ns.map_or(i64::MAX, |ns| i64::try_from(ns).unwrap_or(i64::MAX))
}

/// Runs the cells and writes down what each has become. Results are never given up because of a
/// disk error; returns why the last `run.json` could not be written.
fn run_cells(
    environment: &mut Environment<'_>,
    plan: &Plan,
    prepared: &[Prepared],
    run: &mut Run,
) -> Option<String> {
    let mut not_written = None;
    let mut failed = false;
    let mut before_ns: u64 = 0;
    let cell_ns = |number: usize| plan.takes_ns(&plan.cells[number]);
    // A run that goes on has results already.
    let pending = |cell: &Cell| cell.state == CellState::Pending;
    let last = run.cells.iter().rposition(pending);
    for (number, cell) in prepared.iter().enumerate() {
        if !pending(&run.cells[number]) {
            before_ns = before_ns.saturating_add(cell_ns(number));
            continue;
        }
        run.cells[number].state = CellState::Running;
        // A failure here repeats after the cell, and is reported then.
        let _ = environment.store.write_cell(run, number);
        environment.observer.cell_started(&run.cells[number], number, before_ns);
        let done = cell::run(environment, plan, cell, run, number);
        if let Err(error) = done {
            run.cells[number].state = CellState::Failed;
            run.cells[number].reason = Some(error.to_string());
            environment.judge.cell(run, number, None);
            run.state = RunState::Failed;
        }
        before_ns = before_ns.saturating_add(cell_ns(number));
        run.cells[number].settle_cost();
        environment.observer.cell_ended(&run.cells[number]);
        let state = run.cells[number].state;
        if state == CellState::Interrupted {
            run.state = RunState::Interrupted;
        }
        if state == CellState::Failed {
            // One metric that fails says nothing of the others; one that is stuck still runs.
            if run.cells[number].cost().is_some()
                && !environment.stuck
                && environment.ended_by.is_none()
            {
                failed = true;
            } else {
                run.state = RunState::Failed;
            }
        }
        let aimed = environment.aim.in_cell(number).is_some();
        if aimed {
            aimed::record(environment.aim, number, run, environment.judge);
        }
        let over = aimed || matches!(run.state, RunState::Interrupted | RunState::Failed);
        let written = if over || Some(number) == last {
            if failed && run.state == RunState::Running {
                run.state = RunState::Failed;
            }
            finish(run, environment);
            environment.store.write_run(run)
        } else {
            environment.judge.run(run);
            environment.store.write_cell(run, number)
        };
        not_written = written.err();
        if over {
            break;
        }
    }
    environment.store.release_reserve();
    // Releasing the reserve may make room for what was refused.
    if not_written.is_some() {
        not_written = environment.store.write_run(run).err();
    }
    not_written.map(|error| error.to_string())
}

fn finish(run: &mut Run, environment: &Environment<'_>) {
    if run.state == RunState::Running {
        run.state = RunState::Complete;
    }
    for cell in run.cells.iter_mut().filter(|cell| cell.state == CellState::Pending) {
        cell.reason = Some("the run ended before its turn".to_owned());
        cell.settle_cost();
    }
    run.ended = Some(time_base());
    if environment.hash_at_end {
        run.tool.sha256 = crate::facts::hash_of_executable().unwrap_or_default();
    }
    if run.origin != Origin::Simulated {
        let after = Interrupts::read(&FactsRoot::live());
        insert(run, "interrupts_during", &environment.interrupts.until(&after));
        insert(run, "interrupts_after", &after);
    }
    environment.judge.run(run);
}

/// Reads all clocks in a row.
fn time_base() -> TimeBase {
    TimeBase {
        monotonic_ns: Clock::Monotonic.now_ns(),
        monotonic_raw_ns: Clock::MonotonicRaw.now_ns(),
        boottime_ns: Clock::Boottime.now_ns(),
        realtime_ns: Clock::Realtime.now_ns(),
        tsc: tsc::is_invariant().then(|| tsc::read().to_string()),
    }
}

#[cfg(test)]
mod tests;
