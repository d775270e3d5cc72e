//! Several runs of one kernel on one board, judged as one.
//!
//! The run is the cluster: what makes one run late all through (a boot, an hour, a neighbour) makes
//! its episodes depend on each other, and nothing within it tells.

use serde::Serialize;
use thiserror::Error;

use super::cell::{faults, silent, went_wrong};
use super::episodes::observation_needed_ns;
use super::load::did_not_hold;
use super::rule::Rule;
use super::sentences;
use crate::compare;
use crate::key::key_name;
use crate::rate::Rate;
use crate::schema::{Cell, CellState, Outcome, Run, Verdict};
use crate::stats::{
    LEAST_OBSERVED_NS, clopper_pearson_lower, clopper_pearson_upper, samples_needed,
};
use crate::units::{SECOND_NS, grouped, human_ns, stretch};

/// Several runs judged as one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pooled {
    /// Their IDs.
    pub runs: Vec<String>,
    /// The cells that all of them have, in the order of the first run.
    pub cells: Vec<PooledCell>,
    /// Cells that not all of them have, by their keys; the verdict is not a PASS then.
    pub left_out: Vec<String>,
    /// That of the worst cell.
    pub verdict: Verdict,
}

/// One cell of all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PooledCell {
    /// Its key.
    pub key: String,
    /// Time in which lateness would have been seen, in all runs together, ns.
    pub observed_ns: u64,
    /// Runs in which anything was late.
    pub runs_late: u64,
    /// Largest latency of all, ns.
    pub max_ns: Option<i64>,
    /// Its verdict.
    pub verdict: Verdict,
}

/// Why runs cannot be judged as one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PoolError {
    /// Fewer than two.
    #[error("at least two different runs are needed")]
    Few,
    /// Nothing to judge by.
    #[error("there is no deadline to judge by: give --deadline")]
    NoDeadline,
    /// Judged by different rules.
    #[error("{0} was judged by another rule than {1}: give --deadline and the rate")]
    Rules(String, String),
    /// Not replicates of each other.
    #[error(
        "{0} and {1} are of different kernels or boards: punctual compare tells how they differ"
    )]
    Kernels(String, String),
    /// Single activations were to be counted.
    #[error(
        "single activations (--singly) are not judged over several runs: their late episodes are"
    )]
    Singly,
    /// Runs of a deterministic board.
    #[error("{0} is of a virtual board: its runs are exact, and more of them are no more evidence")]
    Virtual(String),
}

