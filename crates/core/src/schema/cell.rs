//! One cell of a run: a frame that all kinds share, and what was measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cost::Cost;
use super::latency::{Ideal, Latency, Response};
use super::phase::{LoadPhase, PhaseFound};
use super::stop::Stop;
use super::strain::CellStrain;
use super::thread::Thread;
use super::time::TimeBase;
use super::verdict::{Condition, Verdict};
use super::work::LoadWork;

/// ID of the condition that something ran under the load `none`.
pub const NOT_IDLE: &str = "not-idle";

/// ID of the condition of a run that part of /proc or /sys could not be read.
pub const UNREAD: &str = "unread";

/// ID of the condition that threads of the kernel measured, whose CPU time counts as that of others.
pub const TRACER: &str = "tracer";

/// ID of the condition that the legs of a thread's samples are not known: the cell is INCONCLUSIVE.
pub const NO_LEGS: &str = "no-legs";

/// ID of the condition that a cell was not the same from its start to its end.
pub const DRIFT: &str = "drift";

/// ID of the condition that spells of lateness were merged, since nobody took them.
pub const EPISODES_JOINED: &str = "episodes-joined";

/// ID of the condition that the process was stopped from outside in a cell.
pub const STOPPED: &str = "stopped";

/// ID of the condition that a kernel still worked on its own when the run began.
pub const NOT_AT_REST: &str = "not-at-rest";

/// One probe or metric under one load for one duration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Probe or metric with its non-default parameters, load and duration. `compare` matches
    /// cells by this.
    pub key: String,
    /// Folder of the cell below `cells/`.
    pub dir: String,
    /// State of the cell.
    pub state: CellState,
    /// Why the cell was skipped or failed.
    #[serde(default)]
    pub reason: Option<String>,
    /// The load in canonical form, `a+b` if several run together.
    pub load: String,
    /// Planned duration of the measurement without warm-up, ns.
    pub duration_ns: u64,
    /// What it measured, tagged by `kind`.
    #[serde(flatten)]
    pub what: What,
    /// Events counted besides the samples: dropouts, overruns, lost events.
    #[serde(default)]
    pub counters: Vec<Counter>,
    /// The work of each part of the load. Names of counters are written when the cell starts.
    pub load_work: Vec<LoadWork>,
    /// The phases of a load that changes on a schedule; none of any other load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<LoadPhase>,
    /// What was found in the seconds in which the load changed from one phase to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<PhaseFound>,
    /// When the process was stopped from outside, as witnesses say; what was late by that is left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<Stop>,
    /// Share of all CPUs' time that was not idle over the cell, 0 to 1.
    #[serde(default)]
    pub cpu_utilisation: Option<f64>,
    /// Share of all CPUs' time that punctual itself used, without its load, 0 to 1.
    #[serde(default)]
    pub cpu_own: Option<f64>,
    /// Share of all CPUs' time that the hypervisor gave to others, 0 to 1.
    #[serde(default)]
    pub steal: Option<f64>,
    /// What strained the machine meanwhile.
    #[serde(default)]
    pub strain: Option<CellStrain>,
    /// The instant that every time of the cell's record counts from, `CLOCK_MONOTONIC`, ns;
    /// recorded as a string. `None` before the measurement, and in simulated time.
    #[serde(default, with = "super::time::instant")]
    pub epoch_ns: Option<u64>,
    /// Clocks at the start of the measurement, read as soon as something came to it.
    #[serde(default)]
    pub started: Option<TimeBase>,
    /// Clocks at its end.
    #[serde(default)]
    pub ended: Option<TimeBase>,
    /// Notes on this cell only: a load that died, a late ring that filled up.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The worst verdict of its threads.
    pub verdict: Verdict,
}

impl What {
    /// The name of the kind as recorded.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Latency(_) => "latency",
            Self::Cost(_) => "cost",
            Self::Response(_) => "response",
        }
    }
}

impl Cell {
    /// A cell that is yet to be measured, in the folder `dir`.
    #[must_use]
    pub fn new(key: String, dir: String, load: String, duration_ns: u64, what: What) -> Self {
        Self {
            key,
            dir,
            state: CellState::Pending,
            reason: None,
            load,
            duration_ns,
            what,
            counters: Vec::new(),
            load_work: Vec::new(),
            phases: Vec::new(),
            changes: None,
            stops: Vec::new(),
            cpu_utilisation: None,
            cpu_own: None,
            steal: None,
            strain: None,
            epoch_ns: None,
            started: None,
            ended: None,
            conditions: Vec::new(),
            verdict: Verdict::default(),
        }
    }

