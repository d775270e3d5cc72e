//! The judgement against a deadline: PASS, FAIL, INCONCLUSIVE or SKIPPED, with
//! the evidence in sentences.
//!
//! Judged per thread; a cell is its worst thread, a run its worst cell. The
//! bounds are one-sided Clopper-Pearson bounds of the probability that a release
//! is later than the deadline (L1), and hold for the load that was tested.

mod words;

use crate::plan::Plan;
use crate::schema::{Board, Cell, CellState, Outcome, Stats, Thread, Verdict};
use crate::stats::{clopper_pearson_lower, clopper_pearson_upper, cluster_bound};
use crate::units::{SECOND_NS, grouped, human_ns};

/// How to judge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// Deadline, ns; none: nothing is judged.
    pub deadline_ns: Option<u64>,
    /// Soft deadline: the probability of an exceedance that is tolerated,
    /// between 0 and 1. None: the deadline is hard, one exceedance fails.
    pub tolerate: Option<f64>,
    /// A PASS of a hard deadline needs an upper bound of at most this, between
    /// 0 and 1.
    pub probability: f64,
    /// Confidence of the bounds, one-sided, between 0 and 1.
    pub confidence: f64,
    /// The board is a deterministic virtual one: its runs are the whole
    /// population, and a bound would claim chance where there is none.
    pub deterministic: bool,
    /// The board is a virtual one that ran freely: nothing is judged, since its
    /// latencies are those of the host.
    pub plumbing: bool,
}

const PLUMBING: &str = "plumbing, not a measurement: the guest ran freely, and its latencies are \
the host's noise";

impl Rule {
    /// The rule of a plan on a board.
    #[must_use]
    pub fn of(plan: &Plan, board: &Board) -> Self {
        Self {
            deadline_ns: plan.deadline_ns,
            tolerate: plan.tolerate,
            probability: plan.probability,
            confidence: plan.confidence,
            deterministic: board.is_deterministic(),
            plumbing: board.is_plumbing(),
        }
    }

    /// The rule on a virtual board whose time is counted in instructions, or runs freely,
    /// while its record does not say so yet.
    #[must_use]
    pub fn on_virtual_board(self, counted: bool) -> Self {
        Self { deterministic: counted, plumbing: !counted, ..self }
    }

    /// The rule for each of `judgements`, at which all of them hold together at
    /// the confidence asked for (Bonferroni).
    #[must_use]
    pub fn for_all_of(self, judgements: u64) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "judgements are few")]
        let count = judgements.max(1) as f64;
        Self { confidence: 1.0 - (1.0 - self.confidence) / count, ..self }
    }

    fn verdict(&self, outcome: Outcome, because: Vec<String>) -> Verdict {
        Verdict {
            outcome,
            deadline_ns: self.deadline_ns,
            exceedances: 0,
            upper_bound: None,
            confidence: self.confidence,
            because,
        }
    }
}

/// Judges one thread. `exceedances` are its releases later than the deadline,
/// missed periods included ([`crate::stats::exceedances`]); `clusters` the
/// seconds that held any ([`crate::stats::clusters`]); `interval_ns` its period,
/// where it has one, by which releases become time.
///
/// Hard deadline: FAIL at any exceedance; else PASS where the upper bound is at
/// most `rule.probability`. Soft: FAIL where the lower bound is above
/// `rule.tolerate`, PASS where the upper bound is at most that. Otherwise
/// INCONCLUSIVE, with how much longer to run. A guest that ran freely is
/// INCONCLUSIVE whatever it did.
#[must_use]
pub fn judge_thread(
    stats: &Stats,
    exceedances: u64,
    clusters: u64,
    interval_ns: Option<u64>,
    rule: &Rule,
) -> Verdict {
    let (n, k) = (stats.scheduled, exceedances);
    let interval_ns = interval_ns.filter(|interval| *interval > 0);
    // What the next releases do is a matter of chance on neither kind of virtual board.
    let by_chance = !rule.deterministic && !rule.plumbing;
    let maximum = stats.max_ns.filter(|_| by_chance).map(|max| words::maximum(max, n, interval_ns));
    let Some(deadline_ns) = rule.deadline_ns else {
        return rule.verdict(Outcome::None, maximum.into_iter().collect());
    };
    if rule.plumbing {
        let verdict = rule.verdict(Outcome::Inconclusive, vec![PLUMBING.to_owned()]);
        return Verdict { exceedances: k, ..verdict };
    }
    if stats.samples == 0 {
        let reason = "no samples: nothing is known about the deadline".to_owned();
        return rule.verdict(Outcome::Inconclusive, vec![reason]);
    }
    let deadline = words::deadline(deadline_ns);
    if rule.deterministic {
        return deterministic(stats, k, &deadline, rule);
    }
    let upper = clopper_pearson_upper(k, n, rule.confidence);
    let limit = rule.tolerate.unwrap_or(rule.probability);
    let failed = match rule.tolerate {
        None => k > 0,
        Some(tolerated) => clopper_pearson_lower(k, n, rule.confidence) > tolerated,
    };
    let outcome = if failed {
        Outcome::Fail
    } else if upper <= limit {
        Outcome::Pass
    } else {
        Outcome::Inconclusive
    };
    let mut because = vec![evidence(stats, k, &deadline, upper, rule.confidence)];
    if let (Some(tolerated), Outcome::Fail) = (rule.tolerate, outcome) {
        because.push(format!(
            "more than the tolerated {} at {} confidence (one-sided)",
            words::probability(tolerated),
            words::confidence(rule.confidence),
        ));
    }
    if outcome == Outcome::Inconclusive {
        because.push(words::needs(limit, k, n, interval_ns, rule.confidence));
    }
    because.extend(clustering(clusters, k, n, interval_ns, rule.confidence));
    because.extend(maximum);
    Verdict { exceedances: k, upper_bound: Some(upper), ..rule.verdict(outcome, because) }
}

