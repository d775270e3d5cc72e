//! Several runs of one kernel on one board, judged as one.
//!
//! The run is what is counted: what makes one run late all through (a boot, an hour, a neighbour)
//! shows in no other run. So times do not add up, and nothing is said of a rate over runs: however
//! many runs there are, a few that nobody has seen may be late without end.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use super::cell::{faults, reasons};
use super::head::{self, counted_exactly};
use super::rule::Rule;
use super::run::judge_run;
use super::sentences;
use crate::compare;
use crate::key::key_name;
use crate::schema::{Cell, CellState, Outcome, Run, Verdict};
use crate::stats::{clopper_pearson_lower, clopper_pearson_upper};
use crate::units::{human_ns, stretch};
use crate::weakened::Weakened;

/// Several runs judged as one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pooled {
    /// Their IDs.
    pub runs: Vec<String>,
    /// The cells that all of them have, in the order of the first run.
    pub cells: Vec<PooledCell>,
    /// Cells that not all of them have, by their keys; the verdict is not a PASS then.
    pub left_out: Vec<String>,
    /// The outcome of the worst cell, or of what else speaks against a run; exceedances and
    /// episodes of all cells. The first reason is the share of runs that may be late, or not pass.
    pub verdict: Verdict,
    /// What weakens every claim.
    pub weakened: Weakened,
    /// The conditions of the runs and their cells, by their IDs, and how many runs have each.
    pub conditions: BTreeMap<String, usize>,
}

/// One cell of all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PooledCell {
    /// Its key.
    pub key: String,
    /// Time in which lateness would have been seen, of the run that observed least, ns.
    pub observed_ns: u64,
    /// Runs in which anything was late.
    pub runs_late: u64,
    /// Upper bound on the share of runs like these that are late within [`Self::observed_ns`],
    /// between 0 and 1, at the confidence of the verdict (Clopper and Pearson 1934).
    pub late_share_upper: f64,
    /// Runs that pass by themselves.
    pub runs_passed: u64,
    /// Runs that fail by themselves.
    pub runs_failed: u64,
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
        "{0} and {1} are of different kernels, boards or settings: punctual compare tells how they \
         differ"
    )]
    Kernels(String, String),
    /// Runs of costs only, or of cells that none of them could measure.
    #[error("these runs have no latencies to judge")]
    NoLatencies,
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
    let kernels = compare::by_kernel(runs);
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
    for (key, nth) in keys(&runs) {
        let skipped = |run: &&Run| {
            place(run, key, nth).is_some_and(|number| {
                let available = run.plan.cells.get(number).is_some_and(|planned| planned.available);
                available && run.cells[number].state == CellState::Skipped
            })
        };
        if runs.iter().all(skipped) {
            continue;
        }
        let all: Vec<Member<'_>> =
            runs.iter().filter_map(|run| Member::of(run, (key, nth), rule)).collect();
        if all.len() == runs.len() {
            cells.push(pooled(key.to_owned(), &all, rule));
        } else {
            left_out.push(key.to_owned());
        }
    }
    let worst = cells.iter().reduce(|a, b| {
        let rank = |cell: &PooledCell| (cell.verdict.outcome, cell.max_ns);
        if rank(b) > rank(a) { b } else { a }
    });
    if worst.is_none() && left_out.is_empty() {
        return Err(PoolError::NoLatencies);
    }
    let open = || rule.verdict(Outcome::Inconclusive, Vec::new());
    let mut verdict = worst.map_or_else(open, |cell| cell.verdict.clone());
    if !left_out.is_empty() && verdict.outcome <= Outcome::Inconclusive {
        verdict.outcome = Outcome::Inconclusive;
        verdict.because.push("not every run has every cell".to_owned());
    }
    let alone = runs.iter().map(|run| judge_run(run.state, &run.cells, &run.plan.cells, rule));
    let alone: Vec<Verdict> = alone.collect();
    against(&mut verdict, &runs, &alone, rule);
    let of_cells = |count: &dyn Fn(&Verdict) -> u64| {
        cells.iter().map(|cell| count(&cell.verdict)).fold(0, u64::saturating_add)
    };
    verdict.exceedances = of_cells(&|of| of.exceedances);
    verdict.episodes = of_cells(&|of| of.episodes);
    verdict.because.insert(0, share(&cells, &alone, rule));
    let (weakened, conditions) = (Weakened::of(&runs), conditions(&runs));
    let runs = runs.iter().map(|run| run.run_id.clone()).collect();
    Ok(Pooled { runs, cells, left_out, verdict, weakened, conditions })
}

