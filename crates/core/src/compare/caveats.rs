//! What may not be concluded from a comparison.

use std::collections::{BTreeMap, BTreeSet};

use super::cost::MatchedCost;
use super::differences::{Bearing, Difference, telling};
use super::groups::{KernelRuns, are_other_kernels};
use super::matched::MatchedCell;
use super::settings::{SETTINGS, Setting};
use crate::key::key_name;
use crate::run::LoadedRun;
use crate::schema::{Cell, NOT_AT_REST, Origin, Run, RunState};
use crate::units::grouped;

/// Runs whose latencies are made up say nothing about kernels.
pub(super) fn simulated(runs: &[&Run]) -> Vec<String> {
    let simulated: Vec<&&Run> =
        runs.iter().filter(|run| run.cells.iter().any(Cell::is_simulated)).collect();
    let wholly = |run: &&&&Run| run.origin == Origin::Simulated;
    if !runs.is_empty() && simulated.iter().filter(wholly).count() == runs.len() {
        return vec!["SIMULATED: the latencies of these runs are made up".to_owned()];
    }
    let text = |run: &&&Run| {
        let some = if run.origin == Origin::Simulated { "the" } else { "some" };
        format!("SIMULATED: {some} latencies of {} are made up", run.run_id)
    };
    simulated.iter().map(text).collect()
}

/// What was not idle is not the latency of an idle kernel, whatever it is compared with.
pub(super) fn not_idle(runs: &[&Run]) -> Vec<String> {
    let cells = || runs.iter().flat_map(|run| run.cells.iter().map(move |cell| (run, cell)));
    let mut found: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for (run, cell) in cells() {
        if let Some(unrest) = cell.unrest() {
            found.entry(&cell.key).or_default().push((&run.run_id, &unrest.text));
        }
    }
    let mut said = Vec::new();
    for (key, disturbed) in found {
        let all = cells().filter(|(_, cell)| cell.key == key).count();
        let (run, text) = disturbed[0];
        let key = key_name(key);
        said.push(format!("{key}: not idle in {} of {all} runs; {run}: {text}", disturbed.len()));
    }
    let mut unknown: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, cell) in cells().filter(|(run, cell)| run.is_idleness_unknown(cell)) {
        *unknown.entry(&cell.key).or_default() += 1;
    }
    for (key, count) in unknown {
        let all = cells().filter(|(_, cell)| cell.key == key).count();
        let key = key_name(key);
        said.push(format!("{key}: whether it was idle is not known in {count} of {all} runs"));
    }
    let unrest = runs.iter().flat_map(|run| &run.conditions).filter(|c| c.id == NOT_AT_REST);
    let unrest: Vec<_> = unrest.collect();
    said.extend(
        unrest.first().map(|condition| {
            format!("in {} of {} runs {}", unrest.len(), runs.len(), condition.text)
        }),
    );
    said
}

pub(super) fn confounded(differences: &[Difference]) -> Option<String> {
    let mut what: Vec<&str> = Vec::new();
    for difference in differences.iter().filter(|d| d.role == Bearing::Confounder) {
        if !what.contains(&difference.what.as_str()) {
            what.push(&difference.what);
        }
    }
    (!what.is_empty()).then(|| {
        format!(
            "the runs differ in more than the kernel ({}), so differences in results may have \
             other causes",
            what.join(", ")
        )
    })
}

/// One sentence on all arguments whose runs are several sides, since nobody has asked to pool them.
pub(super) fn split(runs: &[&Run], groups: &[KernelRuns]) -> Option<String> {
    let mut sides: BTreeMap<&str, Vec<&KernelRuns>> = BTreeMap::new();
    for group in groups.iter().filter(|group| !group.whole) {
        if let Some(side) = &group.side {
            sides.entry(side).or_default().push(group);
        }
    }
    sides.retain(|_, parts| parts.len() > 1);
    let of = |(side, parts): (&str, Vec<&KernelRuns>)| {
        let members: Vec<&Run> =
            parts.iter().flat_map(|part| &part.runs).map(|run| runs[*run]).collect();
        format!("the runs of {side} differ in {}", telling(&members).join(", "))
    };
    let differ: Vec<_> = sides.into_iter().map(of).collect();
    (!differ.is_empty()).then(|| {
        format!(
            "{}, so one argument is several sides: join runs by + (a+b) to pool them all the same, \
             or give --by",
            differ.join("; ")
        )
    })
}