/// Judges runs of one kernel on one board as one, by the rule that all of them were judged by.
///
/// # Errors
/// They are not of one kernel and board, have different rules, or there is no chance in them.
pub fn pool(runs: &[&Run]) -> Result<Pooled, PoolError> {
    let rules: Vec<_> = runs.iter().map(|run| Rule::of(&run.plan, &run.board)).collect();
    let (Some(first), Some(rule)) = (runs.first(), rules.first()) else {
        return Err(PoolError::Few);
    };
    for (run, of_run) in runs.iter().zip(&rules) {
        if of_run.deterministic || of_run.plumbing {
            return Err(PoolError::Virtual(run.run_id.clone()));
        }
        if of_run != rule {
            return Err(PoolError::Rules(run.run_id.clone(), first.run_id.clone()));
        }
    }
    if rule.deadline_ns.is_none() {
        return Err(PoolError::NoDeadline);
    }
    if rule.singly {
        return Err(PoolError::Singly);
    }
    let (kernels, _) = compare::by_kernel(runs);
    if let Some(other) = kernels.get(1).and_then(|kernel| kernel.runs.first()) {
        let (one, other) = (first.run_id.clone(), runs[*other].run_id.clone());
        return Err(PoolError::Kernels(other, one));
    }
    // One that was given twice counts once.
    let runs: Vec<&Run> = kernels.iter().flat_map(|k| &k.runs).map(|at| runs[*at]).collect();
    if runs.len() < 2 {
        return Err(PoolError::Few);
    }
    let mut left_out = Vec::new();
    let mut cells = Vec::new();
    let mut keys: Vec<&str> = Vec::new();
    for cell in runs.iter().flat_map(|run| &run.cells).filter(|cell| cell.latency().is_some()) {
        if !keys.contains(&cell.key.as_str()) {
            keys.push(&cell.key);
        }
    }
    for key in keys {
        let skipped = |run: &&Run| {
            let number = run.cells.iter().position(|cell| cell.key == key);
            number.is_some_and(|number| {
                let available = run.plan.cells.get(number).is_some_and(|planned| planned.available);
                available && run.cells[number].state == CellState::Skipped
            })
        };
        if runs.iter().all(skipped) {
            continue;
        }
        let same = |run: &&Run| run.cells.iter().find(|other| other.key == key).cloned();
        let all: Vec<Cell> = runs.iter().filter_map(same).filter(|one| one.samples() > 0).collect();
        if all.len() == runs.len() {
            cells.push(pooled(key.to_owned(), &all, rule));
        } else {
            left_out.push(key.to_owned());
        }
    }
    let worst = cells.iter().map(|cell| &cell.verdict).reduce(|a, b| {
        let rank =
            |verdict: &Verdict| (verdict.outcome, verdict.episode_rate_upper.unwrap_or(9e99));
        if rank(b) > rank(a) { b } else { a }
    });
    let mut verdict = worst.cloned().unwrap_or_default();
    if cells.is_empty() || (!left_out.is_empty() && verdict.outcome == Outcome::Pass) {
        verdict.outcome = Outcome::Inconclusive;
        verdict.because.push("not every run has every cell".to_owned());
    }
    let runs = runs.iter().map(|run| run.run_id.clone()).collect();
    Ok(Pooled { runs, cells, left_out, verdict })
}

#[allow(clippy::cast_precision_loss, reason = "a time needs no 16th digit")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / SECOND_NS as f64
}

/// One cell of all runs, by the rule.
fn pooled(key: String, cells: &[Cell], rule: &Rule) -> PooledCell {
    let sum = |of: &dyn Fn(&Cell) -> u64| cells.iter().map(of).fold(0, u64::saturating_add);
    let observed = |cell: &Cell| {
        let episodes = cell.latency().and_then(|latency| latency.episodes.as_ref());
        episodes.map_or(0, |episodes| episodes.observed_ns)
    };
    let exceeded = |cell: &Cell| cell.verdict.exceedances;
    let observed_ns = sum(&observed);
    let exceedances = sum(&exceeded);
    let runs_late = cells.iter().filter(|cell| exceeded(cell) > 0).count() as u64;
    let number = cells.len() as u64;
    let first = cells.first();
    let nouns = first.and_then(Cell::latency).map_or("", |latency| latency.primary.nouns.as_str());
    let scheduled = sum(&|cell| {
        let each = cell.threads().iter().map(|thread| thread.stats.scheduled);
        each.fold(0, u64::saturating_add)
    });
    let max_ns = cells.iter().filter_map(Cell::max_ns).max();
    let late = match runs_late {
        0 => format!("none of {} {nouns} was late in {number} runs", grouped(scheduled)),
        _ => format!(
            "{} of {} {nouns} were late, in {runs_late} of {number} runs",
            grouped(exceedances),
            grouped(scheduled)
        ),
    };
    let mut because = vec![format!(
        "{}: max {}; {late}; {} observed",
        key_name(&key),
        max_ns.map_or_else(String::new, human_ns),
        stretch(observed_ns)
    )];
    let mut verdict = rule.verdict(Outcome::Inconclusive, Vec::new());
    verdict.exceedances = exceedances;
    verdict.episodes = sum(&|cell| cell.verdict.episodes);
    let shortest = cells.iter().map(observed).min().unwrap_or(0);
    let longest = cells.iter().map(observed).max().unwrap_or(0);
    let confidence = rule.confidence;
    let upper = match runs_late {
        _ if observed_ns < LEAST_OBSERVED_NS => None,
        0 => Some(-(1.0 - confidence).ln() / seconds(observed_ns)),
        late if late == number => None,
        late => {
            // Of the runs, and of their seconds as if the runs were alike: a late run may have
            // held many episodes.
            let share = clopper_pearson_upper(late, number, confidence);
            let by_run = -(-share).ln_1p() / seconds(shortest);
            by_second(cells, observed_ns, confidence).map(|rate| rate.max(by_run))
        }
    };
    verdict.episode_rate_upper = upper;
    let interval_ns = first.and_then(Cell::interval_ns);
    let allowed = rule.tolerate_episodes.unwrap_or_else(|| rule.rate(interval_ns));
    let lower_share = clopper_pearson_lower(runs_late, number, confidence);
    let lower = -(-lower_share).ln_1p() / seconds(longest.max(1));
    verdict.outcome = match (rule.is_hard(), upper) {
        (true, _) if exceedances > 0 => Outcome::Fail,
        (false, _) if rule.tolerate.is_some() => Outcome::Inconclusive,
        (false, _) if lower > allowed.per_second() => Outcome::Fail,
        (_, Some(upper)) if upper <= allowed.per_second() * (1.0 + 1e-9) => Outcome::Pass,
        _ => Outcome::Inconclusive,
    };
    because.extend(upper.map(|upper| sentences::at_most_one_in(upper, confidence)));
    because.extend(more(rule, allowed, runs_late, number, shortest, verdict.outcome));
    let against = cells.iter().find_map(|cell| against(cell, !rule.is_hard()));
    if let Some(reason) = against.filter(|_| verdict.outcome == Outcome::Pass) {
        verdict.outcome = Outcome::Inconclusive;
        because.push(reason);
    }
    if let Some(fault) = cells.iter().find_map(|cell| faults(cell).next()) {
        verdict.outcome = Outcome::Fail;
        because.push(fault);
    }
    verdict.because = because;
    PooledCell { key, observed_ns, runs_late, max_ns, verdict }
}

