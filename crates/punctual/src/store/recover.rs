//! A run that was cut short, rebuilt from its blocks.
//!
//! Cells that `run.json` has as ended stay as they are. One that was under way
//! has its finished blocks: count, extremes, mean and deviation are exact to the
//! last of them, quantiles come from the blocks' coarse bins.

use punctual_core::block::{BLOCK_NS, Late};
use punctual_core::run::{CellData, LoadedRun, ThreadData};
use punctual_core::schema::{Cell, CellState, Condition, LoadWork, Thread, WorkCounter};
use punctual_core::stats::{Recorded, clusters, summarise};
use punctual_core::verdict::{Rule, judge_cell, judge_thread};
use punctual_suite::loads::{LoadSpec, PartSpec};
use punctual_suite::recorder::{Behind, Limits};

/// Policy and affinity are recorded at the end of a cell, when they have been read back twice.
const NOT_KNOWN: &str = "unknown";

/// Rebuilds the cells that were under way, and judges the run by what there is.
pub fn rebuild(loaded: &mut LoadedRun) {
    let rule = Rule::of(&loaded.run.plan, &loaded.run.board);
    // Of a virtual board the reason is in its console.log, or it was ended with punctual.
    let what =
        if loaded.run.board.lab.is_some() { "the guest ended" } else { "punctual was killed" };
    for (cell, data) in loaded.run.cells.iter_mut().zip(&mut loaded.cells) {
        if !matches!(cell.state, CellState::Pending | CellState::Running) {
            continue;
        }
        if data.threads.iter().any(|thread| !thread.blocks.is_empty()) {
            cell.reason = Some(what.to_owned());
            rebuild_cell(&rule, cell, data);
        } else {
            cell.state = CellState::Pending;
            cell.reason = Some(format!("{what} before the cell's first block"));
        }
    }
    super::judge::judge_cells(&mut loaded.run);
}

fn rebuild_cell(rule: &Rule, cell: &mut Cell, data: &mut CellData) {
    cell.state = CellState::Recovered;
    cell.threads.clear();
    let limits = Limits {
        deadline: rule.deadline_ns.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(i64::MAX),
        ..Limits::NONE
    };
    for (number, thread) in (0..).zip(&mut data.threads) {
        let rebuilt = rebuild_thread(number, cell, thread, &limits, rule);
        cell.threads.push(rebuilt);
    }
    let moments: Vec<_> = data.threads.iter().map(ThreadData::moments).collect();
    let recorded: Vec<_> =
        data.threads.iter().zip(&moments).map(|(thread, m)| Recorded::of(thread, m)).collect();
    cell.stats = summarise(&recorded);
    if let Some(series) = cell.series.first_mut() {
        series.stats = cell.stats.clone();
    }
    let last = data.threads.iter().flat_map(|thread| &thread.blocks).map(|block| block.index).max();
    let measured = last.map_or(0, |last| last.saturating_add(1).saturating_mul(BLOCK_NS));
    cell.duration_ns = measured.min(cell.duration_ns);
    cell.load_work = load_work(&cell.load, data);
    cell.verdict = judge_cell(cell, rule);
}

fn rebuild_thread(
    number: u32,
    cell: &mut Cell,
    thread: &mut ThreadData,
    limits: &Limits,
    rule: &Rule,
) -> Thread {
    let moments = thread.moments();
    let mut behind_exceeded = 0;
    match (within_blocks(&thread.late, moments.missed), cell.interval_ns) {
        (Some(late), Some(interval)) => {
            let mut behind = Behind::default();
            for late in late {
                behind.add(late.latency, late.missed, interval, limits);
            }
            behind_exceeded = behind.exceeded;
            thread.behind = Some(behind.counts);
        }
        _ if moments.missed > 0 => cell.conditions.push(Condition {
            id: "late-incomplete".to_owned(),
            text: format!(
                "thread {number}: how late its missed releases were is not known: they count as \
                 missed, and not as later than the deadline"
            ),
        }),
        _ => {}
    }
    let stats = summarise(&[Recorded::of(thread, &moments)]);
    let clusters = clusters(&thread.blocks);
    let exceedances = moments.exceeded.saturating_add(behind_exceeded);
    let verdict = judge_thread(&stats, exceedances, clusters, cell.interval_ns, rule);
    Thread {
        thread: number,
        affinity: NOT_KNOWN.to_owned(),
        policy: NOT_KNOWN.to_owned(),
        max_at_ns: (moments.count > 0).then_some(moments.max_at),
        exceedance_clusters: clusters,
        stats,
        verdict,
        ..Thread::default()
    }
}

/// The late samples that finished blocks hold: those of the unfinished last
/// second are on disk before their block. None where some were lost.
fn within_blocks(late: &[Late], missed: u64) -> Option<&[Late]> {
    let mut sum = 0_u64;
    let mut count = 0;
    while sum < missed {
        sum = sum.saturating_add(late.get(count)?.missed);
        count += 1;
    }
    (sum == missed).then(|| &late[..count])
}

/// The work between the first and the last second that was recorded.
fn load_work(load: &str, data: &CellData) -> Vec<LoadWork> {
    let Ok(spec) = LoadSpec::parse(load) else {
        return Vec::new();
    };
    (0..).zip(spec.parts()).filter_map(|(number, part)| part_work(number, part, data)).collect()
}

fn part_work(number: u32, part: &PartSpec, data: &CellData) -> Option<LoadWork> {
    let mut records = data.work.iter().filter(|(_, of, _)| *of == number);
    let (from_second, _, from) = records.next()?;
    let (to_second, _, to) = records.next_back()?;
    let seconds = to_second.saturating_sub(*from_second).max(1);
    let counters = part.entry.counters.iter().zip(from).zip(to).map(|((name, from), to)| {
        let total = to.saturating_sub(*from);
        #[allow(clippy::cast_precision_loss, reason = "a rate needs no 16th digit")]
        let per_second = total as f64 / seconds as f64;
        WorkCounter { name: (*name).to_owned(), total, per_second }
    });
    Some(LoadWork {
        load: part.entry.name.to_owned(),
        counters: counters.collect(),
        trouble: Some("cut short: counted from its first second to the last".to_owned()),
        ..LoadWork::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(missed: u64) -> Late {
        Late { thread: 0, at: 0, latency: 1_000_000 * missed, missed }
    }

    #[test]
    fn late_samples_of_an_unfinished_second_do_not_count() {
        let all = [late(3), late(4), late(5)];
        assert_eq!(within_blocks(&all, 7), Some(&all[..2]));
        assert_eq!(within_blocks(&all, 0), Some(&all[..0]));
        assert_eq!(within_blocks(&all, 12), Some(&all[..]));
    }

    #[test]
    fn lost_late_samples_are_not_made_up() {
        assert_eq!(within_blocks(&[late(3), late(4)], 5), None);
        assert_eq!(within_blocks(&[], 5), None);
    }
}