/// What else speaks against a run than cells that all of them have: a cost that failed, or lateness
/// where the others have not measured.
fn against(verdict: &mut Verdict, runs: &[&Run], alone: &[Verdict], rule: &Rule) {
    let worst = runs.iter().zip(alone).max_by_key(|(_, of)| of.outcome);
    let Some((run, of)) = worst.filter(|(_, of)| of.outcome > Outcome::Pass) else { return };
    let outcome = match of.outcome {
        Outcome::Fail => Outcome::Fail,
        _ => Outcome::Inconclusive,
    };
    // Of a soft deadline some of many runs fail by chance.
    let tells = verdict.outcome == Outcome::Pass || rule.is_hard();
    if tells && outcome > verdict.outcome {
        verdict.outcome = outcome;
        verdict.because.push(format!("{} does not pass by itself", run.run_id));
        verdict.because.extend(of.because.iter().cloned());
    }
}

/// What share of runs may be late; of a soft deadline, what share may not pass.
fn share(cells: &[PooledCell], alone: &[Verdict], rule: &Rule) -> String {
    let number = alone.len() as u64;
    let count = |is: &dyn Fn(&Verdict) -> bool| alone.iter().filter(|of| is(of)).count() as u64;
    let runs_late = count(&|of| of.exceedances > 0);
    if cells.is_empty() {
        return format!("{number} runs without a cell that all of them have; late: {runs_late}");
    }
    if !rule.is_hard() {
        let passed = count(&|of| of.outcome == Outcome::Pass);
        let upper = clopper_pearson_upper(number - passed, number, rule.confidence);
        return sentences::share_of_passes(passed, number, upper, rule.confidence);
    }
    let upper = clopper_pearson_upper(runs_late, number, rule.confidence);
    let observed = stretch(cells.iter().map(|cell| cell.observed_ns).min().unwrap_or(0));
    let time = match cells.len() {
        1 => observed,
        several => format!("{observed} of each of {several} cells"),
    };
    sentences::share_of_runs(runs_late, number, upper, &time, rule.confidence)
}

/// The keys of all cells of latencies, each with how many there are of it before in its run.
fn keys<'a>(runs: &[&'a Run]) -> Vec<(&'a str, usize)> {
    let mut found = Vec::new();
    for run in runs {
        let mut own: Vec<&str> = Vec::new();
        for cell in run.cells.iter().filter(|cell| cell.latency().is_some()) {
            let key = (&*cell.key, own.iter().filter(|key| **key == cell.key).count());
            own.push(&cell.key);
            if !found.contains(&key) {
                found.push(key);
            }
        }
    }
    found
}

/// Where a run has the n-th cell with a key.
fn place(run: &Run, key: &str, nth: usize) -> Option<usize> {
    let numbers = run.cells.iter().enumerate().filter(|(_, cell)| cell.key == key);
    numbers.map(|(number, _)| number).nth(nth)
}

fn conditions(runs: &[&Run]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for run in runs {
        let of_cells = run.cells.iter().flat_map(|cell| &cell.conditions);
        let mut ids: Vec<&str> =
            run.conditions.iter().chain(of_cells).map(|condition| condition.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        for id in ids {
            *found.entry(id.to_owned()).or_default() += 1;
        }
    }
    found
}

/// A cell of one of the runs.
struct Member<'a> {
    run_id: &'a str,
    cell: &'a Cell,
    /// What it comes to by itself.
    verdict: Verdict,
    /// And why.
    why: Vec<String>,
}

impl<'a> Member<'a> {
    /// The cell of a run with this key, if it has samples.
    fn of(run: &'a Run, (key, nth): (&str, usize), rule: &Rule) -> Option<Self> {
        let cell = &run.cells[place(run, key, nth)?];
        let (verdict, why) = reasons(cell, rule);
        (cell.samples() > 0).then_some(Self { run_id: &run.run_id, cell, verdict, why })
    }

    fn is_late(&self) -> bool {
        self.verdict.exceedances > 0
    }

    fn observed_ns(&self) -> u64 {
        let episodes = self.cell.latency().and_then(|latency| latency.episodes.as_ref());
        episodes.map_or(0, |episodes| episodes.observed_ns)
    }

