//! The frame of a cell, the same for all kinds: load, time base, CPU share, conditions.

use punctual_core::aim::Aim;
use punctual_core::plan::Plan;
use punctual_core::schema::{Cell, CellState, Run};
use punctual_core::stats::{BySecond, Limits};
use punctual_sys::sched::Favoured;
use punctual_sys::signal::Signal;
use punctual_sys::{affinity, memory};

use super::beside;
use super::body::Body;
use super::cost::CostBody;
use super::environment::Environment;
use super::latency::{LatencyBody, Start};
use super::main_thread::{MainThread, keep_clear_of};
use super::outcome::{failed, note, note_load, note_others, write};
use super::prepared::{Measures, Prepared};
use super::team::NotStarted;
use super::thread::STACK_BYTES;
use crate::facts::FactsRoot;
use crate::harness::context::LoadContext;
use crate::harness::phases::PhasedLoad;
use crate::registry::need::unmet;

/// What is said of the schedule of a load in simulated time.
const RESTED: &str = "simulated time runs ahead of every load: the phases are those of the \
schedule, and their loads were not run";

/// Measures one cell and puts what it found into `run.cells[number]`.
///
/// # Errors
/// The cell's files cannot be made.
pub(super) fn run(
    environment: &mut Environment<'_>,
    plan: &Plan,
    prepared: &Prepared,
    run: &mut Run,
    number: usize,
) -> std::io::Result<()> {
    let refused = environment.refused.clone().filter(|_| !prepared.is_simulated());
    let measured = match refused.or_else(|| unmet(prepared.needs().into_iter())) {
        Some(reason) => Err(reason),
        None => measure(environment, plan, prepared, run, number)?,
    };
    let course = measured.unwrap_or_else(|reason| {
        let cell = &mut run.cells[number];
        cell.state = CellState::Skipped;
        cell.reason = Some(reason);
        None
    });
    environment.judge.cell(run, number, course.as_ref());
    Ok(())
}

/// What the seconds of the cell were, if it has any. The outer error is one of the run directory;
/// the inner one is the reason to skip the cell.
fn measure(
    environment: &mut Environment<'_>,
    plan: &Plan,
    prepared: &Prepared,
    run: &mut Run,
    number: usize,
) -> std::io::Result<Result<Option<BySecond>, String>> {
    if let Measures::Later(entry) = &prepared.measures {
        return Ok(Err(format!("the probe {} is not in this version", entry.name)));
    }
    let mut files = environment.store.cell(&run.cells[number].dir)?;
    // As one of a thousand that want the CPU, the main thread would read a second's trace in many.
    let before_all = prepared.is_real_time() && environment.privileges.real_time.is_none();
    let _favoured = before_all.then(Favoured::take).flatten();
    let mut context = LoadContext::new(environment.journal);
    context.probe = prepared.bound_cpus();
    let duration_ns = prepared.plan.duration_ns;
    let rests = prepared.is_simulated() && prepared.load.changes();
    let started = if rests {
        Ok(PhasedLoad::resting(&prepared.load, duration_ns))
    } else {
        PhasedLoad::start(&prepared.load, duration_ns, &mut context)
    };
    let mut load = match started {
        Ok(load) => load,
        Err(error) => return Ok(Err(error.to_string())),
    };
    // A run that is killed must be readable from its files alone, including the names of the
    // load's counters.
    run.cells[number].load_work = load.described();
    // A failure here repeats after the cell, and is reported then.
    let _ = environment.store.write_cell(run, number);
    let beside_before = run.conditions.iter().any(|one| one.id == beside::ID);
    let cpus = f64::from(run.board.cpus.max(1));
    let cell = &mut run.cells[number];
    let mut signal = None;
    let aim = environment.aim.in_cell(number);
    let mut body = match body(environment, plan, prepared, aim, &mut signal) {
        Ok(body) => body,
        Err(why) => {
            if let Some(signal) = signal.filter(|signal| signal.ends_at_once(false)) {
                // Or it would go on to write into the folder that is removed.
                load.kill();
                environment.end_at_once(signal);
            }
            // A session may have changed settings before it failed.
            drop(load);
            cell.load_work.clear();
            for left in environment.journal.undo() {
                note(cell, "not-undone", left);
            }
            return Ok(match why {
                NotStarted::Refused(reason) => Err(reason),
                NotStarted::Interrupted => {
                    environment.ended_by = signal;
                    cell.state = CellState::Interrupted;
                    cell.reason = Some("ended by a signal before it began".to_owned());
                    Ok(None)
                }
            });
        }
    };
    let inherited = keep_clear_of(&prepared.bound_cpus());

    let mut main_thread = MainThread::new(environment, cell, body.times());
    let ended = main_thread.until_the_end(&mut *body, &mut load, &mut files);
    let shares = main_thread.whole();
    let stolen = main_thread.stolen();
    let strain = main_thread.whole_strain();
    let own_cpus = main_thread.own_cpus();
    let mut witness = main_thread.witness;
    if let Some(mask) = inherited {
        let _ = affinity::set(&mask);
    }
    cell.ended = Some(super::time_base());
    let phases;
    (cell.load_work, phases) = load.stop(ended.at_ns);
    // What the plan said stays if nothing was measured.
    if !phases.is_empty() {
        cell.phases = phases;
    }
    let shares = shares.filter(|_| !cell.is_simulated());
    cell.cpu_utilisation = shares.map(|share| f64::from(share.busy) / 1e3);
    cell.strain = strain.filter(|_| !cell.is_simulated());
    cell.cpu_own = own_cpus.map(|own| (own / cpus).min(1.0));
    cell.steal = shares.map(|share| f64::from(share.steal) / 1e3);
    let broken = body.is_broken();
    cell.state =
        if ended.interrupted || broken { CellState::Interrupted } else { CellState::Complete };
    if ended.interrupted {
        cell.reason = Some("ended by a signal".to_owned());
    } else if broken {
        cell.reason = Some("a sample was above the break value".to_owned());
    }
    if let Some(reason) = ended.failed {
        failed(cell, reason);
    }
    environment.stuck = !body.ended();
    witness.look(environment.signals);
    let left = body.finish(&mut files, cell, environment.journal, &mut witness);
    if let Measures::Cost(_) = prepared.measures {
        lock_again(environment, cell);
    }
    for left in environment.journal.undo() {
        note(cell, "not-undone", left);
    }
    note_load(cell);
    if rests {
        note(cell, "load-rested", RESTED.to_owned());
    }
    if !cell.is_simulated() {
        note_others(cell);
        if let Some(foreign) = &mut environment.foreign {
            foreign.note(cell, stolen);
        }
        // One that started meanwhile; the run's conditions name one that was there before.
        let beside = beside::condition(&FactsRoot::live().path("proc"));
        cell.conditions.extend(beside.filter(|_| !beside_before));
    }
    write(cell, files, &left.records, environment.store);
    Ok(Ok(left.course))
}