/// What was seen and what it bounds, in one sentence.
fn evidence(stats: &Stats, k: u64, deadline: &str, upper: f64, confidence: f64) -> String {
    format!(
        "{}; {} is, at {} confidence (one-sided), under this load",
        seen(stats, k, deadline),
        words::at_most(upper),
        words::confidence(confidence),
    )
}

fn seen(stats: &Stats, k: u64, deadline: &str) -> String {
    if k == 0 {
        return format!("no activation was later than {deadline}");
    }
    format!(
        "{} of {} activations {} later than {deadline}, {} at worst",
        grouped(k),
        grouped(stats.scheduled),
        if k == 1 { "was" } else { "were" },
        human_ns(stats.max_ns.unwrap_or_default()),
    )
}

/// The bound by clusters, where exceedances came in fewer seconds than they are.
fn clustering(
    clusters: u64,
    k: u64,
    n: u64,
    interval_ns: Option<u64>,
    confidence: f64,
) -> Option<String> {
    let exposure = u128::from(n) * u128::from(interval_ns?);
    if clusters == 0 || clusters >= k {
        return None;
    }
    #[allow(clippy::cast_precision_loss, reason = "a time of 2^53 ns is known to a ns")]
    let seconds = exposure as f64 / SECOND_NS as f64;
    let bound = cluster_bound(clusters, k, seconds, confidence);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates"
    )]
    let apart = (SECOND_NS as f64 / bound.rate_upper) as u128;
    Some(format!(
        "they cluster: {} seconds held all {} (extremal index {:.2}); counted by clusters, \
         at most one in {}, at {} confidence (one-sided)",
        grouped(clusters),
        grouped(k),
        bound.theta?,
        words::stretch(apart),
        words::confidence(confidence),
    ))
}

/// A deterministic board: what it did is what it does.
fn deterministic(stats: &Stats, k: u64, deadline: &str, rule: &Rule) -> Verdict {
    #[allow(clippy::cast_precision_loss, reason = "the share needs no last digit")]
    let share = k as f64 / stats.scheduled as f64;
    let failed = rule.tolerate.map_or(k > 0, |tolerated| share > tolerated);
    let outcome = if failed { Outcome::Fail } else { Outcome::Pass };
    let because = vec![
        seen(stats, k, deadline),
        "deterministic: every run of this board with this phase gives these figures, \
         so that no bound is given; vary the phase for replicates"
            .to_owned(),
    ];
    Verdict { exceedances: k, ..rule.verdict(outcome, because) }
}

