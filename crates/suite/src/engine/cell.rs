//! One cell: load, threads, collector, and what they leave.

use std::collections::BTreeMap;

use punctual_core::plan::{CellPlan, Plan};
use punctual_core::schema::{Cell, CellState, Series, Stats, Verdict};
use punctual_core::verdict::judge_cell;
use punctual_sys::affinity;
use punctual_sys::clock::{monotonic_ns, tsc};

use super::Environment;
use super::collector::Collector;
use super::outcome::{assemble, write};
use super::store::Sync;
use super::team::Team;
use super::thread::{Go, ThreadEnd};
use super::threads::{Reach, ThreadsPlan};
use super::watch::{Watch, keep_clear_of};
use crate::loads::{LoadContext, LoadSet, LoadSpec};
use crate::probes::{Common, Factory, Kind, ProbeEntry, planned};
use crate::recorder::Limits;
use crate::registry::{Need, Planned};

/// A cell whose names and parameters have been checked.
pub enum Checked {
    /// It can be measured, as far as that shows before the start.
    Ready(Box<Prepared>),
    /// Its probe is not in this version: it can only be skipped.
    Later(CellPlan, &'static Planned),
}

impl Checked {
    /// Checks the names and parameters of a cell. Those of a planned probe are not known
    /// yet and taken as they are written.
    ///
    /// # Errors
    /// A message that says what is wrong and what there is instead.
    pub fn new(plan: &CellPlan, reach: &Reach, break_ns: i64) -> Result<Self, String> {
        if let Some(probe) = planned::find(&plan.probe) {
            LoadSpec::parse(&plan.load).map_err(|error| error.to_string())?;
            return Ok(Self::Later(plan.clone(), probe));
        }
        Prepared::new(plan, reach, break_ns).map(|prepared| Self::Ready(Box::new(prepared)))
    }

    /// The cell as it stands before it is run.
    #[must_use]
    pub fn pending(&self, number: usize) -> Cell {
        match self {
            Self::Later(plan, probe) => pending(plan, number, ("latency", probe.summary)),
            Self::Ready(prepared) => {
                let interval_ns = prepared.threads.interval_ns;
                Cell {
                    params: prepared.params.clone(),
                    interval_ns: (interval_ns > 0).then_some(interval_ns),
                    ..pending(&prepared.plan, number, prepared.entry.series)
                }
            }
        }
    }
}

fn pending(plan: &CellPlan, number: usize, (name, meaning): (&str, &str)) -> Cell {
    Cell {
        key: plan.key(),
        dir: plan.dir(number),
        kind: "latency".to_owned(),
        state: CellState::Pending,
        reason: None,
        probe: plan.probe.clone(),
        params: plan.params.clone(),
        load: plan.load.clone(),
        duration_ns: plan.duration_ns,
        interval_ns: None,
        stats: Stats::default(),
        series: vec![Series {
            name: name.to_owned(),
            meaning: meaning.to_owned(),
            unit: "ns".to_owned(),
            stats: Stats::default(),
        }],
        parts: Vec::new(),
        threads: Vec::new(),
        load_work: Vec::new(),
        cpu_utilisation: None,
        steal: None,
        warmup_max_ns: None,
        started: None,
        ended: None,
        conditions: Vec::new(),
        verdict: Verdict::default(),
    }
}

/// A cell that can be measured.
pub struct Prepared {
    /// As planned.
    pub plan: CellPlan,
    pub(super) entry: &'static ProbeEntry,
    needs: &'static [Need],
    pub(super) threads: ThreadsPlan,
    pub(super) factory: Factory,
    load: LoadSpec,
    params: BTreeMap<String, String>,
    break_ns: i64,
}

impl Prepared {
    fn new(plan: &CellPlan, reach: &Reach, break_ns: i64) -> Result<Self, String> {
        let (entry, values) = crate::probes::read(&plan.probe, &plan.params)?;
        let threads = ThreadsPlan::read(&values, entry.kind, reach)
            .map_err(|error| of_probe(entry.name, error))?;
        let common = Common { interval_ns: threads.interval_ns, break_ns };
        let factory = (entry.build)(&values, &common)?;
        let load = LoadSpec::parse(&plan.load).map_err(|error| error.to_string())?;
        let params = crate::probes::effective(entry, &values);
        Ok(Self {
            plan: plan.clone(),
            entry,
            needs: (entry.needs)(&values),
            threads,
            factory,
            load,
            params,
            break_ns,
        })
    }

    /// Whether it runs in simulated time.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.entry.kind == Kind::Simulated
    }
}

