//! Judges runs: while they are measured, as they are recorded, and by another rule than that of
//! their plan.

use crate::key::key_name;
use crate::plan::Plan;
use crate::run::{CellData, LoadedRun, SeriesData, ThreadData};
use crate::schema::{Cell, CellState, Condition, Run, RunState, Thread};
use crate::stats::{
    BySecond, Limits, behind_of, exceedances, late_again, note_drift, spells_of_seconds,
    tell_episodes,
};
use crate::units::human_ns;
use crate::verdict::{Rule, judge_cell, judge_run, judge_threads};

/// Judges a run while it is measured. What measures knows no verdict; it calls this.
pub trait Judge {
    /// A cell has its result, or will have none. `course` is what its seconds were, if it was
    /// measured.
    fn cell(&self, run: &mut Run, number: usize, course: Option<&BySecond>);

    /// The run or its cells have changed.
    fn run(&self, run: &mut Run);
}

/// Leaves the judgement to the readers of the record.
#[derive(Debug, Clone, Copy)]
pub struct Unjudged;

impl Judge for Unjudged {
    fn cell(&self, _: &mut Run, _: usize, _: Option<&BySecond>) {}

    fn run(&self, _: &mut Run) {}
}

/// Judges by the rule of the run's plan.
#[derive(Debug, Clone, Copy)]
pub struct ByPlan;

impl Judge for ByPlan {
    fn cell(&self, run: &mut Run, number: usize, course: Option<&BySecond>) {
        let rule = Rule::of(&run.plan, &run.board);
        let Some(cell) = run.cells.get_mut(number) else { return };
        if let Some(course) = course {
            note_drift(cell, course, rule.by_chance());
        }
        note_warm_up(cell, rule.deadline_ns);
        judge_one(cell, &rule);
    }

    fn run(&self, run: &mut Run) {
        let rule = Rule::of(&run.plan, &run.board);
        judge_cells(run, &rule);
        run.judged = true;
    }
}

/// Judges the cells of a record that have their result and the run, without its recordings.
pub fn judge_record(run: &mut Run) {
    for number in 0..run.cells.len() {
        if !matches!(run.cells[number].state, CellState::Pending | CellState::Running) {
            ByPlan.cell(run, number, None);
        }
    }
    ByPlan.run(run);
}

/// Judges a run by its own plan, if what measured it has not; cells without a result stay as they
/// are.
pub fn judge_recorded(loaded: &mut LoadedRun) {
    if loaded.run.judged {
        return;
    }
    let deadline_ns = loaded.run.plan.deadline_ns;
    let rule = Rule::of(&loaded.run.plan, &loaded.run.board);
    for (cell, data) in loaded.run.cells.iter_mut().zip(&loaded.cells) {
        note_drift(cell, &BySecond::of(data, deadline_ns), rule.by_chance());
    }
    judge_record(&mut loaded.run);
    // A run that was cut short is judged once it is rebuilt.
    loaded.run.judged = loaded.run.state != RunState::Running;
}

fn judge_one(cell: &mut Cell, rule: &Rule) {
    if let Some(latency) = cell.latency_mut() {
        judge_threads(latency, rule);
    }
    cell.verdict = judge_cell(cell, rule);
}

/// Notes that the warm-up, which is part of no number, was later than the deadline.
fn note_warm_up(cell: &mut Cell, deadline_ns: Option<u64>) {
    const ID: &str = "warmup-later-than-deadline";
    let Some(max) = cell.latency().and_then(|latency| latency.warmup_max_ns) else { return };
    let late = |deadline: u64| u64::try_from(max).is_ok_and(|max| max > deadline);
    cell.conditions.retain(|condition| condition.id != ID);
    if deadline_ns.is_some_and(late) {
        let max = human_ns(max);
        let text = format!("the warm-up had {max}, later than the deadline: no result contains it");
        cell.conditions.push(Condition { id: ID.to_owned(), text });
    }
}

