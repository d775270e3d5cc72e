//! A run that was cut short, whose records are anything: it is rebuilt, judged by other rules,
//! and shown.

use punctual_core::judge::judge_again;
use punctual_core::plan::Plan;
use punctual_core::recover::rebuild;
use punctual_core::run::limits::Budget;
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{CellState, Run, RunState};
use punctual_report::text;

use crate::frames;

thread_local!(static RUN: Run = {
    let mut run: Run = serde_json::from_slice(include_bytes!("../seeds/run_json/simulated")).unwrap();
    run.state = RunState::Running;
    run.cells.iter_mut().for_each(|cell| cell.state = CellState::Running);
    run
});

/// The first bytes of an input are the deadline by which the run is judged again, ns.
pub fn target(bytes: &[u8]) {
    let Some((deadline, records)) = bytes.split_at_checked(8) else { return };
    let deadline = u64::from_le_bytes(deadline.try_into().unwrap());
    let run = RUN.with(Run::clone);
    let mut budget = Budget::default();
    let mut read = |cell| {
        let mut data = CellData::default();
        data.read(&frames::of(records));
        let _ = budget.admit(cell, &mut data);
        data
    };
    let cells = run.cells.iter().map(&mut read).collect();
    let mut loaded =
        LoadedRun { run, cells, legs: None, damage: Vec::new(), label: None, side: None };
    rebuild(&mut loaded);
    for cell in &loaded.run.cells {
        let Some(latency) = cell.latency() else { continue };
        for thread in &latency.threads {
            let stats = &thread.stats;
            assert_eq!(stats.scheduled, stats.samples.saturating_add(stats.missed));
        }
    }
    for deadline_ns in [Some(deadline), None, Some(deadline / 1_000)] {
        let plan = Plan { deadline_ns, ..loaded.run.plan.clone() };
        judge_again(&mut loaded, plan);
    }
    let _ = text::details(&loaded, 80, true);
}
