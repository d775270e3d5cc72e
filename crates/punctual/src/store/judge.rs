//! A recorded run, judged by another rule than its plan's.

use punctual_core::block::{Block, coarse_range};
use punctual_core::plan::Plan;
use punctual_core::run::{CellData, LoadedRun, ThreadData};
use punctual_core::schema::{Cell, CellState, Run, Thread};
use punctual_core::stats::exceedances;
use punctual_core::verdict::{Rule, judge_cell, judge_run, judge_thread};

/// Judges a run as if `plan` had been its plan. For a new deadline exceedances
/// are counted in the recorded bins: one that the deadline cuts counts as a whole,
/// so that they are never too few.
pub fn judge_again(loaded: &mut LoadedRun, plan: Plan) {
    let same_deadline = plan.deadline_ns == loaded.run.plan.deadline_ns;
    let rule = Rule::of(&plan, &loaded.run.board);
    for (cell, data) in loaded.run.cells.iter_mut().zip(&loaded.cells) {
        if !same_deadline {
            loaded.damage.extend(count_again(cell, data, plan.deadline_ns));
        }
        for thread in &mut cell.threads {
            let (k, clusters) = (thread.verdict.exceedances, thread.exceedance_clusters);
            thread.verdict = judge_thread(&thread.stats, k, clusters, cell.interval_ns, &rule);
        }
        cell.verdict = judge_cell(cell, &rule);
    }
    judge_cells(&mut loaded.run);
    loaded.run.plan = plan;
}

/// Judges a run by its cells, those that were never started aside.
pub fn judge_cells(run: &mut Run) {
    let started = run.cells.iter().filter(|cell| cell.state != CellState::Pending);
    run.verdict = judge_run(&started.cloned().collect::<Vec<_>>());
}

/// Counts what exceeded the deadline; returns for which threads it cannot.
fn count_again(cell: &mut Cell, data: &CellData, deadline_ns: Option<u64>) -> Vec<String> {
    let nothing = ThreadData::default();
    let mut unknown = Vec::new();
    for thread in &mut cell.threads {
        let recorded = usize::try_from(thread.thread).ok().and_then(|n| data.threads.get(n));
        let recorded = recorded.unwrap_or(&nothing);
        let (k, clusters) =
            deadline_ns.map_or((0, 0), |deadline| exceeding(thread, recorded, deadline));
        (thread.verdict.exceedances, thread.exceedance_clusters) = (k, clusters);
        if k > 0 && recorded.histogram.is_none() && recorded.blocks.is_empty() {
            unknown.push(format!(
                "{}: thread {}: its samples are lost: that the deadline was exceeded is known, \
                 how often is not",
                cell.key, thread.thread
            ));
        }
    }
    unknown
}

/// Releases later than the deadline, and the seconds that held them.
fn exceeding(thread: &Thread, recorded: &ThreadData, deadline_ns: u64) -> (u64, u64) {
    let deadline = i64::try_from(deadline_ns).unwrap_or(i64::MAX);
    // The maximum is exact, and missed releases are never later than the start behind them.
    if thread.stats.max_ns.is_none_or(|max| max <= deadline) {
        return (0, 0);
    }
    let mut moments = recorded.moments();
    moments.exceeded = match &recorded.histogram {
        Some(histogram) => histogram.at_most_above(deadline),
        None => recorded.blocks.iter().map(|block| coarse_above(block, deadline)).sum(),
    }
    .max(1);
    let clusters = recorded.blocks.iter().filter(|block| block.moments.max > deadline).count();
    (exceedances(&moments, recorded.behind.as_ref(), deadline_ns), clusters as u64)
}

fn coarse_above(block: &Block, deadline: i64) -> u64 {
    if block.moments.max <= deadline {
        return 0;
    }
    let above = block.coarse.iter().filter(|(bin, _)| coarse_range(*bin).1 > deadline);
    above.map(|(_, count)| u64::from(*count)).sum()
}
