//! The judgement of a cell by its threads.

use super::broke::{broke, broke_by_stop};
use super::evidence::Evidence;
use super::head;
use super::load::did_not_hold;
use super::rule::{PLUMBING, Rule};
use super::sentences;
use super::thread::judge_thread;
use crate::schema::{
    Broke, Cell, CellState, Counter, Latency, NO_LEGS, Outcome, Tells, Thread, Verdict,
};
use crate::stats::observed_share;
use crate::units::{grouped, human_ns};

/// Judges a cell by its threads' verdicts: the outcome and bound of the worst, the
/// exceedances of all. INCONCLUSIVE at least, with a deadline or without, if the legs of its samples
/// are not known; SKIPPED if a prerequisite was missing; BREAK if a sample was above the
/// break value and no deadline was missed; INCONCLUSIVE if there is a deadline and nothing was
/// measured, or if something is said against the cell and nothing else says worse: a counter,
/// that its load did not hold, or that it did not reach its end. FAIL if a counter says that what is
/// never to happen has happened. Costs are not judged otherwise.
///
/// The first reason is such a counter, else how much longer to measure if that alone is missing, else
/// the largest latency; the next one the count over all
/// threads.
#[must_use]
pub fn judge_cell(cell: &Cell, rule: &Rule) -> Verdict {
    let (verdict, why) = reasons(cell, rule);
    let judged = cell.state != CellState::Skipped && !rule.plumbing;
    let head = judged.then(|| head::of_cell(cell, &verdict, rule)).flatten();
    let mut because: Vec<String> = faults(cell).collect();
    because.extend(head::too_little(&verdict, &why).cloned());
    because.extend(head);
    if judged {
        because.extend(head::counts([cell], rule));
    }
    head::add(&mut because, why);
    Verdict { because, ..verdict }
}

/// The verdict of a cell without its first sentences, and the reasons behind it.
pub(super) fn reasons(cell: &Cell, rule: &Rule) -> (Verdict, Vec<String>) {
    let rule = &rule.in_cell(cell);
    let reason = cell.reason.as_deref().unwrap_or("no reason was recorded");
    if cell.state == CellState::Skipped {
        return (rule.verdict(Outcome::Skipped, Vec::new()), vec![reason.to_owned()]);
    }
    let Some(latency) = cell.latency() else {
        let against = faults(cell).chain(went_wrong(cell)).collect();
        return (rule.verdict(at_least(Outcome::None, cell), Vec::new()), against);
    };
    let threads = || latency.threads.iter();
    let Some(thread) = worst(threads()) else {
        return not_measured(cell, rule);
    };
    let together;
    let worst = if rule.judges_together() && latency.stats.samples > 0 {
        together = judge_together(latency, rule);
        &together
    } else {
        &thread.verdict
    };
    let mut against: Vec<String> = without_legs(cell)
        .chain(broke_by_stop(cell).map(sentences::broke_by_stop))
        .chain(silent(cell))
        .chain(went_wrong(cell))
        .chain(cut_short(cell))
        .collect();
    if worst.outcome != Outcome::None {
        against.extend(did_not_hold(cell));
    }
    let broke = broke(cell);
    let outcome = match worst.outcome {
        Outcome::Pass if !against.is_empty() => Outcome::Inconclusive,
        outcome if without_legs(cell).next().is_some() || broke_by_stop(cell).is_some() => {
            outcome.max(Outcome::Inconclusive)
        }
        outcome => outcome,
    };
    let outcome = at_least(broke.map_or(outcome, |_| outcome.max(Outcome::Break)), cell);
    // That a deadline was missed comes before why more may have gone unseen.
    // A BREAK by the largest sample is told by the first sentence.
    let told = |broke: &Broke| outcome == Outcome::Break && Some(broke.latency_ns) == cell.max_ns();
    let mut why: Vec<String> =
        broke.filter(|broke| !told(broke)).map(sentences::broke).into_iter().collect();
    why.extend(faults(cell));
    why.extend(if outcome == Outcome::Fail {
        [&worst.because[..], &against].concat()
    } else {
        [&against, &worst.because[..]].concat()
    });
    let judged = threads().filter(|thread| thread.verdict.outcome != Outcome::None).count();
    if judged > 1 && !rule.plumbing && !rule.judges_together() {
        let has_largest = thread.stats.max == cell.max_ns();
        let which = sentences::which(judged, "threads", has_largest, outcome);
        why.push(format!("{which}: {}", name(thread)));
    }
    why.extend(late_warm_up(latency, rule));
    let exceedances = threads().fold(0, |sum: u64, t| sum.saturating_add(t.verdict.exceedances));
    (Verdict { outcome, exceedances, because: Vec::new(), ..worst.clone() }, why)
}

