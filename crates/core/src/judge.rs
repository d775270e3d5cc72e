//! Judges a recorded run by another rule than that of its plan.

use crate::key::key_name;
use crate::plan::Plan;
use crate::run::{CellData, LoadedRun, SeriesData, ThreadData};
use crate::schema::{Cell, Run, Thread};
use crate::stats::{
    BySecond, Limits, behind_of, exceedances, late_again, note_drift, spells_of_seconds,
    tell_episodes,
};
use crate::verdict::{Rule, judge_cell, judge_run, judge_threads};

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
        if let Some(latency) = cell.latency_mut() {
            judge_threads(latency, &rule);
        }
        cell.verdict = judge_cell(cell, &rule);
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
