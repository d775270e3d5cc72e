//! What a search keeps: each try, and at the end what it found.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Step;
use crate::preemption::Model;

/// What the tries of a search have in common. Those of another one are not comparable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchOrigin {
    /// SHA-256 of the punctual that the boards run.
    pub punctual_sha256: String,
    /// Version of QEMU.
    pub qemu: String,
    /// Options of QEMU, but for the seed.
    pub options: Vec<String>,
    /// The kernels, in order.
    pub kernels: Vec<SearchedKernel>,
    /// Modules besides those of the board, each with its parameters.
    pub modules: Vec<String>,
    /// The loads that are tried.
    pub loads: Vec<String>,
    /// How long each try is watched, ns.
    pub duration_ns: u64,
    /// Its warm-up, ns.
    pub warmup_ns: u64,
    /// Seed of the first guest of each mix; the others' are the next ones.
    pub seed: u64,
    /// Guests of each mix and kernel.
    pub replicates: u64,
}

/// A kernel that was searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchedKernel {
    /// As it was asked for.
    pub name: String,
    /// SHA-256 of its image.
    pub sha256: String,
    /// What is on its command line besides the board's own.
    pub parameters: Vec<String>,
    /// Its preemption model, if its configuration is known.
    pub model: Option<Model>,
}

/// One guest of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Try {
    /// Number of the mix, from 1; those without one of its loads go on after the last.
    pub number: u64,
    /// Why it was tried.
    pub step: Option<Step>,
    /// The mix, in canonical form.
    pub load: String,
    /// Every parameter as it took effect, by load.
    pub sizes: BTreeMap<String, BTreeMap<String, String>>,
    /// The kernel, as it was asked for.
    pub kernel: String,
    /// The seed of the board.
    pub seed: u64,
    /// The longest stretch in which a woken thread could not have been switched to, ns; `None` if
    /// it failed.
    pub longest_ns: Option<u64>,
    /// For how much of it interrupts were off, ns.
    pub interrupts_off_ns: u64,
    /// The function that began it.
    pub from: String,
    /// The function that ended it.
    pub to: String,
    /// The functions in which it began, callers first.
    pub stack: Vec<String>,
    /// The function that took most of it, and how long, ns.
    pub most: Option<(String, u64)>,
    /// The largest latency that its samples found, ns.
    pub sampled_max_ns: Option<u64>,
    /// Functions of the kernel that were executed.
    pub functions: u64,
    /// Those that take a lock or forbid preemption.
    pub locking: u64,
    /// Why there is nothing.
    pub failed: Option<String>,
    /// Whether the guest itself failed. It may not the next time, so it is tried again when the search
    /// goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guest_failed: bool,
}

/// A mix with its score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scored {
    /// Its number, from 1 in the order in which mixes were tried.
    pub number: u64,
    /// Why it was tried.
    pub step: Step,
    /// The mix, in canonical form.
    pub load: String,
    /// Over all kernels, ns: see [`score()`]. `None` if it failed on one of them.
    pub score_ns: Option<u64>,
    /// That of the guest with the shortest, by kernel in their order; `None` if one failed.
    pub by_kernel: Vec<Option<Longest>>,
    /// Why a guest failed, if one did.
    pub failed: Option<String>,
}

/// The longest stretch in which a woken thread could not have been switched to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Longest {
    /// Its length, ns.
    pub longest_ns: u64,
    /// The function that began it.
    pub from: String,
    /// The function that ended it.
    pub to: String,
}

/// What a load of the best mix contributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contribution {
    /// The load.
    pub load: String,
    /// The best mix without it.
    pub without: Scored,
    /// Functions of the kernel that it executes alone, in the order of the kernels.
    pub functions: Vec<Option<u64>>,
    /// Those that take a lock or forbid preemption.
    pub locking: Vec<Option<u64>>,
}

/// The latest release of the best mix on a kernel, found and measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The kernel, as it was asked for.
    pub kernel: String,
    /// The seed of the board.
    pub seed: u64,
    /// What was predicted of the latest, ns.
    pub predicted_ns: Option<u64>,
    /// The latest that an aimed release measured, ns.
    pub aimed_ns: Option<u64>,
    /// The largest latency of the samples, ns.
    pub sampled_max_ns: Option<u64>,
}

/// What a search found. In its folder it is `search.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// What all tries have in common.
    pub origin: SearchOrigin,
    /// Tries that it may have had.
    pub budget: u64,
    /// Whether it ended because the budget did.
    pub spent: bool,
    /// All mixes, that with the highest score first; those that failed last.
    pub mixes: Vec<Scored>,
    /// What each load of the first contributes.
    pub parts: Vec<Contribution>,
    /// The latest releases of the first.
    pub confirmed: Vec<Confirmed>,
}

/// The score of a mix, from its longest stretch on each kernel, ns: their geometric mean, so a
/// kernel on which it is twice as long counts as much as another one, whatever the lengths. Rounded
/// down; `None` without a kernel, or if it failed on one.
#[must_use]
pub fn score(by_kernel: &[Option<u64>]) -> Option<u64> {
    let lengths: Vec<u64> = by_kernel.iter().copied().collect::<Option<_>>()?;
    let (mut low, mut high) = (0, lengths.iter().copied().max()?);
    // By quotients alone, which every machine computes alike.
    #[allow(clippy::cast_precision_loss, reason = "lengths are far below 2^53 ns")]
    let reaches = |mean: u64| {
        lengths.iter().fold(1.0, |product, ns| product * (*ns as f64 / mean as f64)) >= 1.0
    };
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if reaches(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}
