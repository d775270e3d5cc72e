//! Cells that differ only in how long they were measured.
//!
//! Quantiles, means and rates estimate the same quantity however long the measurement was, so
//! they can be set side by side. A maximum (and a minimum) grows with the number of samples by
//! itself: of a shorter run it is smaller without any difference between the kernels.

use std::collections::BTreeMap;

use crate::key::{BETWEEN, key_name};
use crate::run::LoadedRun;
use crate::units::exact_duration;

/// Stands in a key for the durations of cells that were made the same.
const ANY: &str = "any duration";

/// Cells of one kind, probe and load, by run: their durations, ns.
type Durations = BTreeMap<(&'static str, String), Vec<(usize, u64)>>;

/// Makes cells that differ only in their duration the same cell, without the extremes that
/// depend on it. Returns what was left out and why, one sentence for each cell. Cells that a
/// run has at several durations stay as they are: which one would be meant?
pub(super) fn any_duration(runs: &mut [LoadedRun]) -> Vec<String> {
    let mut said = Vec::new();
    for ((kind, stem), found) in differing(runs) {
        said.push(format!(
            "{}: measured for {}: quantiles, means and rates are compared, the largest and the \
             smallest sample are not, since they grow apart with the time measured",
            key_name(&stem),
            listed(&found)
        ));
        for cell in runs.iter_mut().flat_map(|loaded| &mut loaded.run.cells) {
            if cell.what.kind() == kind && stem_of(&cell.key) == stem {
                cell.key = format!("{stem}{BETWEEN}{ANY}");
                let phases = cell.phases.iter_mut().map(|phase| &mut phase.found);
                for found in phases.chain(&mut cell.changes) {
                    (found.stats.max, found.stats.min) = (None, None);
                }
                if let Some(latency) = cell.latency_mut() {
                    (latency.stats.max, latency.stats.min) = (None, None);
                }
            }
        }
    }
    said
}

/// Why cells that look the same are not matched.
pub(super) fn unmatched(runs: &[LoadedRun]) -> impl Iterator<Item = String> {
    differing(runs).into_iter().map(|((_, stem), found)| {
        format!(
            "{}: not compared, because cells are matched by duration too and these are {}; \
             --any-duration compares their quantiles, means and rates",
            key_name(&stem),
            listed(&found)
        )
    })
}

/// Cells that several runs have, each once, but not of one duration.
fn differing(runs: &[LoadedRun]) -> Durations {
    let mut all: Durations = BTreeMap::new();
    for (number, loaded) in runs.iter().enumerate() {
        for cell in loaded.run.cells.iter().filter(|cell| !cell.key.ends_with(ANY)) {
            let key = (cell.what.kind(), stem_of(&cell.key).to_owned());
            all.entry(key).or_default().push((number, cell.duration_ns));
        }
    }
    all.retain(|_, found| {
        let is_once = found.windows(2).all(|pair| pair[0].0 != pair[1].0);
        is_once && found.iter().any(|(_, duration)| *duration != found[0].1)
    });
    all
}

/// A key without its duration.
fn stem_of(key: &str) -> &str {
    key.rsplit_once(BETWEEN).map_or(key, |(stem, _)| stem)
}

/// `10s, 3s`: each duration once, in the order of the runs.
fn listed(found: &[(usize, u64)]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for (_, duration) in found {
        let text = exact_duration(*duration);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::compare;
    use super::super::tests::{cell, loaded, run};
    use super::*;

    fn pair() -> Vec<LoadedRun> {
        let of = |id: &str, kernel: &str, seconds: u64, us: i64| {
            let mut cell = cell(&format!("wakeup @ none @ {seconds}s"), us / 2, us);
            cell.duration_ns = seconds * 1_000_000_000;
            run(id, kernel, vec![cell])
        };
        loaded(vec![of("a", "none", 10, 400), of("b", "rt", 3, 100)])
    }

    #[test]
    fn a_comparison_says_why_nothing_matches() {
        let comparison = compare(&pair());
        assert!(comparison.cells.is_empty());
        let hint = comparison.caveats.iter().find(|text| text.contains("--any-duration"));
        let hint = hint.expect("a hint");
        assert!(
            hint.starts_with("wakeup @ idle: not compared") && hint.contains("10s, 3s"),
            "{hint}"
        );
    }

    #[test]
    fn quantiles_of_other_durations_are_compared_and_maxima_are_not() {
        let mut runs = pair();
        let said = any_duration(&mut runs);
        assert!(said.len() == 1 && said[0].contains("10s, 3s"), "{said:?}");
        let comparison = compare(&runs);
        let cell = &comparison.cells[0];
        assert_eq!(cell.key, "wakeup @ none @ any duration");
        let other = &cell.rows[1];
        assert_eq!((other.ratio.p999, other.ratio.max), (Some(0.25), None));
        assert_eq!((other.max_ns, other.min_ns), (None, None));
        assert!(!comparison.caveats.iter().any(|text| text.contains("--any-duration")));
    }

    #[test]
    fn equal_durations_keep_their_maxima() {
        let mut runs = pair();
        for loaded in &mut runs {
            loaded.run.cells[0].key = "wakeup @ none @ 10s".to_owned();
            loaded.run.cells[0].duration_ns = 10_000_000_000;
        }
        assert!(any_duration(&mut runs).is_empty());
        assert_eq!(compare(&runs).cells[0].rows[1].ratio.max, Some(0.25));
    }

    #[test]
    fn a_plan_with_several_durations_of_a_cell_is_left_alone() {
        let mut runs = pair();
        let mut again = runs[0].run.cells[0].clone();
        again.duration_ns = 60_000_000_000;
        again.key = "wakeup @ none @ 1min".to_owned();
        runs[0].run.cells.push(again);
        assert!(any_duration(&mut runs).is_empty());
    }
}