/// Judges a run as if `plan` had been its plan. For a new deadline, exceedances are counted in
/// the recorded bins. A bin that contains the deadline counts as a whole, so that they are
/// never too few.
pub fn judge_again(loaded: &mut LoadedRun, plan: Plan) {
    let same_deadline = plan.deadline_ns == loaded.run.plan.deadline_ns;
    let rule = Rule::of(&plan, &loaded.run.board);
    for (cell, data) in loaded.run.cells.iter_mut().zip(&loaded.cells) {
        if !same_deadline {
            loaded.damage.extend(count_again(cell, data, plan.deadline_ns));
            late_again(cell, data, plan.deadline_ns);
            // Other seconds are late.
            note_drift(cell, &BySecond::of(data, plan.deadline_ns), rule.by_chance());
        } else if cell.latency().is_some_and(|latency| latency.episodes.is_none()) {
            tell_in_seconds(cell, data, plan.deadline_ns);
        }
        judge_one(cell, &rule);
    }
    loaded.run.plan = plan;
    judge_cells(&mut loaded.run, &rule);
}

/// Judges a run by its cells.
pub fn judge_cells(run: &mut Run, rule: &Rule) {
    run.verdict = judge_run(run.state, &run.cells, &run.plan.cells, rule);
}

/// Counts what exceeded the deadline again; returns the threads for which it cannot.
fn count_again(cell: &mut Cell, data: &CellData, deadline_ns: Option<u64>) -> Vec<String> {
    let nothing = ThreadData::default();
    let mut unknown = Vec::new();
    let key = key_name(&cell.key);
    let Some(latency) = cell.latency_mut() else {
        return unknown;
    };
    latency.episodes = None;
    for thread in &mut latency.threads {
        let recorded = usize::try_from(thread.thread).ok().and_then(|n| data.threads.get(n));
        let recorded = recorded.unwrap_or(&nothing).primary();
        let exceeding = |deadline| exceeding(thread, recorded, latency.interval_ns, deadline);
        let k = deadline_ns.map_or(0, exceeding);
        thread.verdict.exceedances = k;
        thread.episodes = None;
        if k > 0 && recorded.histogram.is_none() && recorded.blocks.is_empty() {
            unknown.push(format!(
                "{key}: thread {}: its samples are lost: that the deadline was exceeded is known, \
                 how often is not",
                thread.thread
            ));
        }
    }
    tell_in_seconds(cell, data, deadline_ns);
    unknown
}

/// Records late episodes by the seconds in which anything was late.
fn tell_in_seconds(cell: &mut Cell, data: &CellData, deadline_ns: Option<u64>) {
    if deadline_ns.is_none() {
        return;
    }
    let interval = cell.interval_ns().unwrap_or(0);
    let limits = Limits { interval, ..Limits::of_deadline(deadline_ns) };
    let nothing = ThreadData::default();
    let of_thread = |thread: &Thread| {
        let recorded = usize::try_from(thread.thread).ok().and_then(|n| data.threads.get(n));
        spells_of_seconds(recorded.unwrap_or(&nothing).primary(), thread.thread, &limits)
    };
    let spells = cell.threads().iter().map(of_thread).collect();
    tell_episodes(cell, spells, true);
}

/// Releases later than the deadline.
fn exceeding(
    thread: &Thread,
    recorded: &SeriesData,
    interval_ns: Option<u64>,
    deadline_ns: u64,
) -> u64 {
    let deadline = i64::try_from(deadline_ns).unwrap_or(i64::MAX);
    // The maximum is exact, and missed releases are never later than the start before them.
    if thread.stats.max.is_none_or(|max| max <= deadline) {
        return 0;
    }
    let mut moments = recorded.moments();
    moments.exceeded = match &recorded.histogram {
        Some(histogram) => histogram.at_most_above(deadline),
        None => recorded.blocks.iter().map(|block| block.above(deadline)).sum(),
    }
    .max(1);
    let missed = behind_of(recorded, interval_ns);
    exceedances(&moments, missed.as_deref(), deadline_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Latency, What};

    #[test]
    fn a_warm_up_later_than_the_deadline_is_a_condition() {
        let noted = |max, deadline| {
            let what = What::Latency(Latency { warmup_max_ns: max, ..Latency::default() });
            let mut cell = Cell::new(String::new(), String::new(), "none".to_owned(), 1, what);
            note_warm_up(&mut cell, deadline);
            note_warm_up(&mut cell, deadline);
            cell.conditions.into_iter().map(|condition| condition.id).collect::<Vec<_>>()
        };
        assert_eq!(noted(Some(6_999_000), Some(6_000_000)), ["warmup-later-than-deadline"]);
        for (max, deadline) in [
            (Some(6_000_000), Some(6_000_000)),
            (None, Some(1)),
            (Some(-5), Some(1)),
            (Some(9), None),
        ] {
            assert_eq!(noted(max, deadline), [""; 0], "{max:?} {deadline:?}");
        }
    }
}
