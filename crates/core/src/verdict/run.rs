//! The judgement of a run by its cells.

use super::cell::{faults, rank, reasons};
use super::head;
use super::rule::{PLUMBING, Rule};
use super::sentences;
use crate::plan::CellPlan;
use crate::schema::{Cell, CellState, Outcome, RunState, Verdict};

/// Judges a run by its cells, in the order FAIL, BREAK, INCONCLUSIVE, SKIPPED, PASS: the
/// outcome and bound of the worst, the exceedances of all. A run that did not reach the end
/// of its plan is never a PASS: what is missing may be what would have failed. A cell that the plan
/// wants only where it is available does not count if it is SKIPPED.
///
/// The first reason is a counter of the worst cell that is never to be above zero, else how much
/// longer to measure if that is missing, else the latest sample of the run; then the count over all
/// threads, and the reasons of the worst cell, with its name if there are several.
#[must_use]
pub fn judge_run(state: RunState, cells: &[Cell], plan: &[CellPlan], rule: &Rule) -> Verdict {
    let counts = |(number, cell): &(usize, &Cell)| match cell.state {
        CellState::Pending => false,
        CellState::Skipped => plan.get(*number).is_none_or(|planned| !planned.available),
        _ => true,
    };
    let started: Vec<&Cell> =
        cells.iter().enumerate().filter(counts).map(|(_, cell)| cell).collect();
    let judged: Vec<_> = started.iter().map(|cell| (*cell, reasons(cell, rule))).collect();
    let exceedances = judged
        .iter()
        .fold(0, |sum: u64, (_, (verdict, _))| sum.saturating_add(verdict.exceedances));
    let rank = |(cell, (verdict, _)): &(&Cell, (Verdict, Vec<String>))| {
        rank(verdict, head::latest_ns(cell, rule))
    };
    let worst = judged.into_iter().reduce(|a, b| if rank(&b) > rank(&a) { b } else { a });
    let Some((cell, (worst, why))) = worst else {
        return nothing(state, cells, rule);
    };
    let unfinished = unfinished(state, cells);
    let outcome = match worst.outcome {
        Outcome::Pass if unfinished.is_some() => Outcome::Inconclusive,
        outcome => outcome,
    };
    let episodes = started
        .iter()
        .filter_map(|cell| cell.latency()?.episodes.as_ref())
        .fold(0, |sum: u64, one| sum.saturating_add(one.count));
    let verdict = Verdict { outcome, exceedances, episodes, because: Vec::new(), ..worst };
    let mut because: Vec<String> = faults(cell).collect();
    if rule.plumbing && rule.deadline_ns.is_some() {
        because.push(PLUMBING.to_owned());
    } else {
        let longer = head::too_little(&verdict, &why).filter(|_| unfinished.is_none());
        because.extend(longer.map(|longer| match started.len() {
            1 => longer.clone(),
            _ => format!("{}: {longer}", head::cell_name(cell)),
        }));
        because.extend(head::of_run(&started, &verdict, rule));
        because.extend(head::counts(started.iter().copied(), rule));
    }
    if matches!(outcome, Outcome::Inconclusive | Outcome::Skipped) {
        because.extend(unfinished);
    }
    if started.len() == 1 {
        head::add(&mut because, why);
    } else {
        let latest = head::latest(&started, rule);
        let has_largest = latest.is_some_and(|latest| std::ptr::eq(latest, cell));
        let which = sentences::which(started.len(), "cells", has_largest, outcome);
        because.extend(of_one(cell, &which, outcome, head::untold(&because, why)));
    }
    because.extend(several(&started, &verdict, rule));
    let skipped = cells.iter().filter(|cell| cell.state == CellState::Skipped).count();
    if skipped > 0 && outcome != Outcome::Skipped {
        because.push(format!("{skipped} of {} cells skipped", cells.len()));
    }
    because.extend(repeat(state, &started, rule));
    Verdict { because, ..verdict }
}

/// What is said of the one of several cells that the verdict rests on, with its name.
fn of_one(cell: &Cell, which: &str, outcome: Outcome, why: Vec<String>) -> Option<String> {
    let name = head::cell_name(cell);
    let name = match outcome {
        Outcome::None => name,
        _ => format!("{which}, {name}"),
    };
    match why.is_empty() {
        true => (outcome != Outcome::None).then_some(name),
        false => Some(format!("{name}: {}", why.join("; "))),
    }
}

/// A run without a cell that started.
fn nothing(state: RunState, cells: &[Cell], rule: &Rule) -> Verdict {
    match rule.deadline_ns {
        Some(_) if !cells.is_empty() => {
            rule.verdict(Outcome::Inconclusive, unfinished(state, cells).into_iter().collect())
        }
        _ => rule.verdict(Outcome::None, Vec::new()),
    }
}

/// That a run did not reach the end of its plan.
fn unfinished(state: RunState, cells: &[Cell]) -> Option<String> {
    let how = match state {
        RunState::Complete if cells.iter().all(|cell| cell.state != CellState::Pending) => {
            return None;
        }
        RunState::Complete => "the run did not reach all of its plan",
        RunState::Running => "the run did not reach its end",
        RunState::Interrupted => "the run was interrupted",
        RunState::Failed => "an error ended the run",
    };
    let pending = cells.iter().filter(|cell| cell.state == CellState::Pending).count();
    Some(match pending {
        0 => how.to_owned(),
        _ => format!("{how}: {pending} of {} cells were not started", cells.len()),
    })
}

/// What several judgements mean for the confidence. A PASS needs each of them to pass, which
/// is an intersection-union test: its level is that of one. Of many thousand threads with a
/// soft deadline, one may fail by chance.
fn several(cells: &[&Cell], verdict: &Verdict, rule: &Rule) -> Option<String> {
    let (bounds, of) = if rule.counts_episodes() {
        let judged = |cell: &&&Cell| cell.latency().is_some_and(|l| l.stats.samples > 0);
        (cells.iter().filter(judged).count(), "one a cell")
    } else {
        let threads = cells.iter().flat_map(|cell| cell.threads());
        let judged = threads.filter(|thread| thread.verdict.upper_bound.is_some());
        (judged.count(), "one a thread and cell")
    };
    let level = sentences::confidence(rule.confidence);
    match verdict.outcome {
        _ if bounds < 2 => None,
        Outcome::Pass => Some(format!(
            "each of {bounds} judgements ({of}) passed, so {level} holds for all of them together"
        )),
        Outcome::Fail if !rule.is_hard() => Some(format!(
            "one of {bounds} judgements ({of}), each at {level}: not corrected for their number"
        )),
        _ => None,
    }
}

/// What the maximum is worth (L0). The maximum of all threads and cells is exceeded in a repeat
/// of all of them with a chance of at most 50 %, if runs are exchangeable; that of one thread is not. A
/// warm-up with a larger latency shows that they are not, and so does drift in a cell with the
/// maximum.
fn repeat(state: RunState, cells: &[&Cell], rule: &Rule) -> Option<String> {
    let max = cells.iter().filter_map(|cell| cell.max_ns()).max()?;
    let warmup = cells.iter().filter_map(|cell| cell.latency()?.warmup_max_ns).max();
    let drifted = cells.iter().any(|cell| cell.max_ns() == Some(max) && cell.drifted());
    let exchangeable = warmup.is_none_or(|warmup| warmup <= max) && !drifted;
    (rule.by_chance() && state == RunState::Complete && exchangeable).then(|| {
        "if nothing changes, the same run again exceeds this max with a chance of at most 50 %"
            .to_owned()
    })
}