    fn scheduled(&self) -> u64 {
        let each = self.cell.threads().iter().map(|thread| thread.stats.scheduled);
        each.fold(0, u64::saturating_add)
    }
}

/// One cell of all runs, by the rule that each of them was judged by.
fn pooled(key: String, runs: &[Member<'_>], rule: &Rule) -> PooledCell {
    let sum = |of: &dyn Fn(&Member<'_>) -> u64| runs.iter().map(of).fold(0, u64::saturating_add);
    let count = |is: &dyn Fn(&Member<'_>) -> bool| sum(&|run| u64::from(is(run)));
    let number = runs.len() as u64;
    let exceedances = sum(&|run| run.verdict.exceedances);
    let runs_late = count(&|run| run.is_late());
    let runs_passed = count(&|run| run.verdict.outcome == Outcome::Pass);
    let runs_failed = count(&|run| run.verdict.outcome == Outcome::Fail);
    let max_ns = runs.iter().filter_map(|run| run.cell.max_ns()).max();
    let observed_ns = runs.iter().map(Member::observed_ns).min().unwrap_or(0);
    let late_share_upper = clopper_pearson_upper(runs_late, number, rule.confidence);
    let fault = runs.iter().find_map(|run| faults(run.cell).next());
    // Of many runs of a soft deadline some fail by chance.
    let by_chance = 1.0 - rule.confidence;
    let too_many = clopper_pearson_lower(runs_failed, number, rule.confidence) > by_chance;
    let outcome = match fault {
        Some(_) => Outcome::Fail,
        None if rule.is_hard() && exceedances > 0 => Outcome::Fail,
        None if !rule.is_hard() && too_many => Outcome::Fail,
        None if runs_passed == number => Outcome::Pass,
        None => Outcome::Inconclusive,
    };
    let deadline_ns = rule.deadline_ns.unwrap_or_default();
    let first = runs.first().map(|run| run.cell);
    let nouns = first.and_then(Cell::latency).map_or("", |latency| latency.primary.nouns.as_str());
    let exact = runs.iter().all(|run| {
        counted_exactly(run.cell.latency().and_then(|latency| latency.episodes.as_ref()))
    });
    let scheduled = sum(&|run| run.scheduled());
    let in_runs = match runs_late {
        0 => String::new(),
        _ => format!(", in {runs_late} of {number} runs"),
    };
    let mut because = vec![format!(
        "{}: max {}; {}{in_runs}",
        key_name(&key),
        max_ns.map_or_else(String::new, human_ns),
        sentences::late(exceedances, scheduled, nouns, deadline_ns, exact)
    )];
    because.extend(fault);
    because.extend(by_themselves(runs, [runs_passed, runs_failed], outcome, rule));
    let verdict = Verdict {
        exceedances,
        episodes: sum(&|run| run.verdict.episodes),
        ..rule.verdict(outcome, because)
    };
    PooledCell {
        key,
        observed_ns,
        runs_late,
        late_share_upper,
        runs_passed,
        runs_failed,
        max_ns,
        verdict,
    }
}

/// What the runs came to by themselves.
fn by_themselves(
    runs: &[Member<'_>],
    [passed, failed]: [u64; 2],
    outcome: Outcome,
    rule: &Rule,
) -> Vec<String> {
    let number = runs.len();
    if outcome == Outcome::Pass {
        let rates = runs.iter().filter_map(|run| run.verdict.episode_rate_upper);
        let rate = rates.reduce(f64::max).map(|rate| {
            format!(
                "each of these runs by itself: {}",
                sentences::at_most_one_in(rate, rule.confidence)
            )
        });
        return rate.into_iter().collect();
    }
    let mut said = Vec::new();
    if !rule.is_hard() {
        let by_chance = sentences::confidence(1.0 - rule.confidence);
        said.push(format!(
            "of {number} runs {passed} PASS and {failed} FAIL by themselves; {by_chance} may FAIL by \
             chance"
        ));
    }
    let open = runs
        .iter()
        .find(|run| outcome == Outcome::Inconclusive && run.verdict.outcome != Outcome::Pass);
    if let Some(run) = open {
        said.push(format!("a PASS needs each run to pass, and {} does not", run.run_id));
        // How many were late is told of all runs.
        let told: Vec<String> = head::counts([run.cell], rule).into_iter().collect();
        said.extend(head::untold(&told, run.why.clone()));
    }
    said
}