/// Judges all threads of a cell by their late episodes, which several of them may share.
fn judge_together(latency: &Latency, rule: &Rule) -> Verdict {
    let exceedances =
        latency.threads.iter().fold(0, |sum: u64, t| sum.saturating_add(t.verdict.exceedances));
    judge_thread(
        &Evidence {
            stats: &latency.stats,
            exceedances,
            interval_ns: latency.interval_ns,
            primary: &latency.primary,
            episodes: latency.episodes.as_ref(),
            observed_share: observed_share(latency),
        },
        rule,
    )
}

/// By what the worst of several is found. Of those that pass it is the one that claims least, since
/// its claim is that of all; of other equal verdicts the one with the largest sample, so that its
/// reasons are those of the maximum; then the first.
pub(super) fn rank(verdict: &Verdict, max_ns: Option<i64>) -> (Outcome, f64, Option<i64>) {
    let bound = match verdict.outcome {
        Outcome::Pass => verdict.episode_rate_upper.or(verdict.upper_bound),
        _ => None,
    };
    (verdict.outcome, bound.unwrap_or(f64::INFINITY), max_ns)
}

/// The thread with the worst verdict.
fn worst<'a>(threads: impl Iterator<Item = &'a Thread>) -> Option<&'a Thread> {
    let rank = |thread: &Thread| rank(&thread.verdict, thread.stats.max);
    threads.reduce(|a, b| if rank(b) > rank(a) { b } else { a })
}

/// That a thread of a cell has no sample: what it would have seen is not known. A probe of gaps has
/// none on a CPU that nothing disturbed.
pub(super) fn silent(cell: &Cell) -> impl Iterator<Item = String> {
    let gaps = cell.params().contains_key("margin");
    let silent = cell.threads().iter().filter(move |thread| !gaps && thread.stats.samples == 0);
    silent.take(1).map(|thread| format!("{} has no sample: nothing is known of it", name(thread)))
}

/// What the cell's counters say against what was measured, one sentence each.
pub(super) fn went_wrong(cell: &Cell) -> impl Iterator<Item = String> {
    cell.bad_counters().filter(|counter| counter.tells == Tells::Loss).map(
        |Counter { name, meaning, total, .. }| {
            format!("{} {name} ({meaning}): what was measured is not complete", grouped(*total))
        },
    )
}

/// That what a probe of legs is for was not found, one sentence each.
fn without_legs(cell: &Cell) -> impl Iterator<Item = String> {
    let said = cell.conditions.iter().filter(|condition| condition.id == NO_LEGS);
    said.map(|condition| condition.text.clone())
}

/// What was never to happen and did, one sentence each.
pub(super) fn faults(cell: &Cell) -> impl Iterator<Item = String> {
    let stopped = match was_stopped(cell) {
        true => ", which may have come of the time in which the process was stopped: run it again",
        false => "",
    };
    cell.bad_counters().filter(|counter| counter.tells == Tells::Fault).map(
        move |Counter { name, meaning, total, .. }| {
            format!("{} {name} ({meaning}){stopped}", grouped(*total))
        },
    )
}

/// Whether samples are left out since the process was stopped. Counters have no time: what they count
/// cannot be left out with these.
fn was_stopped(cell: &Cell) -> bool {
    cell.stops.iter().any(|stop| stop.length_ns.is_some())
}

/// The outcome, but FAIL if something happened that is never to.
fn at_least(outcome: Outcome, cell: &Cell) -> Outcome {
    match faults(cell).next() {
        None => outcome,
        Some(_) if was_stopped(cell) => outcome.max(Outcome::Inconclusive),
        Some(_) => Outcome::Fail,
    }
}

fn not_measured(cell: &Cell, rule: &Rule) -> (Verdict, Vec<String>) {
    let why = match (&cell.reason, cell.state) {
        (Some(reason), _) => reason.as_str(),
        (None, CellState::Pending) => "the run ended before this cell",
        (None, _) => "no samples",
    };
    let outcome = match rule.deadline_ns {
        None => Outcome::None,
        Some(_) => Outcome::Inconclusive,
    };
    let plumbing = rule.plumbing.then(|| PLUMBING.to_owned());
    let because = plumbing.into_iter().chain([format!("not measured: {why}")]).collect();
    (rule.verdict(outcome, Vec::new()), because)
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

/// The warm-up is part of no number, but a latency seen there was seen.
fn late_warm_up(latency: &Latency, rule: &Rule) -> Option<String> {
    let max = latency.warmup_max_ns?;
    let deadline = rule.deadline_ns.filter(|_| !rule.plumbing)?;
    (u64::try_from(max).is_ok_and(|max| max > deadline)).then(|| {
        format!(
            "the warm-up, which does not count, had {} > deadline {}: a longer --warmup, or a \
             longer run, shows whether this comes again",
            human_ns(max),
            sentences::deadline(deadline)
        )
    })
}

fn name(thread: &Thread) -> String {
    match thread.placement.cpu {
        Some(cpu) => format!("thread {} on CPU {cpu}", thread.thread),
        None => format!("thread {}", thread.thread),
    }
}
