//! The judgement of a cell by its threads, and of a run by its cells.

use super::load::did_not_hold;
use super::rule::{PLUMBING, Rule};
use super::sentences;
use crate::schema::{Cell, CellState, Counter, Outcome, Thread, Verdict};
use crate::units::grouped;

/// Judges a cell by its threads' verdicts: the outcome, bound and reasons of the
/// worst, the exceedances of all. SKIPPED if a prerequisite was missing;
/// INCONCLUSIVE if there is a deadline and nothing was measured, or if a counter says that
/// something went wrong or the load did not hold, and nothing else says worse; costs are not judged. A cell that was
/// cut short is judged on what it measured, and says so.
#[must_use]
pub fn judge_cell(cell: &Cell, rule: &Rule) -> Verdict {
    let reason = cell.reason.as_deref().unwrap_or("no reason was recorded");
    if cell.state == CellState::Skipped {
        return rule.verdict(Outcome::Skipped, vec![format!("skipped: {reason}")]);
    }
    let Some(latency) = cell.latency() else {
        return rule.verdict(Outcome::None, went_wrong(cell).collect());
    };
    let threads = || latency.threads.iter();
    let Some((worst, thread)) = worst(threads().map(|t| (&t.verdict, t.stats.max, t))) else {
        return not_measured(cell, rule);
    };
    let judged = threads().filter(|thread| thread.verdict.outcome != Outcome::None).count();
    let mut against: Vec<String> = went_wrong(cell).collect();
    if worst.outcome != Outcome::None {
        against.extend(did_not_hold(cell));
    }
    let outcome = match worst.outcome {
        Outcome::Pass if !against.is_empty() => Outcome::Inconclusive,
        outcome => outcome,
    };
    let broke = latency.broke.as_ref();
    let outcome = broke.map_or(outcome, |_| outcome.max(Outcome::Break));
    // That a deadline was missed comes before why more may have gone unseen.
    let mut because = match outcome {
        Outcome::Break | Outcome::Fail => [&worst.because[..], &against].concat(),
        _ => [&against, &worst.because[..]].concat(),
    };
    if let Some(broke) = broke {
        let at = if outcome == Outcome::Break { 0 } else { 1.min(because.len()) };
        because.insert(at, sentences::broke(broke));
    }
    if judged > 1 && !rule.plumbing {
        because.push(format!("the worst of {judged} threads: {}", name(thread)));
    }
    because.extend(cut_short(cell));
    let exceedances = threads().fold(0, |sum: u64, t| sum.saturating_add(t.verdict.exceedances));
    Verdict { outcome, exceedances, because, ..worst.clone() }
}

/// What the cell's counters say against it, one sentence each.
fn went_wrong(cell: &Cell) -> impl Iterator<Item = String> {
    cell.bad_counters().map(|Counter { name, meaning, total, .. }| {
        format!("{} {name} ({meaning}): what was measured is not complete", grouped(*total))
    })
}

fn not_measured(cell: &Cell, rule: &Rule) -> Verdict {
    if rule.deadline_ns.is_none() {
        return rule.verdict(Outcome::None, Vec::new());
    }
    let why = match (&cell.reason, cell.state) {
        (Some(reason), _) => reason.as_str(),
        (None, CellState::Pending) => "the run ended before this cell",
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
    Some(format!("the cell was {how}{reason}: judged on what was measured"))
}

/// Judges a run by its cells' verdicts, in the order FAIL, BREAK,
/// INCONCLUSIVE, SKIPPED, PASS: the outcome, bound and reasons of the worst, the exceedances
/// of all, and how many judgements it is the worst of.
#[must_use]
pub fn judge_run(cells: &[Cell]) -> Verdict {
    let Some((worst, cell)) = worst(cells.iter().map(|cell| (&cell.verdict, cell.max_ns(), cell)))
    else {
        return Verdict::default();
    };
    let bounds = cells.iter().flat_map(Cell::threads);
    let bounds = bounds.filter(|thread| thread.verdict.upper_bound.is_some()).count();
    let mut because = worst.because.clone();
    if worst.outcome != Outcome::None && cells.len() > 1 {
        because.push(format!("the worst of {} cells: {}", cells.len(), cell.key));
    }
    if bounds > 1 {
        because.push(format!(
            "{bounds} tests (one per thread and cell), each at {}; not corrected for multiple \
             comparisons",
            sentences::confidence(worst.confidence)
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

/// The worst verdict and whose it is. Of equal verdicts the one with the largest sample is
/// taken, so that its reasons name the maximum of all; then the first.
fn worst<'a, T>(
    all: impl Iterator<Item = (&'a Verdict, Option<i64>, T)>,
) -> Option<(&'a Verdict, T)> {
    let rank = |v: &Verdict, max: Option<i64>| (v.outcome, v.upper_bound.unwrap_or(1.0), max);
    all.reduce(|a, b| if rank(b.0, b.1) > rank(a.0, a.1) { b } else { a })
        .map(|(verdict, _, whose)| (verdict, whose))
}

fn name(thread: &Thread) -> String {
    match thread.placement.cpu {
        Some(cpu) => format!("thread {} on CPU {cpu}", thread.thread),
        None => format!("thread {}", thread.thread),
    }
}
