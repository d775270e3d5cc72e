//! The plan: which cells to run, from a TOML file or from the command line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use self::asked::{AskedError, Names};
use self::file::PlanFile;
use crate::allowance::AllowanceError;
use crate::hash::sha256;
use crate::key;
use crate::params::{Named, ParamError};
use crate::phases::PhaseError;
use crate::preemption::Model;
use crate::rate::{Rate, RateError};
use crate::units::{BareNumber, SECOND_NS, UnitError, exact_duration, parse_duration_ns};

/// Upper bound of the probability of an exceedance that a PASS needs, if activations are counted one by
/// one and nothing else is asked for.
pub const DEFAULT_PROBABILITY: f64 = 1e-4;

/// The most cells of a plan.
pub const MAX_CELLS: usize = 1_000;

/// The cells to run and how to judge them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the plan, such as `standard`; with a variant, `NAME, variant VARIANT`.
    pub name: String,
    /// The selected variant.
    #[serde(default)]
    pub variant: Option<String>,
    /// The publication that the plan follows, if any.
    #[serde(default)]
    pub citation: Option<String>,
    /// Preemption models to compare: advice for whoever boots kernels. A run measures the
    /// booted kernel and only records this.
    #[serde(default)]
    pub kernels: Vec<Model>,
    /// Deadline, ns. None: nothing is judged.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Hard deadline (`at_most`): PASS requires an upper bound on the rate of late episodes of at most
    /// this.
    #[serde(default = "default_episodes")]
    pub episodes: Rate,
    /// Soft deadline (`allow`): the rate of late episodes that is tolerated.
    #[serde(default)]
    pub tolerate_episodes: Option<Rate>,
    /// Soft deadline (`allow`): the probability of an exceedance that is tolerated.
    #[serde(default)]
    pub tolerate: Option<f64>,
    /// With `singly` (`at_most`): PASS requires an upper bound on P(exceed) of at most this. Without it,
    /// in plans and records of before, it is converted to a rate of episodes.
    #[serde(default)]
    pub probability: Option<f64>,
    /// Whether activations are taken to be late independently of each other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub singly: bool,
    /// Confidence of the bounds, one-sided.
    pub confidence: f64,
    /// Warm-up before each cell, ns, excluded from all results; 0 for none.
    pub warmup_ns: u64,
    /// The cells, in order.
    pub cells: Vec<CellPlan>,
}

/// One cell of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellPlan {
    /// What is measured.
    #[serde(flatten)]
    pub subject: Subject,
    /// Those of its parameters that do not have their default values.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// The load; `a+b` if loads run together.
    pub load: String,
    /// How long to measure, ns.
    pub duration_ns: u64,
    /// End after this many samples per thread, if that comes first.
    #[serde(default)]
    pub samples: Option<u64>,
    /// Whether it is to be measured only where the machine has what it needs: elsewhere it is
    /// SKIPPED, which does not count for the run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub available: bool,
}