/// Locks the memory for the cells that follow a cost, if it was locked.
fn lock_again(environment: &Environment<'_>, cell: &mut Cell) {
    if environment.privileges.memory.is_none()
        && let Err(error) = memory::lock_all(STACK_BYTES)
    {
        note(cell, "not-undone", format!("memory could not be locked again: {error}"));
    }
}

/// Starts what measures; `signal` is set if one comes that ends the run before that.
fn body<'a>(
    environment: &mut Environment<'_>,
    plan: &Plan,
    prepared: &'a Prepared,
    aim: Aim,
    signal: &mut Option<Signal>,
) -> Result<Box<dyn Body + 'a>, NotStarted> {
    let nudge = environment.signals.nudge();
    let duration_ns = prepared.plan.duration_ns;
    match &prepared.measures {
        Measures::Probe(probe) => {
            let start = Start {
                plan,
                duration_ns,
                samples: prepared.plan.samples,
                phase_ns: environment.phase_ns,
                dither: environment.dither,
                aim,
                limits: Limits {
                    threshold: environment.threshold_ns,
                    interval: probe.threads.interval_ns,
                    ..Limits::of_deadline(plan.deadline_ns)
                },
                refused: environment.privileges.real_time.as_ref(),
                nudge,
                load: &prepared.load,
            };
            let mut interrupted = || {
                match environment.signals.wait(0) {
                    Some(Signal::User1) => environment.observer.snapshot(),
                    // Nothing is measured yet.
                    Some(Signal::Continued) => {}
                    Some(ends) => *signal = Some(ends),
                    None => {}
                }
                signal.is_some()
            };
            let journal = &mut *environment.journal;
            Ok(Box::new(LatencyBody::start(probe, &start, journal, &mut interrupted)?))
        }
        Measures::Cost(cost) => {
            // What is locked is mapped with all its pages, and a fork copies them: neither is what
            // it costs others.
            memory::unlock_all();
            Ok(Box::new(CostBody::start(cost, duration_ns, environment.mips, nudge)?))
        }
        Measures::Later(entry) => {
            Err(format!("the probe {} is not in this version", entry.name).into())
        }
    }
}
