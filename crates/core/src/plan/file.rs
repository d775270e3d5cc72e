//! The keys of a plan file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::PlanError;
use super::asked::Asked;
use crate::allowance::Allowance;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanFile {
    pub name: String,
    pub citation: Option<String>,
    #[serde(default)]
    pub kernels: Vec<String>,
    pub deadline: Option<String>,
    at_most: Option<String>,
    allow: Option<String>,
    // The names before those two.
    pub episodes: Option<String>,
    pub tolerate_episodes: Option<String>,
    pub tolerate: Option<f64>,
    pub probability: Option<f64>,
    #[serde(default)]
    pub singly: bool,
    pub confidence: Option<f64>,
    pub warmup: Option<String>,
    pub duration: Option<String>,
    #[serde(default)]
    pub adjustable: bool,
    #[serde(default)]
    pub cell: Vec<CellFile>,
    #[serde(default)]
    pub variant: BTreeMap<String, VariantFile>,
}

/// What replaces the plan's own; the duration is that of all cells.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantFile {
    pub duration: Option<String>,
    pub warmup: Option<String>,
    at_most: Option<String>,
    // The names before that.
    pub episodes: Option<String>,
    pub probability: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CellFile {
    pub probe: Option<String>,
    pub cost: Option<String>,
    #[serde(default)]
    pub load: Vec<String>,
    pub duration: Option<String>,
    pub samples: Option<u64>,
    #[serde(rename = "where")]
    pub place: Option<String>,
}

impl PlanFile {
    /// What the plan asks of the evidence, in this variant, by the keys `at_most`, `allow` and
    /// `singly`.
    ///
    /// # Errors
    /// [`PlanError::Allowance`], or [`PlanError::OldKey`] if an older name says the same.
    pub(super) fn asked(&self, variant: Option<&str>) -> Result<Asked, PlanError> {
        let variants = || self.variant.values();
        let at_most = self.at_most.is_some() || variants().any(|v| v.at_most.is_some());
        let episodes = self.episodes.is_some() || variants().any(|v| v.episodes.is_some());
        let probability = self.probability.is_some() || variants().any(|v| v.probability.is_some());
        for (old, new, both) in [
            ("episodes", "at_most", at_most && episodes),
            ("probability", "at_most", at_most && probability),
            ("tolerate", "allow", self.allow.is_some() && self.tolerate.is_some()),
            (
                "tolerate_episodes",
                "allow",
                self.allow.is_some() && self.tolerate_episodes.is_some(),
            ),
        ] {
            if both {
                return Err(PlanError::OldKey { old, new });
            }
        }
        let of_variant = variant.and_then(|name| self.variant.get(name)?.at_most.as_deref());
        Ok(Asked {
            at_most: allowance("at_most", of_variant.or(self.at_most.as_deref()))?,
            allow: allowance("allow", self.allow.as_deref())?,
            singly: self.singly,
        })
    }
}

fn allowance(key: &'static str, text: Option<&str>) -> Result<Option<Allowance>, PlanError> {
    text.map(|text| text.parse().map_err(|reason| PlanError::Allowance { key, reason })).transpose()
}