fn default_episodes() -> Rate {
    Rate::SIX_A_MINUTE
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What a cell measures, by name; its key in a plan is `probe` or `cost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// A probe: latencies.
    Probe(String),
    /// A metric: what an operation costs.
    Cost(String),
}

impl Subject {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Probe(name) | Self::Cost(name) => name,
        }
    }
}

/// Why a plan could not be read.
#[derive(Debug, Error)]
pub enum PlanError {
    /// Not TOML, or keys that a plan does not have.
    #[error(transparent)]
    Toml(#[from] toml::de::Error),
    /// A duration is wrong.
    #[error("{key}: {reason}")]
    Unit {
        /// The key with the wrong value.
        key: &'static str,
        /// What is wrong.
        reason: UnitError,
    },
    /// A rate is wrong.
    #[error("{key}: {reason}")]
    Rate {
        /// The key with the wrong value.
        key: &'static str,
        /// What is wrong.
        reason: RateError,
    },
    /// A rate or a share is wrong.
    #[error("{key}: {reason}")]
    Allowance {
        /// The key with the wrong value.
        key: &'static str,
        /// What is wrong.
        reason: AllowanceError,
    },
    /// One thing is asked for by two names.
    #[error("{old} is an older name of {new}, and both are given: leave out {old}")]
    OldKey {
        /// The older name.
        old: &'static str,
        /// The name.
        new: &'static str,
    },
    /// What is asked of the evidence does not fit together.
    #[error(transparent)]
    Asked(#[from] AskedError),
    /// A probe's or load's text is wrong.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// The schedule of a load is wrong.
    #[error(transparent)]
    Phase(#[from] PhaseError),
    /// A value is out of its range.
    #[error("{key} = {value}: {range}")]
    Range {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        range: &'static str,
    },
    /// No cell at all.
    #[error("the plan has no [[cell]]")]
    Empty,
    /// A cell that measures nothing, or two things.
    #[error("a [[cell]] needs either a probe or a cost, and not both")]
    Subject,
    /// A variant that the plan does not have.
    #[error("the plan \"{plan}\" has no variant \"{variant}\"; it has: {known}")]
    Variant {
        /// Name of the plan.
        plan: String,
        /// What was asked for.
        variant: String,
        /// The variants there are, or `none`.
        known: String,
    },
}

impl Plan {
    /// A plan without cells and with the defaults: no deadline, 6 late episodes a minute, 95 %
    /// confidence, one second of warm-up.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            variant: None,
            citation: None,
            kernels: Vec::new(),
            deadline_ns: None,
            episodes: Rate::SIX_A_MINUTE,
            tolerate_episodes: None,
            tolerate: None,
            probability: None,
            singly: false,
            confidence: 0.95,
            warmup_ns: SECOND_NS,
            cells: Vec::new(),
        }
    }

    /// SHA-256 of the plan, hexadecimal, as records have it.
    #[must_use]
    pub fn hash(&self) -> String {
        sha256(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Whether the deadline, if there is one, may never be missed.
    #[must_use]
    pub fn is_hard(&self) -> bool {
        self.tolerate.is_none() && self.tolerate_episodes.is_none()
    }

    /// Reads a plan file, without any variant.
    ///
    /// # Errors
    /// [`PlanError`] names the key and what it must be.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        Self::from_toml_variant(text, None)
    }

    /// Reads a plan file and applies what `[variant.NAME]` replaces. Cells that become
    /// equal by a common duration are merged.
    ///
    /// # Errors
    /// [`PlanError`] names the key and what it must be, or the variants there are.
    pub fn from_toml_variant(text: &str, variant: Option<&str>) -> Result<Self, PlanError> {
        let file: PlanFile = toml::from_str(text)?;
        let mut plan = Self::new(&file.name);
        plan.citation.clone_from(&file.citation);
        plan.kernels = file.kernels.iter().map(|name| model(name)).collect::<Result<_, _>>()?;
        plan.deadline_ns = file
            .deadline
            .as_deref()
            .map(|t| duration_ns("deadline", t, BareNumber::Refused))
            .transpose()?;
        if let Some(rate) = rate("episodes", file.episodes.as_deref())? {
            plan.episodes = rate;
        }
        plan.tolerate_episodes = rate("tolerate_episodes", file.tolerate_episodes.as_deref())?;
        plan.tolerate = file.tolerate;
        plan.probability = file.probability;
        plan.confidence = file.confidence.unwrap_or(plan.confidence);
        if let Some(text) = &file.warmup {
            plan.warmup_ns = duration_ns("warmup", text, BareNumber::Seconds)?;
        }
        plan.cells = cells(&file)?;
        if let Some(name) = variant {
            plan.apply(name, &file)?;
        }
        plan.ask(&file.asked(variant)?, Names::KEYS)?;
        plan.check()?;
        Ok(plan)
    }

    /// The names of the variants of a plan file, in order of the alphabet.
    ///
    /// # Errors
    /// [`PlanError::Toml`] if it is not a plan file.
    pub fn variants(text: &str) -> Result<Vec<String>, PlanError> {
        let file: PlanFile = toml::from_str(text)?;
        Ok(file.variant.into_keys().collect())
    }

    /// Whether whoever runs a plan file may replace its durations and loads ([`Plan::adjust`]).
    ///
    /// # Errors
    /// [`PlanError::Toml`] if it is not a plan file.
    pub fn is_adjustable(text: &str) -> Result<bool, PlanError> {
        let file: PlanFile = toml::from_str(text)?;
        Ok(file.adjustable)
    }

    /// Gives all cells this duration, ns, and each measurement these loads. Cells that become equal
    /// are merged.
    pub fn adjust(&mut self, duration_ns: Option<u64>, loads: Option<&[String]>) {
        for cell in std::mem::take(&mut self.cells) {
            let own = [cell.load.clone()];
            for load in loads.unwrap_or(&own) {
                let duration_ns = duration_ns.unwrap_or(cell.duration_ns);
                let cell = CellPlan { duration_ns, load: load.clone(), ..cell.clone() };
                if !self.cells.contains(&cell) {
                    self.cells.push(cell);
                }
            }
        }
    }

    fn apply(&mut self, name: &str, file: &PlanFile) -> Result<(), PlanError> {
        let Some(variant) = file.variant.get(name) else {
            let known: Vec<_> = file.variant.keys().map(String::as_str).collect();
            return Err(PlanError::Variant {
                plan: file.name.clone(),
                variant: name.to_owned(),
                known: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            });
        };
        self.name = format!("{}, variant {name}", file.name);
        self.variant = Some(name.to_owned());
        if let Some(rate) = rate("episodes", variant.episodes.as_deref())? {
            self.episodes = rate;
        }
        self.probability = variant.probability.or(self.probability);
        if let Some(text) = &variant.warmup {
            self.warmup_ns = duration_ns("warmup", text, BareNumber::Seconds)?;
        }
        if let Some(text) = &variant.duration {
            self.adjust(Some(duration_ns("duration", text, BareNumber::Seconds)?), None);
        }
        Ok(())
    }

    /// Checks what does not depend on the board.
    ///
    /// # Errors
    /// [`PlanError::Range`] or [`PlanError::Empty`].
    pub fn check(&self) -> Result<(), PlanError> {
        let range = |key, value: String, range| Err(PlanError::Range { key, value, range });
        let inside = |p: f64| p > 0.0 && p < 1.0;
        if self.cells.is_empty() {
            return Err(PlanError::Empty);
        }
        if self.cells.len() > MAX_CELLS {
            return range("cells", self.cells.len().to_string(), "at most 1000");
        }
        if self.kernels.contains(&Model::Unknown) {
            return range("kernels", Model::Unknown.to_string(), MODELS);
        }
        if self.deadline_ns == Some(0) {
            return range("deadline", "0".to_owned(), "must be above zero");
        }
        if self.deadline_ns.is_some_and(|d| i64::try_from(d).is_err()) {
            return range(
                "deadline",
                exact_duration(self.deadline_ns.unwrap_or(0)),
                "at most 292 years",
            );
        }
        for (key, set) in [
            ("tolerate", self.tolerate.is_some()),
            ("tolerate_episodes", self.tolerate_episodes.is_some()),
        ] {
            if set && self.deadline_ns.is_none() {
                return range(key, "set".to_owned(), "needs a deadline");
            }
        }
        if self.tolerate.is_some() && self.tolerate_episodes.is_some() {
            return range("tolerate_episodes", "set".to_owned(), "cannot be with tolerate");
        }
        if self.singly && self.tolerate_episodes.is_some() {
            return range("tolerate_episodes", "set".to_owned(), "cannot be with singly");
        }
        for (key, value) in [
            ("tolerate", self.tolerate),
            ("probability", self.probability),
            ("confidence", Some(self.confidence)),
        ] {
            if let Some(p) = value.filter(|p| !inside(*p)) {
                return range(key, p.to_string(), "must lie between 0 and 1");
            }
        }
        for cell in &self.cells {
            if cell.duration_ns == 0 {
                return range("duration", "0".to_owned(), "must be above zero");
            }
            if cell.samples == Some(0) {
                return range("samples", "0".to_owned(), "must be above zero");
            }
            phased::check(cell)?;
        }
        Ok(())
    }
}

/// Value of `where` for a cell that is measured wherever it can be.
const AVAILABLE: &str = "available";

const MODELS: &str = "must be none, voluntary, full, lazy or rt";

fn rate(key: &'static str, text: Option<&str>) -> Result<Option<Rate>, PlanError> {
    text.map(|text| text.parse().map_err(|reason| PlanError::Rate { key, reason })).transpose()
}

fn model(name: &str) -> Result<Model, PlanError> {
    name.parse().map_err(|_| PlanError::Range {
        key: "kernels",
        value: name.to_owned(),
        range: MODELS,
    })
}

fn duration_ns(key: &'static str, text: &str, bare: BareNumber) -> Result<u64, PlanError> {
    parse_duration_ns(text, bare).map_err(|reason| PlanError::Unit { key, reason })
}

/// Every probe under each of its loads, in the order of the file.
fn cells(file: &PlanFile) -> Result<Vec<CellPlan>, PlanError> {
    let default_duration = file.duration.as_deref().unwrap_or("10s");
    let none = ["none".to_owned()];
    let mut cells = Vec::new();
    for cell in &file.cell {
        let given = cell.duration.as_deref();
        let duration_ns =
            duration_ns("duration", given.unwrap_or(default_duration), BareNumber::Seconds)?;
        let (text, subject): (_, fn(String) -> Subject) = match (&cell.probe, &cell.cost) {
            (Some(probe), None) => (probe, Subject::Probe),
            (None, Some(cost)) => (cost, Subject::Cost),
            _ => return Err(PlanError::Subject),
        };
        let named = Named::parse(text, "")?;
        if let Some(other) = cell.place.as_ref().filter(|place| *place != AVAILABLE) {
            let range = "must be available, or be left out";
            return Err(PlanError::Range { key: "where", value: other.clone(), range });
        }
        let loads = if cell.load.is_empty() { &none[..] } else { &cell.load };
        cells.extend(loads.iter().map(|load| CellPlan {
            subject: subject(named.name.clone()),
            params: named.params.clone(),
            load: load.clone(),
            duration_ns: phased::duration_ns(load, given.map(|_| duration_ns), duration_ns),
            samples: cell.samples,
            available: cell.place.is_some(),
        }));
    }
    Ok(cells)
}

impl CellPlan {
    /// What identifies the cell across runs: probe, parameters that were given,
    /// load, duration.
    #[must_use]
    pub fn key(&self) -> String {
        let subject = Named { name: self.subject.name().to_owned(), params: self.params.clone() };
        let mut key = format!("{subject} @ {} @ {}", self.load, exact_duration(self.duration_ns));
        if let Some(samples) = self.samples {
            key.push_str(&format!(" @ {samples} samples"));
        }
        key
    }

    /// A folder name for the cell: its key with everything except letters, digits
    /// and `.=-` replaced, at most 80 bytes, numbered to make it unique.
    #[must_use]
    pub fn dir(&self, number: usize) -> String {
        let mut name: String = self
            .key()
            .replace(key::BETWEEN, "_")
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._=-+".contains(c) { c } else { '-' })
            .collect();
        name.truncate(72);
        format!("{number:02}-{name}")
    }
}

pub mod asked;
mod file;
pub mod phased;

#[cfg(test)]
mod tests;