/// The upper bound on the rate by the late seconds of all runs, per second.
fn by_second(cells: &[Cell], observed_ns: u64, confidence: f64) -> Option<f64> {
    let late_seconds = |cell: &Cell| Some(cell.latency()?.episodes.as_ref()?.seconds_late);
    let late =
        cells.iter().try_fold(0, |sum: u64, cell| Some(sum.saturating_add(late_seconds(cell)?)))?;
    let all = observed_ns / SECOND_NS;
    (late < all).then(|| -(-clopper_pearson_upper(late, all, confidence)).ln_1p())
}

/// What speaks against a PASS of a cell besides its length.
fn against(cell: &Cell, soft: bool) -> Option<String> {
    if cell.state != CellState::Complete {
        return Some("a run did not measure it to its end".to_owned());
    }
    let clustered = cell.latency().and_then(|l| l.episodes.as_ref()).is_some_and(|e| e.clustered);
    if soft && clustered {
        return Some("the episodes of a run come in clusters themselves".to_owned());
    }
    silent(cell).chain(went_wrong(cell)).chain(did_not_hold(cell)).next()
}

/// What would decide it, if it is open.
fn more(
    rule: &Rule,
    allowed: Rate,
    late: u64,
    number: u64,
    shortest_ns: u64,
    outcome: Outcome,
) -> Option<String> {
    if outcome != Outcome::Inconclusive {
        return None;
    }
    if shortest_ns == 0 {
        return Some("a run does not tell how long it observed".to_owned());
    }
    if rule.tolerate.is_some() {
        return Some(
            "a share of activations is not judged over several runs: --tolerate-episodes is"
                .to_owned(),
        );
    }
    if late == number {
        return Some("every run held a late one: no bound on their rate".to_owned());
    }
    let rate = allowed.per_second() * seconds(shortest_ns);
    let needed = if late == 0 {
        observation_needed_ns(allowed.per_second(), 0, rule.confidence)?
            .div_ceil(shortest_ns.max(1))
    } else {
        samples_needed(-(-rate).exp_m1(), late, rule.confidence)?
    };
    Some(format!(
        "too little evidence: a PASS at {allowed} needs {} such runs{}",
        grouped(needed),
        if late == 0 { ", none of them late" } else { ", no more of them late" }
    ))
}
