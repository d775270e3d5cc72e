//! The cells of a plan, checked against the registries before anything starts.

use punctual_core::block::Outlier;
use punctual_core::histogram::BINS;
use punctual_core::params::Named;
use punctual_core::plan::{CellPlan, Plan, Subject};
use punctual_core::schema::{
    Cell, Cost, Counter, Latency, LoadPhase, Quantity, Series, Stats, What,
};
use punctual_sys::affinity::CpuSet;

use super::thread::STACK_BYTES;
use super::threads::{Reach, ThreadsPlan};
use crate::harness::phased::{PhaseSpec, PhasedSpec};
use crate::recorder::{ABOVE_CAP, ring_blocks, state_bytes_with};
use crate::registry::cost::{CostEntry, PEER, settle_peer};
use crate::registry::probe::{Pace, ProbeEntry};
use crate::registry::{Need, Value, Values};
use crate::{costs, metrics, probes};

/// What the main thread keeps for a series of a thread, at most: distributions.
const COLLECTOR_BYTES: usize = 128 << 10;

/// A cell whose names and parameters have been checked.
pub(super) struct Prepared {
    /// The planned cell in its canonical form.
    pub(super) plan: CellPlan,
    pub(super) load: PhasedSpec,
    pub(super) measures: Measures,
}

/// What a cell measures.
pub(super) enum Measures {
    Probe(ProbeCell),
    Cost(CostCell),
    /// The probe is planned for a later version: the cell can only be skipped.
    Later(&'static ProbeEntry),
}

/// A probe with its parameters.
pub(super) struct ProbeCell {
    pub(super) entry: &'static ProbeEntry,
    pub(super) values: Values,
    pub(super) threads: ThreadsPlan,
    pub(super) break_ns: i64,
}

/// A metric with its parameters.
pub(super) struct CostCell {
    pub(super) entry: &'static CostEntry,
    pub(super) values: Values,
    /// The same with CPUs in the place of words.
    pub(super) settled: Values,
}

/// Checks every name in the plan and writes every parameter in its canonical form, so that
/// equal measurements have equal keys whoever planned them. Parameters of planned probes are
/// not known yet and are kept as they are.
///
/// # Errors
/// A message that says what is wrong and lists the alternatives.
pub fn canonical(plan: &Plan) -> Result<Plan, String> {
    let cells = plan.cells.iter().map(canonical_cell).collect::<Result<_, _>>()?;
    Ok(Plan { cells, ..plan.clone() })
}

fn canonical_cell(cell: &CellPlan) -> Result<CellPlan, String> {
    let load = PhasedSpec::parse(&cell.load).map_err(|error| error.to_string())?;
    let cell = &by_key(cell);
    let params = match &cell.subject {
        Subject::Cost(name) => costs::find(name)?.read(&cell.params)?.canonical(),
        Subject::Probe(name) => match probes::find(name)? {
            entry if entry.is_planned() => cell.params.clone(),
            entry => {
                let values = entry.read(&cell.params)?;
                let mut params = values.canonical();
                // Asking for a policy differs from getting it by default: if it was asked for
                // and is refused, the cell is skipped.
                let asked = |name: &str| ["policy", "priority"].contains(&name);
                let all = values.effective().into_iter();
                params.extend(all.filter(|(name, _)| asked(name) && values.is_given(name)));
                params
            }
        },
    };
    Ok(CellPlan { params, load: load.canonical().to_owned(), ..cell.clone() })
}

/// The cell of a metric by its key, if it was named by its column in the table of costs.
fn by_key(cell: &CellPlan) -> CellPlan {
    let Subject::Cost(name) = &cell.subject else { return cell.clone() };
    let Ok(Some(mut found)) = metrics::named(name) else { return cell.clone() };
    found.params.extend(cell.params.clone());
    CellPlan { subject: Subject::Cost(found.name), params: found.params, ..cell.clone() }
}

/// How long a cell must be to yield this many samples per thread, ns: twice the time of its
/// releases, in whole seconds. `None` if the probe has no period to tell.
#[must_use]
pub fn long_enough_ns(probe: &Named, samples: u64) -> Option<u64> {
    let entry = probes::find(&probe.name).ok()?;
    let interval = entry.pace.interval_ns(&entry.read(&probe.params).ok()?);
    if interval == 0 {
        return None;
    }
    let needed = samples.saturating_mul(interval).saturating_mul(2);
    const SECOND_NS: u64 = punctual_core::units::SECOND_NS;
    Some(needed.div_ceil(SECOND_NS).saturating_mul(SECOND_NS))
}

impl Prepared {
    /// Checks a cell of a canonical plan.
    ///
    /// # Errors
    /// A message that says what is wrong and lists the alternatives.
    pub(super) fn new(plan: &CellPlan, reach: &Reach, break_ns: i64) -> Result<Self, String> {
        let load = PhasedSpec::parse(&plan.load).map_err(|error| error.to_string())?;
        let measures = match &plan.subject {
            Subject::Cost(name) => Measures::Cost(CostCell::new(costs::find(name)?, plan, reach)?),
            Subject::Probe(name) => match probes::find(name)? {
                entry if entry.is_planned() => Measures::Later(entry),
                entry => Measures::Probe(ProbeCell::new(entry, plan, reach, break_ns)?),
            },
        };
        Ok(Self { plan: plan.clone(), load, measures })
    }