/// Measures one cell; what it found is in `cell`. An error is one of the run directory.
///
/// # Errors
/// Where the cell's files cannot be made.
pub fn run(
    environment: &mut Environment<'_>,
    plan: &Plan,
    checked: &Checked,
    cell: &mut Cell,
) -> std::io::Result<()> {
    let outcome = match checked {
        Checked::Later(_, probe) => Err(format!("the probe {} is not in this version", probe.name)),
        Checked::Ready(prepared) => match prepared.needs.iter().find(|need| !has(**need)) {
            Some(need) => Err(format!("needs {}", need.text())),
            None => measure(environment, plan, prepared, cell)?,
        },
    };
    if let Err(reason) = outcome {
        cell.state = CellState::Skipped;
        cell.reason = Some(reason);
    }
    cell.verdict = judge_cell(cell, &environment.rule);
    Ok(())
}

/// Names the probe where the error does not: those of single values do.
fn of_probe(name: &str, error: String) -> String {
    if error.starts_with(&format!("{name}: ")) { error } else { format!("{name}: {error}") }
}

fn has(need: Need) -> bool {
    match need {
        Need::Tsc => tsc::is_invariant(),
        // Needs of loads: a load says itself what it cannot have.
        Need::IcmpSocket => true,
    }
}

/// The outer result is one of the run directory, the inner one a reason to skip the cell.
fn measure(
    environment: &mut Environment<'_>,
    plan: &Plan,
    prepared: &Prepared,
    cell: &mut Cell,
) -> std::io::Result<Result<(), String>> {
    let mut files = environment.store.cell(&cell.dir)?;
    let mut context = LoadContext::new(environment.journal);
    let mut load = match LoadSet::start(&prepared.load, &mut context) {
        Ok(load) => load,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let limits = Limits {
        deadline: plan.deadline_ns.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(i64::MAX),
        threshold: environment.threshold_ns,
    };
    let team = match Team::start(environment, prepared, limits) {
        Ok(team) => team,
        Err(reason) => return Ok(Err(reason)),
    };
    let inherited = keep_clear_of(&prepared.threads.bound_cpus());

    let go = go(plan, prepared, environment.phase_ns);
    let mut collector = Collector::new(team.shared.clone(), prepared.threads.interval_ns, limits);
    team.gate.open(Some(go));
    let mut watch = Watch::new(environment, prepared, go, cell);
    let ended = watch.until_the_end(&team, &mut collector, &mut load, &mut files);
    let shares = watch.whole();
    if let Some(mask) = inherited {
        let _ = affinity::set(&mask);
    }
    cell.ended = Some(super::time_base());
    cell.load_work = load.stop();
    cell.cpu_utilisation = shares.map(|share| f64::from(share.busy) / 1e3);
    cell.steal = shares.map(|share| f64::from(share.steal) / 1e3);
    cell.state = if ended.interrupted || team.stop.is_broken() {
        CellState::Interrupted
    } else {
        CellState::Complete
    };

    let ends = team.join();
    collector.drain(&mut files, Sync::Cell);
    if ended.no_progress {
        cell.state = CellState::Failed;
        cell.reason = Some(NO_PROGRESS.to_owned());
    }
    if ended.interrupted {
        cell.reason = Some("ended by a signal".to_owned());
    } else if team_broken(&ends, prepared) {
        cell.reason = Some("a sample was above the break value".to_owned());
    }
    let records = assemble(&environment.rule, prepared, cell, &ends, collector, limits);
    write(cell, files, &records, environment.store);
    Ok(Ok(()))
}

const NO_PROGRESS: &str = "no thread recorded anything for half a minute: something keeps the probe's \
threads from running (real-time throttling, a higher priority, a stopped process)";

fn team_broken(ends: &[Option<ThreadEnd>], prepared: &Prepared) -> bool {
    ends.iter()
        .flatten()
        .any(|end| end.recording.moments.count > 0 && end.recording.moments.max > prepared.break_ns)
}

/// Start, warm-up and end: threads get 20 ms to arrive, and 10 ms between
/// warm-up and measurement to clear their recorders.
fn go(plan: &Plan, prepared: &Prepared, phase_ns: u64) -> Go {
    let warmup = monotonic_ns() + 20_000_000;
    let warmup_ns = if prepared.is_simulated() { 0 } else { plan.warmup_ns };
    let warmup_end = warmup + warmup_ns;
    let epoch = warmup_end + if warmup_ns > 0 { 10_000_000 } else { 0 } + phase_ns;
    Go {
        warmup,
        warmup_end,
        epoch,
        end: epoch.saturating_add(prepared.plan.duration_ns),
        samples: prepared.plan.samples.unwrap_or(u64::MAX),
    }
}
