//! The plan: which cells to run, from a TOML file or from the command line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::params::{Named, ParamError};
use crate::units::{BareNumber, SECOND_NS, UnitError, exact_duration, parse_duration_ns};

/// Upper bound of the probability of an exceedance that a PASS needs, unless the plan says otherwise.
pub const DEFAULT_PROBABILITY: f64 = 1e-4;

/// The cells to run and how to judge them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the plan, as `standard`.
    pub name: String,
    /// What the plan follows, where it follows a publication.
    #[serde(default)]
    pub citation: Option<String>,
    /// Deadline, ns; none: nothing is judged.
    #[serde(default)]
    pub deadline_ns: Option<u64>,
    /// Soft deadline: the probability of an exceedance that is tolerated.
    #[serde(default)]
    pub tolerate: Option<f64>,
    /// A PASS needs an upper bound of P(exceed) of at most this.
    pub probability: f64,
    /// Confidence of the bounds, one-sided.
    pub confidence: f64,
    /// Warm-up before each cell, ns, outside all numbers; 0 for none.
    pub warmup_ns: u64,
    /// The cells, in order.
    pub cells: Vec<CellPlan>,
}

/// One cell of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellPlan {
    /// Name of the probe.
    pub probe: String,
    /// Its parameters that are not left to their defaults.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// The load, `a+b` where loads run together.
    pub load: String,
    /// How long to measure, ns.
    pub duration_ns: u64,
    /// End after this many samples a thread, where that comes first.
    #[serde(default)]
    pub samples: Option<u64>,
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
    /// A probe's or load's text is wrong.
    #[error(transparent)]
    Param(#[from] ParamError),
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    name: String,
    citation: Option<String>,
    deadline: Option<String>,
    tolerate: Option<f64>,
    probability: Option<f64>,
    confidence: Option<f64>,
    warmup: Option<String>,
    duration: Option<String>,
    #[serde(default)]
    cell: Vec<CellFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CellFile {
    probe: String,
    #[serde(default)]
    load: Vec<String>,
    duration: Option<String>,
    samples: Option<u64>,
}

impl Plan {
    /// A plan without cells and with the defaults: no deadline, p = 1e-4, 95 %
    /// confidence, one second of warm-up.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            citation: None,
            deadline_ns: None,
            tolerate: None,
            probability: DEFAULT_PROBABILITY,
            confidence: 0.95,
            warmup_ns: SECOND_NS,
            cells: Vec::new(),
        }
    }

    /// Reads a plan file.
    ///
    /// # Errors
    /// [`PlanError`] names the key and what it must be.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let file: PlanFile = toml::from_str(text)?;
        let unit = |key: &'static str, text: &str, bare| {
            parse_duration_ns(text, bare).map_err(|reason| PlanError::Unit { key, reason })
        };
        let mut plan = Self::new(&file.name);
        plan.citation = file.citation;
        plan.deadline_ns = file
            .deadline
            .as_deref()
            .map(|t| unit("deadline", t, BareNumber::Refused))
            .transpose()?;
        plan.tolerate = file.tolerate;
        plan.probability = file.probability.unwrap_or(plan.probability);
        plan.confidence = file.confidence.unwrap_or(plan.confidence);
        if let Some(text) = &file.warmup {
            plan.warmup_ns = unit("warmup", text, BareNumber::Seconds)?;
        }
        let default_duration = file.duration.as_deref().unwrap_or("10s");
        for cell in &file.cell {
            let duration = cell.duration.as_deref().unwrap_or(default_duration);
            let duration_ns = unit("duration", duration, BareNumber::Seconds)?;
            let named = Named::parse(&cell.probe, "")?;
            let none = ["none".to_owned()];
            let loads = if cell.load.is_empty() { &none[..] } else { &cell.load };
            plan.cells.extend(loads.iter().map(|load| CellPlan {
                probe: named.name.clone(),
                params: named.params.clone(),
                load: load.clone(),
                duration_ns,
                samples: cell.samples,
            }));
        }
        plan.check()?;
        Ok(plan)
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
        if self.tolerate.is_some() && self.deadline_ns.is_none() {
            return range("tolerate", "set".to_owned(), "needs a deadline");
        }
        for (key, value) in [
            ("tolerate", self.tolerate),
            ("probability", Some(self.probability)),
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
        }
        Ok(())
    }
}

impl CellPlan {
    /// What identifies the cell across runs: probe, parameters that were given,
    /// load, duration.
    #[must_use]
    pub fn key(&self) -> String {
        let probe = Named { name: self.probe.clone(), params: self.params.clone() };
        let mut key = format!("{probe} @ {} @ {}", self.load, exact_duration(self.duration_ns));
        if let Some(samples) = self.samples {
            key.push_str(&format!(" @ {samples} samples"));
        }
        key
    }

    /// A folder name for the cell: its key with everything but letters, digits
    /// and `.=-` replaced, at most 80 bytes, numbered so that no two are alike.
    #[must_use]
    pub fn dir(&self, number: usize) -> String {
        let mut name: String = self
            .key()
            .replace(" @ ", "_")
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._=-+".contains(c) { c } else { '-' })
            .collect();
        name.truncate(72);
        format!("{number:02}-{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: &str = r#"
        name = "small"
        deadline = "1ms"
        duration = "30s"
        [[cell]]
        probe = "wakeup:threads=per-cpu"
        load = ["none", "paper"]
        [[cell]]
        probe = "clock"
        duration = "1s"
    "#;

    #[test]
    fn a_plan_file_becomes_cells() {
        let plan = Plan::from_toml(STANDARD).unwrap();
        assert_eq!(plan.deadline_ns, Some(1_000_000));
        let keys: Vec<_> = plan.cells.iter().map(CellPlan::key).collect();
        assert_eq!(
            keys,
            [
                "wakeup:threads=per-cpu @ none @ 30s",
                "wakeup:threads=per-cpu @ paper @ 30s",
                "clock @ none @ 1s"
            ]
        );
        assert_eq!(plan.cells[0].dir(0), "00-wakeup-threads=per-cpu_none_30s");
    }

    #[test]
    fn wrong_values_are_named() {
        for (from, to, error) in [
            ("\"1ms\"", "\"0ms\"", "deadline = 0: must be above zero"),
            ("\"1ms\"", "\"5\"", "deadline: \"5\" has no unit"),
            ("\"1ms\"", "\"1m\"", "m is a minute"),
            ("duration = \"30s\"", "duration = \"0s\"", "duration = 0"),
            ("name =", "tolerate = 2.0\nname =", "tolerate = 2: must lie between 0 and 1"),
            ("name =", "colour = 1\nname =", "unknown field `colour`"),
        ] {
            let text = STANDARD.replacen(from, to, 1);
            let message = Plan::from_toml(&text).unwrap_err().to_string();
            assert!(message.contains(error), "{message}");
        }
        assert!(matches!(Plan::from_toml("name = \"x\""), Err(PlanError::Empty)));
    }
}