/// Settings that differ between the first kernel and another one: then a result may be of either.
pub(super) fn beside_kernels(runs: &[&Run], groups: &[KernelRuns]) -> Option<String> {
    let (base, others) = groups.split_first()?;
    let others: Vec<usize> = others.iter().flat_map(|group| &group.runs).copied().collect();
    let kernel = |run: usize| {
        let kernel = &runs[run].kernel;
        format!("Linux {} ({})", kernel.release, kernel.preemption)
    };
    let differs = |setting: &Setting| {
        let values: Vec<_> = runs.iter().map(|run| setting.of(run)).collect();
        base.runs.iter().find_map(|one| {
            let value = values[*one].as_ref()?;
            let (other, of_other) = others.iter().find_map(|other| {
                let of_other = values[*other].as_ref().filter(|of| *of != value)?;
                are_other_kernels(runs[*one], runs[*other]).then_some((*other, of_other))
            })?;
            Some(format!(
                "{} differs too: {value} with {}, {of_other} with {}",
                setting.name,
                kernel(*one),
                kernel(other)
            ))
        })
    };
    let found: Vec<_> = SETTINGS.iter().filter_map(differs).collect();
    (!found.is_empty())
        .then(|| format!("{}, so the kernel is not the only cause", found.join("; ")))
}

/// By what share sample counts may differ before a caveat says so.
const SAMPLES_APART: f64 = 0.01;

pub(super) fn unequal_samples(cells: &[MatchedCell]) -> Vec<String> {
    let mut found = Vec::new();
    for cell in cells {
        let counts = cell.rows.iter().map(|row| row.samples).filter(|samples| *samples > 0);
        let (low, high) = (counts.clone().min(), counts.max());
        let (Some(low), Some(high)) = (low, high) else {
            continue;
        };
        #[allow(clippy::cast_precision_loss, reason = "a share of counts")]
        if (high - low) as f64 > SAMPLES_APART * high as f64 {
            found.push(format!(
                "{}: {} to {} samples; more samples give a larger maximum by chance alone",
                key_name(&cell.key),
                grouped(low),
                grouped(high)
            ));
        }
    }
    found
}

pub(super) fn troubles(runs: &[LoadedRun]) -> Vec<String> {
    let mut found = Vec::new();
    let mut known = BTreeSet::new();
    for loaded in runs {
        let id = &loaded.run.run_id;
        if !known.insert(id) {
            found.push(format!("{id} is given more than once"));
        }
        let how = match loaded.run.state {
            RunState::Complete => None,
            RunState::Running => Some("was cut short"),
            RunState::Interrupted => Some("was interrupted"),
            RunState::Failed => Some("ended by an error"),
        };
        found.extend(
            how.map(|how| format!("{id} {how}: its cells contain what was measured until then")),
        );
        found.extend(loaded.damage.iter().map(|what| format!("{id}: {what}")));
    }
    found
}

/// One sentence for all: a metric that is missing seldom is the only one.
pub(super) fn missing(cells: &[MatchedCell], costs: &[MatchedCost]) -> Option<String> {
    let cells = cells.iter().filter(|cell| cell.rows.iter().any(|row| row.samples == 0));
    let costs = costs.iter().filter(|cost| cost.rows.iter().any(|row| !row.is_measured()));
    let keys = cells.map(|cell| &cell.key).chain(costs.map(|cost| &cost.key));
    let names: Vec<_> = keys.map(|key| key_name(key)).collect();
    (!names.is_empty()).then(|| format!("not measured in every run: {}", names.join(", ")))
}
