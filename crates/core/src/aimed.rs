//! What releases measured that were aimed at the longest sections of a course: the latest releases
//! that there can be, proven by measurement.

use serde::{Deserialize, Serialize};

use crate::preemption::Model;
use crate::sections::Section;

/// The aimed releases of one guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AimedRun {
    /// ID of the run whose course was aimed at.
    pub run_id: String,
    /// Name of its directory.
    pub run: String,
    /// `uname -r` of its kernel.
    pub release: String,
    /// Its preemption model.
    pub model: Model,
    /// Its cells, in the order of the plan.
    pub cells: Vec<AimedCell>,
    /// What may not be concluded.
    pub caveats: Vec<String>,
}

/// The aimed releases of one cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AimedCell {
    /// Key of the cell, such as `wakeup @ hackbench @ 2s`.
    pub key: String,
    /// Its load; `none` without.
    pub load: String,
    /// What was released before the aimed releases.
    pub course: Course,
    /// How many samples the cell took.
    pub samples: u64,
    /// The largest latency of these, ns.
    pub sampled_max_ns: Option<u64>,
    /// Sections longer than that of the last target that were not aimed at, because the CPU was
    /// idle both before and after them, so that their time is not known exactly.
    pub passed_over: u64,
    /// What was aimed at, that with the latest predicted release first; after each that was aimed
    /// again, its further rounds.
    pub targets: Vec<Target>,
}

/// What was released before an aimed release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Course {
    /// All earlier releases of the cell, at the same instants.
    Sampled,
    /// Nothing: another course of the same load.
    Alone,
}

/// A section that a release was aimed at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The section.
    pub section: Section,
    /// Number of the release in its cell, from 1.
    pub number: u64,
    /// Its instant, ns since the start of the cell.
    pub at_ns: u64,
    /// What is left of the section then, and what a wake-up takes in this cell, ns. From the second
    /// round on, for the section that the release before met: what was left until the thread had
    /// read the clock in the course of that.
    pub predicted_ns: u64,
    /// 1 if it was aimed at the course of the samples or, alone, of none; one more if at the course
    /// of the release of that round.
    #[serde(default = "first_round")]
    pub round: u32,
    /// What was measured, or why nothing was.
    pub measured: Shot,
}

const fn first_round() -> u32 {
    1
}

/// How an aimed release ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shot {
    /// It was measured, and nothing before it had changed.
    Measured {
        /// Name of the directory of its run.
        run: String,
        /// Its latency, ns.
        latency_ns: u64,
    },
    /// It proves nothing.
    Failed {
        /// Why, such as a sample before it that came out differently.
        why: String,
    },
}

impl AimedCell {
    /// The largest latency that was measured, sampled or aimed, ns.
    #[must_use]
    pub fn max_ns(&self) -> Option<u64> {
        let aimed = self.targets.iter().filter_map(Target::latency_ns);
        aimed.chain(self.sampled_max_ns).max()
    }
}

impl Target {
    /// What was measured, ns.
    #[must_use]
    pub fn latency_ns(&self) -> Option<u64> {
        match self.measured {
            Shot::Measured { latency_ns, .. } => Some(latency_ns),
            Shot::Failed { .. } => None,
        }
    }
}