    /// How long the cell measured, ns, by its clocks; its planned duration if they were not
    /// recorded.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        let clocks = self.started.as_ref().zip(self.ended.as_ref());
        let measured = clocks.and_then(|(started, ended)| {
            ended.monotonic_ns.checked_sub(started.monotonic_ns).filter(|ns| *ns > 0)
        });
        measured.unwrap_or(self.duration_ns)
    }

    /// Number of latencies measured in the primary series; 0 for a cost.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.latency().map_or(0, |latency| latency.stats.samples)
    }

    /// The period between releases, ns; `None` if there is none.
    #[must_use]
    pub fn interval_ns(&self) -> Option<u64> {
        self.latency()?.interval_ns
    }

    /// Whether each release was moved within its interval.
    #[must_use]
    pub fn is_dithered(&self) -> bool {
        self.latency().is_some_and(|latency| latency.dithered)
    }

    /// The threads that measured latencies; empty for a cost.
    #[must_use]
    pub fn threads(&self) -> &[Thread] {
        self.latency().map_or(&[], |latency| &latency.threads)
    }

    /// Every parameter of the probe or metric as it took effect.
    #[must_use]
    pub fn params(&self) -> &BTreeMap<String, String> {
        match &self.what {
            What::Latency(latency) | What::Response(Response { latency, .. }) => &latency.params,
            What::Cost(cost) => &cost.params,
        }
    }

    /// Whether there is a result: samples, or the value of a cost.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.samples() > 0 || self.cost().is_some_and(|cost| cost.value.is_some())
    }

    /// Whether its samples are made up rather than measured.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.latency().is_some_and(|latency| latency.simulated)
    }

    /// What says that something ran under the load `none`: its numbers are not those of an
    /// idle machine.
    #[must_use]
    pub fn unrest(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.id == NOT_IDLE)
    }

    /// Whether it is known that it was not the same from its start to its end.
    #[must_use]
    pub fn drifted(&self) -> bool {
        self.conditions.iter().any(|condition| condition.id == DRIFT)
    }

    /// Counters that show that something went wrong.
    pub fn bad_counters(&self) -> impl Iterator<Item = &Counter> {
        self.counters.iter().filter(|counter| counter.is_bad())
    }

    /// The latencies, if the cell measures any.
    #[must_use]
    pub fn latency(&self) -> Option<&Latency> {
        match &self.what {
            What::Latency(latency) | What::Response(Response { latency, .. }) => Some(latency),
            What::Cost(_) => None,
        }
    }

    /// The latencies, if the cell measures any.
    pub fn latency_mut(&mut self) -> Option<&mut Latency> {
        match &mut self.what {
            What::Latency(latency) | What::Response(Response { latency, .. }) => Some(latency),
            What::Cost(_) => None,
        }
    }

    /// The cost, if the cell measures one.
    #[must_use]
    pub fn cost(&self) -> Option<&Cost> {
        match &self.what {
            What::Cost(cost) => Some(cost),
            What::Latency(_) | What::Response(_) => None,
        }
    }

    /// Name of the probe or of the metric.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.what {
            What::Latency(latency) | What::Response(Response { latency, .. }) => &latency.probe,
            What::Cost(cost) => &cost.metric,
        }
    }

    /// The largest sample of the primary series, ns; `None` for a cost.
    #[must_use]
    pub fn max_ns(&self) -> Option<i64> {
        self.latency()?.stats.max
    }

    /// By how much the largest sample of the primary series is later than it should be, ns: samples that
    /// are times from one event to the next have one even if nothing is late.
    #[must_use]
    pub fn latest_ns(&self) -> Option<i64> {
        let latency = self.latency()?;
        let ideal_ns = match latency.ideal {
            Some(Ideal::Interval { ns, .. }) => i64::try_from(ns).unwrap_or(i64::MAX),
            _ => 0,
        };
        Some(latency.stats.max?.saturating_sub(ideal_ns))
    }
}

/// What a cell measures, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum What {
    /// A probe's latencies.
    Latency(Latency),
    /// What an operation costs.
    Cost(Cost),
    /// Latencies of one machine, measured by another.
    Response(Response),
}

/// State of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CellState {
    /// Not yet started.
    Pending,
    /// Under way; in the directory of a finished run, cut short.
    Running,
    /// Measured for its whole duration.
    Complete,
    /// Ended early by a signal or a break value; its samples count.
    Interrupted,
    /// Not measured, for the given reason.
    Skipped,
    /// Ended early by an error; its samples count.
    Failed,
    /// Rebuilt from its blocks after punctual was killed: quantiles are within 25 % (32 ns
    /// below 256 ns), everything else is exact.
    Recovered,
}

/// A count of events that are not samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Name, such as `dropouts`.
    pub name: String,
    /// What is counted, in words.
    pub meaning: String,
    /// Total over the cell.
    pub total: u64,
    /// What a total above zero means.
    pub tells: Tells,
}

impl Counter {
    /// Whether it shows that something went wrong.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.tells != Tells::Nothing && self.total > 0
    }
}

/// What it means that a counter has counted something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tells {
    /// Nothing for or against the cell.
    Nothing,
    /// What was measured is not complete: the cell does not PASS.
    Loss,
    /// What is never to happen has happened: the cell is a FAIL, with a deadline or without.
    Fault,
}