    /// Whether it measures nothing of this machine.
    pub(super) fn is_simulated(&self) -> bool {
        matches!(&self.measures, Measures::Probe(probe) if probe.is_simulated())
    }

    /// Whether threads are to measure with a real-time priority.
    pub(super) fn is_real_time(&self) -> bool {
        matches!(&self.measures, Measures::Probe(probe) if probe.threads.policy.is_real_time())
    }

    /// Every CPU that a measuring thread is bound to.
    pub(super) fn bound_cpus(&self) -> CpuSet {
        match &self.measures {
            Measures::Probe(probe) => probe.threads.bound_cpus(),
            Measures::Cost(cost) => cost.bound_cpus(),
            Measures::Later(_) => CpuSet::default(),
        }
    }

    /// Whether its threads are on each CPU that is free for them.
    pub(super) fn is_on_each_cpu(&self) -> bool {
        matches!(&self.measures, Measures::Probe(probe) if probe.threads.on_each_cpu)
    }

    /// Bounds on the memory of its threads, lower and upper, bytes.
    pub(super) fn memory_bytes(&self) -> [usize; 2] {
        match &self.measures {
            Measures::Probe(cell) => {
                let threads = cell.threads.threads.len();
                let aside = state_bytes_with(ring_blocks(1, threads));
                let all = cell.entry.series.len();
                let least = self.state_bytes() + all * aside;
                let kept = ABOVE_CAP * size_of::<Outlier>() + by_phase_bytes(&self.load);
                let most = least + (1 + all) * COLLECTOR_BYTES + kept + 2 * STACK_BYTES;
                [least, most].map(|of_thread| threads.saturating_mul(of_thread))
            }
            Measures::Cost(_) | Measures::Later(_) => [0, 4 * STACK_BYTES],
        }
    }

    /// Bytes that recording the primary series of a thread takes, without its stack.
    pub(super) fn state_bytes(&self) -> usize {
        match &self.measures {
            Measures::Probe(cell) => state_bytes_with(ring_blocks(0, cell.threads.threads.len())),
            Measures::Cost(_) | Measures::Later(_) => 0,
        }
    }

    /// What the board must have for it.
    pub(super) fn needs(&self) -> Vec<Need> {
        let (always, values) = match &self.measures {
            Measures::Probe(cell) => (cell.entry.needs, &cell.values),
            Measures::Cost(cell) => (cell.entry.needs, &cell.values),
            Measures::Later(_) => return Vec::new(),
        };
        always.iter().copied().chain(values.needs()).collect()
    }

    /// Whether a thread that measures keeps its CPU busy all the time.
    pub(super) fn spins(&self) -> bool {
        match &self.measures {
            Measures::Probe(cell) => cell.entry.pace == Pace::BackToBack,
            Measures::Cost(_) => true,
            Measures::Later(_) => false,
        }
    }

