//! What the runs of a side have in common.

use std::collections::BTreeSet;

use punctual_core::compare::{Bearing, Comparison, Difference, RunLabel};

use super::clean;
use super::names::preemption_name;

/// The board of these runs, or how many boards there are.
#[must_use]
pub fn boards(comparison: &Comparison, runs: &[usize]) -> String {
    one_or_number(of(comparison, runs).map(|run| clean(&run.board).into_owned()), "boards")
}

/// The kernel of these runs, as `Linux 6.1.0 PREEMPT_RT`, or how many kernels there are.
#[must_use]
pub fn kernels(comparison: &Comparison, runs: &[usize]) -> String {
    let kernel = |run: &RunLabel| {
        let model = preemption_name(run.preemption);
        format!("Linux {} {model}", clean(&run.kernel))
    };
    one_or_number(of(comparison, runs).map(kernel), "kernels")
}

/// What these runs have of the settings in which runs of the comparison differ, and of groups:
/// `governor=performance`, `smt: 2 values`.
#[must_use]
pub fn settings(comparison: &Comparison, runs: &[usize]) -> Vec<String> {
    let differing = comparison.differences.iter().filter(|found| found.role == Bearing::Setting);
    let text = |found: &Difference| {
        let name = clean(found.what.strip_prefix("setting ").unwrap_or(&found.what)).into_owned();
        let values = runs.iter().filter_map(|run| found.values.get(*run)).collect::<BTreeSet<_>>();
        match values.first() {
            Some(value) if values.len() == 1 => format!("{name}={}", clean(value)),
            _ => format!("{name}: {} values", values.len()),
        }
    };
    differing.map(text).collect()
}

fn of<'a>(comparison: &'a Comparison, runs: &'a [usize]) -> impl Iterator<Item = &'a RunLabel> {
    runs.iter().filter_map(move |run| comparison.runs.get(*run))
}

/// What all have in common, or how many different ones there are.
fn one_or_number(all: impl Iterator<Item = String>, nouns: &str) -> String {
    let mut all = all.collect::<BTreeSet<_>>();
    match all.len() {
        0 | 1 => all.pop_first().unwrap_or_default(),
        several => format!("{several} {nouns}"),
    }
}
