//! `run.json`: whatever can be read can be judged, compared, shown and drawn.

use punctual_core::compare::{compare, not_worse};
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::Run;
use punctual_core::verdict::{Rule, ahead, judge_cell, judge_run, judge_threads, pool};
use punctual_report::{Options, html, text};

pub fn target(bytes: &[u8]) {
    let Ok(mut run) = serde_json::from_slice::<Run>(bytes) else { return };
    let written = serde_json::to_vec(&run).unwrap();
    let again: Run = serde_json::from_slice(&written).unwrap();
    assert_eq!(serde_json::to_vec(&again).unwrap(), written);
    let rule = Rule::of(&run.plan, &run.board);
    for cell in &mut run.cells {
        if let Some(latency) = cell.latency_mut() {
            judge_threads(latency, &rule);
        }
        cell.verdict = judge_cell(cell, &rule);
    }
    let _ = ahead(&run);
    run.verdict = judge_run(run.state, &run.cells, &run.plan.cells, &rule);
    let cells = run.cells.iter().map(|_| CellData::default()).collect();
    let runs = [LoadedRun { run, cells, legs: None, damage: Vec::new(), label: None, side: None }];
    let both = [runs[0].clone(), runs[0].clone()];
    let _ = text::summary(&runs[0], 80, false);
    let _ = text::details(&runs[0], 80, true);
    let _ = text::comparison(&compare(&both), 80, false);
    let mut other = both[1].run.clone();
    other.run_id.push('2');
    if let Ok(pooled) = pool(&[&both[0].run, &other]) {
        let _ = text::pooled(&pooled, 80, true);
    }
    let compared = compare(&both);
    let _ = text::margin(&not_worse(&both, &compared, 1.1), &compared, 80, true);
    let _ = text::extremes(&both[0], 80);
    let _ = html(&both, &Options::default());
}