    /// The record of the cell before it runs, in a run with dithered releases or without.
    pub(super) fn pending(&self, number: usize, dithered: bool) -> Cell {
        let what = match &self.measures {
            Measures::Probe(cell) => What::Latency(Latency {
                params: cell.values.effective(),
                interval_ns: Some(cell.threads.interval_ns).filter(|interval| *interval > 0),
                dithered: dithered && cell.is_dithered(),
                ..latency(cell.entry)
            }),
            Measures::Later(entry) => {
                What::Latency(Latency { params: self.plan.params.clone(), ..latency(entry) })
            }
            Measures::Cost(cell) => What::Cost(Cost {
                metric: cell.entry.name.to_owned(),
                meaning: cell.entry.meaning.to_owned(),
                section: cell.entry.section,
                column: cell.entry.column(&cell.values).map(|column| column.name.to_owned()),
                params: cell.values.effective(),
                unit: cell.entry.unit,
                better: cell.entry.better,
                ..Cost::default()
            }),
        };
        let plan = &self.plan;
        Cell {
            phases: phases(&self.load),
            ..Cell::new(plan.key(), plan.dir(number), plan.load.clone(), plan.duration_ns, what)
        }
    }
}

impl ProbeCell {
    /// Whether its releases are moved if the run asks for that.
    pub(super) fn is_dithered(&self) -> bool {
        (self.entry.dithers)(&self.values)
    }

    fn new(
        entry: &'static ProbeEntry,
        plan: &CellPlan,
        reach: &Reach,
        break_ns: i64,
    ) -> Result<Self, String> {
        let mut values = entry.read(&plan.params)?;
        let threads = ThreadsPlan::read(&mut values, entry.pace, reach)?;
        Ok(Self { entry, values, threads, break_ns })
    }

    /// Whether it runs in simulated time.
    pub(super) fn is_simulated(&self) -> bool {
        self.entry.pace == Pace::Simulated
    }

    /// The entry's counters with their totals.
    pub(super) fn counters(&self, totals: &[u64]) -> Vec<Counter> {
        let counters = self.entry.counters.iter().zip(totals);
        counters
            .map(|(entry, total)| Counter {
                name: entry.name.to_owned(),
                meaning: entry.meaning.to_owned(),
                total: *total,
                tells: entry.tells,
            })
            .collect()
    }
}

impl CostCell {
    /// The CPU of the timed thread, and that of the other side if it has one of its own.
    fn bound_cpus(&self) -> CpuSet {
        let cpu: u32 = self.values.small("cpu");
        let peers =
            self.settled.cpus(PEER.name).filter(|_| self.values.word(PEER.name) != Some("any"));
        peers.into_iter().flat_map(CpuSet::iter).chain([cpu]).collect()
    }

    fn new(entry: &'static CostEntry, plan: &CellPlan, reach: &Reach) -> Result<Self, String> {
        let mut values = entry.read(&plan.params)?;
        let first = reach.inherited.iter().next().unwrap_or(0);
        let cpu = values.known_number("cpu").unwrap_or(u64::from(first));
        if reach.cpus.iter().all(|known| u64::from(known) != cpu) {
            let why = format!("there is no such CPU (CPUs that can be used: {})", reach.cpus);
            return Err(values.wrong("cpu", &why));
        }
        values.set("cpu", Value::Number(cpu));
        if let Some(peers) = values.cpus(PEER.name)
            && !peers.without(&reach.cpus).is_empty()
        {
            let why = format!("CPUs that can be used: {}", reach.cpus);
            return Err(values.wrong(PEER.name, &why));
        }
        let mut settled = values.clone();
        settle_peer(&mut settled, values.small("cpu"), &reach.inherited);
        Ok(Self { entry, values, settled })
    }
}

/// The phases of a load that changes, before it runs.
fn phases(load: &PhasedSpec) -> Vec<LoadPhase> {
    let phase = |phase: &PhaseSpec| LoadPhase {
        load: phase.load.canonical().to_owned(),
        for_ns: phase.for_ns,
        ..LoadPhase::default()
    };
    if load.changes() { load.phases().iter().map(phase).collect() } else { Vec::new() }
}

/// What a thread takes to tell the phases apart, bytes: two histograms each and what missed
/// releases would have seen.
fn by_phase_bytes(load: &PhasedSpec) -> usize {
    let places = if load.changes() { load.phases().len() + 1 } else { 0 };
    places * 3 * size_of::<u64>() * BINS
}

fn latency(entry: &ProbeEntry) -> Latency {
    let series = entry.series.iter().map(|series| Series {
        name: series.name.to_owned(),
        meaning: series.meaning.to_owned(),
        role: series.role,
        unit: series.unit,
        stats: Stats::default(),
    });
    Latency {
        probe: entry.name.to_owned(),
        simulated: entry.pace == Pace::Simulated,
        primary: Quantity {
            name: entry.primary.name.to_owned(),
            meaning: entry.primary.meaning.to_owned(),
            noun: entry.primary.nouns.0.to_owned(),
            nouns: entry.primary.nouns.1.to_owned(),
        },
        series: series.collect(),
        ..Latency::default()
    }
}