/// Judges a cell by its threads' verdicts: the outcome, bound and reasons of the
/// worst, the exceedances of all. SKIPPED where a precondition was missing;
/// INCONCLUSIVE where there is a deadline and nothing was measured; cells of
/// costs are not judged. A cell that was cut short is judged by what it
/// measured, and says so.
#[must_use]
pub fn judge_cell(cell: &Cell, rule: &Rule) -> Verdict {
    let reason = cell.reason.as_deref().unwrap_or("no reason was recorded");
    if cell.state == CellState::Skipped {
        return rule.verdict(Outcome::Skipped, vec![format!("skipped: {reason}")]);
    }
    if cell.kind == "cost" {
        return rule.verdict(Outcome::None, Vec::new());
    }
    let Some((worst, thread)) = worst(cell.threads.iter().map(|t| (&t.verdict, t.stats.max_ns, t)))
    else {
        return not_measured(cell, rule);
    };
    let judged = judgements(cell);
    let mut because = worst.because.clone();
    if judged > 1 && !rule.plumbing {
        because.push(format!("the worst of {judged} judgements, one a thread: {}", name(thread)));
    }
    because.extend(cut_short(cell));
    Verdict {
        exceedances: cell
            .threads
            .iter()
            .fold(0, |sum: u64, t| sum.saturating_add(t.verdict.exceedances)),
        because,
        ..worst.clone()
    }
}

fn not_measured(cell: &Cell, rule: &Rule) -> Verdict {
    if rule.deadline_ns.is_none() {
        return rule.verdict(Outcome::None, Vec::new());
    }
    let why = match (&cell.reason, cell.state) {
        (Some(reason), _) => reason.as_str(),
        (None, CellState::Pending) => "the run ended before it",
        (None, _) => "no samples",
    };
    let plumbing = rule.plumbing.then(|| PLUMBING.to_owned());
    let because = plumbing.into_iter().chain([format!("not measured: {why}")]).collect();
    rule.verdict(Outcome::Inconclusive, because)
}

fn cut_short(cell: &Cell) -> Option<String> {
    let how = match cell.state {
        CellState::Interrupted => "interrupted",
        CellState::Failed => "ended by an error",
        CellState::Running | CellState::Recovered => "cut short",
        CellState::Pending | CellState::Complete | CellState::Skipped => return None,
    };
    let reason = cell.reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    Some(format!("the cell was {how}{reason}: judged by what was measured"))
}

/// Judges a run by its cells' verdicts, in the order FAIL, INCONCLUSIVE,
/// SKIPPED, PASS: the outcome, bound and reasons of the worst, the exceedances
/// of all, and how many judgements it is the worst of.
#[must_use]
pub fn judge_run(cells: &[Cell]) -> Verdict {
    let Some((worst, cell)) =
        worst(cells.iter().map(|cell| (&cell.verdict, cell.stats.max_ns, cell)))
    else {
        return Verdict::default();
    };
    let bounds = cells.iter().flat_map(|cell| &cell.threads);
    let bounds = bounds.filter(|thread| thread.verdict.upper_bound.is_some()).count();
    let mut because = worst.because.clone();
    if worst.outcome != Outcome::None && cells.len() > 1 {
        because.push(format!("the worst of {} cells: {}", cells.len(), cell.key));
    }
    if bounds > 1 {
        because.push(format!(
            "{bounds} judgements, one a thread and cell, each at {} confidence; \
             no correction for their number",
            words::confidence(worst.confidence)
        ));
    }
    let skipped = cells.iter().filter(|c| c.state == CellState::Skipped).count();
    if skipped > 0 && worst.outcome != Outcome::Skipped {
        because.push(format!("{skipped} of {} cells skipped", cells.len()));
    }
    Verdict {
        exceedances: cells
            .iter()
            .fold(0, |sum: u64, cell| sum.saturating_add(cell.verdict.exceedances)),
        because,
        ..worst.clone()
    }
}

/// The worst verdict and whose it is: among equal ones that of the largest sample, so that
/// the maximum in its reasons is the maximum of all; then the first.
fn worst<'a, T>(
    all: impl Iterator<Item = (&'a Verdict, Option<i64>, T)>,
) -> Option<(&'a Verdict, T)> {
    let rank = |v: &Verdict, max: Option<i64>| (v.outcome, v.upper_bound.unwrap_or(1.0), max);
    all.reduce(|a, b| if rank(b.0, b.1) > rank(a.0, a.1) { b } else { a })
        .map(|(verdict, _, whose)| (verdict, whose))
}

/// How many threads of a cell were judged.
fn judgements(cell: &Cell) -> usize {
    let threads = cell.threads.iter();
    threads.filter(|thread| thread.verdict.outcome != Outcome::None).count()
}

fn name(thread: &Thread) -> String {
    match thread.cpu {
        Some(cpu) => format!("thread {} on CPU {cpu}", thread.thread),
        None => format!("thread {}", thread.thread),
    }
}

#[cfg(test)]
mod tests;
