//! Judges runs: while they are measured, as they are recorded, and by another rule than that of
//! their plan.

use std::ops::RangeInclusive;

use crate::block::Spell;
use crate::key::key_name;
use crate::plan::Plan;
use crate::run::{CellData, LoadedRun, SeriesData, ThreadData};
use crate::schema::{
    Cell, CellState, Condition, EPISODES_JOINED, Episodes, Run, RunState, Thread, Verdict,
};
use crate::stats::{
    BySecond, LEAST_SECONDS_LATE, Limits, behind_of, exceedances, late_again, note_drift,
    spells_of_seconds, spells_on_disk, tell_batches, tell_episodes,
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
        judge_measured(cell, course, &rule);
    }

    fn run(&self, run: &mut Run) {
        let rule = Rule::of(&run.plan, &run.board);
        judge_cells(run, &rule);
        run.judged = true;
    }
}

/// Judges a record by its plan, without its recordings, and believes no verdict in it: neither one
/// of another version nor one that somebody has changed. Cells that have no result yet have no
/// verdict.
pub fn judge_record(run: &mut Run) {
    for number in 0..run.cells.len() {
        let cell = &mut run.cells[number];
        agree_with_samples(cell, run.plan.deadline_ns);
        if has_result(cell, run.state) {
            ByPlan.cell(run, number, None);
        } else {
            cell.verdict = Verdict::default();
        }
    }
    ByPlan.run(run);
}

/// Whether a cell has a result, or will have none: one of a run that was cut short is rebuilt first.
fn has_result(cell: &Cell, state: RunState) -> bool {
    match cell.state {
        CellState::Pending => false,
        CellState::Running => state != RunState::Running,
        _ => true,
    }
}

/// Judges a run by its own plan, whatever its record says of that.
pub fn judge_recorded(loaded: &mut LoadedRun) {
    let deadline_ns = loaded.run.plan.deadline_ns;
    let rule = Rule::of(&loaded.run.plan, &loaded.run.board);
    for (cell, data) in loaded.run.cells.iter_mut().zip(&loaded.cells) {
        // What judges while it measures has noted drift by the seconds as they were measured.
        if !loaded.run.judged {
            note_drift(cell, &BySecond::of(data, deadline_ns), rule.by_chance());
        }
        if lacks_episodes(cell) {
            tell_in_seconds(cell, data, deadline_ns);
        } else if lacks_batches(cell, &loaded.run.plan) {
            tell_batches(cell, all_spells(data));
        }
        if has_result(cell, loaded.run.state) {
            loaded.damage.extend(agree_with_recordings(cell, data, deadline_ns));
        }
    }
    judge_record(&mut loaded.run);
    // A run that was cut short is judged once it is rebuilt.
    loaded.run.judged = loaded.run.state != RunState::Running;
}

/// Makes what a verdict rests on agree with the samples that are shown beside it: the maximum of a
/// cell is the largest of its threads, something was late exactly if the maximum is above the
/// deadline, and a cell with samples was measured.
pub(crate) fn agree_with_samples(cell: &mut Cell, deadline_ns: Option<u64>) {
    if cell.samples() > 0 && matches!(cell.state, CellState::Pending | CellState::Skipped) {
        cell.state = CellState::Recovered;
    }
    let Some(latency) = cell.latency_mut() else { return };
    for thread in latency.threads.iter_mut().filter(|thread| thread.stats.samples == 0) {
        thread.stats.max = None;
    }
    if !latency.threads.is_empty() {
        latency.stats.max = latency.threads.iter().filter_map(|thread| thread.stats.max).max();
    }
    let late = |max: Option<i64>| {
        let max = max.and_then(|max| u64::try_from(max).ok());
        max.zip(deadline_ns).is_some_and(|(max, deadline)| max > deadline)
    };
    let without = |episodes: &mut Episodes| {
        let Episodes { episode_gap_ns, observed_ns, most_observed_ns, .. } = *episodes;
        *episodes =
            Episodes { episode_gap_ns, observed_ns, most_observed_ns, ..Episodes::default() };
    };
    for thread in &mut latency.threads {
        let exceedances = thread.verdict.exceedances;
        thread.verdict = Verdict::default();
        if late(thread.stats.max) {
            thread.verdict.exceedances = exceedances.max(1);
        } else {
            thread.episodes.iter_mut().for_each(without);
        }
    }
    if !late(latency.stats.max) {
        latency.episodes.iter_mut().for_each(without);
    }
}

