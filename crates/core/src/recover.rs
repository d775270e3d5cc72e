//! Rebuilds a run that was cut short from its files alone.
//!
//! Cells that have ended according to `run.json` stay unchanged. For the cell that was under
//! way, the finished blocks give exact counts, extremes, mean and deviation up to the last of
//! them, and quantiles to the width of their coarse bins. The names of the load's counters
//! have been in `run.json` since the cell started.

use std::collections::BTreeMap;

use crate::block::BLOCK_NS;
use crate::judge::{agree_with_recordings, agree_with_samples, judge_measured};
use crate::key::key_name;
use crate::run::{CellData, LoadedRun, ThreadData};
use crate::schema::{Cell, CellState, Condition, LoadWork, Thread};
use crate::stats::{
    BySecond, Limits, assemble, measured_by_blocks, missed_by_late, note_stops, phases_by_blocks,
    spells_on_disk, tell_episodes,
};
use crate::verdict::Rule;

/// Rebuilds the cells that were under way, and judges the run by the result.
pub fn rebuild(loaded: &mut LoadedRun) {
    let rule = Rule::of(&loaded.run.plan, &loaded.run.board);
    // A virtual board's console.log gives the reason, unless it was ended with punctual.
    let what =
        if loaded.run.board.lab.is_some() { "the guest ended" } else { "punctual was killed" };
    for (cell, data) in loaded.run.cells.iter_mut().zip(&mut loaded.cells) {
        if !matches!(cell.state, CellState::Pending | CellState::Running) {
            continue;
        }
        let has_blocks = |thread: &ThreadData| !thread.primary().blocks.is_empty();
        if cell.latency().is_some() && data.threads.iter().any(has_blocks) {
            cell.reason = Some(what.to_owned());
            rebuild_cell(&rule, cell, data, &mut loaded.damage);
        } else {
            cell.state = CellState::Pending;
            cell.reason = Some(if cell.cost().is_some() {
                format!("{what} before the cell's result")
            } else {
                format!("{what}, and no block of the cell can be read")
            });
        }
    }
    crate::judge::judge_cells(&mut loaded.run, &rule);
    loaded.run.judged = true;
}

fn rebuild_cell(rule: &Rule, cell: &mut Cell, data: &mut CellData, damage: &mut Vec<String>) {
    cell.state = CellState::Recovered;
    cell.stops = data.stops.values().cloned().collect();
    note_stops(cell);
    let interval = cell.interval_ns().unwrap_or(0);
    let limits = Limits { interval, ..Limits::of_deadline(rule.deadline_ns) };
    let mut later = Vec::new();
    for (number, thread) in data.threads.iter_mut().enumerate() {
        let missed = missed_by_late(thread.series_mut(0), &limits);
        if missed.is_none() {
            cell.conditions.push(late_incomplete(number));
        }
        later.push(missed.unwrap_or(0));
    }
    if let Some(latency) = cell.latency_mut() {
        let measured =
            data.threads.iter().zip(&later).enumerate().map(|(number, (data, later))| {
                let thread = latency.threads.get(number).cloned();
                measured_by_blocks(thread.unwrap_or_else(|| unknown(number)), data, *later)
            });
        let measured = measured.collect();
        assemble(latency, measured);
    }
    let blocks = data.threads.iter().flat_map(|thread| &thread.primary().blocks);
    let last = blocks.map(|block| block.index).max();
    let until = last.map_or(0, |last| last.saturating_add(1).saturating_mul(BLOCK_NS));
    cell.duration_ns = until.min(cell.duration_ns);
    phases_by_blocks(cell, data, &limits);
    if rule.deadline_ns.is_some() {
        let spells = (0..).zip(&data.threads).map(|(thread, data)| spells_on_disk(data, thread));
        tell_episodes(cell, spells.collect(), false);
    }
    // The blocks count by the deadline that they were measured with.
    damage.extend(agree_with_recordings(cell, data, rule.deadline_ns));
    agree_with_samples(cell, rule.deadline_ns);
    rebuild_work(cell, data, damage);
    judge_measured(cell, Some(&BySecond::of(data, rule.deadline_ns)), rule);
}

/// A thread with placement unknown, because that is recorded only when it ends.
fn unknown(number: usize) -> Thread {
    Thread { thread: u32::try_from(number).unwrap_or(u32::MAX), ..Thread::default() }
}

fn late_incomplete(thread: usize) -> Condition {
    Condition {
        id: "late-incomplete".to_owned(),
        text: format!(
            "thread {thread}: how late its missed releases were is not known: they count as \
             missed, and not as later than the deadline"
        ),
    }
}

/// The load's work between its first and last recorded second. A part without such records is
/// left out; one without a name in `run.json` is reported.
fn rebuild_work(cell: &mut Cell, data: &CellData, damage: &mut Vec<String>) {
    let named = cell.load_work.len();
    let mut nameless: Vec<u32> = data.work.iter().map(|(_, part, _)| *part).collect();
    nameless.retain(|part| *part as usize >= named);
    nameless.sort_unstable();
    nameless.dedup();
    damage.extend(nameless.iter().map(|part| {
        format!(
            "{}: run.json has no name for part {part} of the load: its work is left out",
            key_name(&cell.key)
        )
    }));
    let mut ends: BTreeMap<u32, Ends<'_>> = BTreeMap::new();
    for (second, part, totals) in &data.work {
        let end = (*second, &totals[..]);
        ends.entry(*part)
            .and_modify(|ends| {
                ends.last = Some(end);
                ends.records += 1;
            })
            .or_insert(Ends { first: end, last: None, records: 1 });
    }
    let parts = std::mem::take(&mut cell.load_work);
    let rebuilt = (0..).zip(parts).filter_map(|(number, part)| part_work(part, ends.get(&number)?));
    cell.load_work = rebuilt.collect();
}

/// The first and the last record of a part of the load: second and totals.
struct Ends<'a> {
    first: (u64, &'a [u64]),
    /// `None` if there is only one.
    last: Option<(u64, &'a [u64])>,
    records: u64,
}

fn part_work(mut part: LoadWork, ends: &Ends<'_>) -> Option<LoadWork> {
    let (from_second, from) = ends.first;
    let (to_second, to) = ends.last?;
    // A phase that repeats has gaps between its records.
    let gaps = part.phase.map(|_| ends.records.saturating_sub(1));
    let seconds = gaps.unwrap_or(to_second.saturating_sub(from_second)).max(1);
    for ((counter, from), to) in part.counters.iter_mut().zip(from).zip(to) {
        counter.total = to.saturating_sub(*from);
        #[allow(clippy::cast_precision_loss, reason = "a rate needs no 16th digit")]
        let per_second = counter.total as f64 / seconds as f64;
        counter.per_second = per_second;
    }
    part.trouble = Some("cut short: counted from its first second to the last".to_owned());
    Some(part)
}