/// Counts again how many were late, and in which episodes, if a thread's recordings cannot hold the
/// recorded number, as after its deadline was changed; returns the threads of which it cannot be told.
pub(crate) fn agree_with_recordings(
    cell: &mut Cell,
    data: &CellData,
    deadline_ns: Option<u64>,
) -> Vec<String> {
    let Some(deadline_ns) = deadline_ns else { return Vec::new() };
    let interval_ns = cell.interval_ns();
    let is_possible = |thread: &Thread| {
        let recorded = usize::try_from(thread.thread).ok().and_then(|n| data.threads.get(n));
        recorded.is_none_or(|recorded| {
            let possible = possible(thread, recorded.primary(), interval_ns, deadline_ns);
            possible.is_none_or(|possible| possible.contains(&thread.verdict.exceedances))
        })
    };
    match cell.threads().iter().all(is_possible) {
        true => Vec::new(),
        false => count_again(cell, data, Some(deadline_ns)),
    }
}

/// How many releases of a thread can have been later than the deadline: the bin that contains it may
/// count or not. `None` if not all of its samples were recorded.
fn possible(
    thread: &Thread,
    recorded: &SeriesData,
    interval_ns: Option<u64>,
    deadline_ns: u64,
) -> Option<RangeInclusive<u64>> {
    let deadline = i64::try_from(deadline_ns).unwrap_or(i64::MAX);
    let blocks = &recorded.blocks;
    let (all, surely): (u64, u64) = match &recorded.histogram {
        Some(histogram) => histogram.bins().fold((0_u64, 0_u64), |(all, surely), bin| {
            let late = if bin.low > deadline { bin.count } else { 0 };
            (all.saturating_add(bin.count), surely.saturating_add(late))
        }),
        None => (
            blocks.iter().map(|block| block.moments.count).fold(0, u64::saturating_add),
            blocks.iter().map(|block| block.surely_above(deadline)).fold(0, u64::saturating_add),
        ),
    };
    let missed = behind_of(recorded, interval_ns);
    if all != thread.stats.samples || (missed.is_none() && thread.stats.missed > 0) {
        return None;
    }
    Some(surely..=exceeding(thread, recorded, interval_ns, deadline_ns))
}

/// Judges a cell that has its result, or will have none, by its numbers: as they were measured, as
/// they are recorded or rebuilt, and by another rule. `course` is what its seconds were, if they are
/// to be looked at.
pub(crate) fn judge_measured(cell: &mut Cell, course: Option<&BySecond>, rule: &Rule) {
    let rule = &rule.in_cell(cell);
    if let Some(course) = course {
        note_drift(cell, course, rule.by_chance());
    }
    note_warm_up(cell, rule.deadline_ns);
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
            // What was said of the spells of another deadline.
            cell.conditions.retain(|condition| condition.id != EPISODES_JOINED);
        } else if lacks_episodes(cell) {
            tell_in_seconds(cell, data, plan.deadline_ns);
        } else if lacks_batches(cell, &plan) {
            tell_batches(cell, all_spells(data));
        }
        agree_with_samples(cell, plan.deadline_ns);
        if has_result(cell, loaded.run.state) {
            // Other seconds are late.
            let course = (!same_deadline).then(|| BySecond::of(data, plan.deadline_ns));
            judge_measured(cell, course.as_ref(), &rule);
        }
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

/// Whether a cell has samples, and nothing says in which episodes any were late: there was no
/// deadline, or the record is older than they are.
fn lacks_episodes(cell: &Cell) -> bool {
    cell.latency().is_some_and(|latency| latency.stats.samples > 0 && latency.episodes.is_none())
}

/// Whether a share of late activations is to be judged, and `run.json` has no batches although
/// enough seconds were late: it is older than they are, or the lateness was one spell.
fn lacks_batches(cell: &Cell, plan: &Plan) -> bool {
    let episodes = cell.latency().and_then(|latency| latency.episodes.as_ref());
    let lacks = |of: &Episodes| {
        of.batches.is_none() && !of.in_seconds && of.seconds_late >= LEAST_SECONDS_LATE
    };
    plan.tolerate.is_some() && episodes.is_some_and(lacks)
}

/// Whether the recordings of a run tell something that its judgement needs and `run.json` lacks, or
/// may contradict: of a soft deadline, how many were late.
#[must_use]
pub fn needs_recordings(run: &Run) -> bool {
    let soft = run.plan.tolerate.is_some() || run.plan.tolerate_episodes.is_some();
    let is_late = |cell: &Cell| {
        let max = cell.max_ns().and_then(|max| u64::try_from(max).ok());
        max.zip(run.plan.deadline_ns).is_some_and(|(max, deadline)| max > deadline)
    };
    let needs = |cell: &Cell| {
        lacks_episodes(cell) || lacks_batches(cell, &run.plan) || (soft && is_late(cell))
    };
    run.plan.deadline_ns.is_some() && run.cells.iter().any(needs)
}

/// The recorded spells of all threads of a cell.
fn all_spells(data: &CellData) -> Vec<Spell> {
    let each = (0..).zip(&data.threads);
    each.flat_map(|(thread, data)| spells_on_disk(data, thread)).collect()
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
mod tests;
