//! `run.json`: whatever can be read can be judged, compared, shown and drawn.

use punctual_core::compare::compare;
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::Run;
use punctual_core::verdict::{Rule, judge_run};
use punctual_report::{Options, html, text};

pub fn target(bytes: &[u8]) {
    let Ok(mut run) = serde_json::from_slice::<Run>(bytes) else { return };
    let written = serde_json::to_vec(&run).unwrap();
    let again: Run = serde_json::from_slice(&written).unwrap();
    assert_eq!(serde_json::to_vec(&again).unwrap(), written);
    let rule = Rule::of(&run.plan, &run.board);
    run.verdict = judge_run(run.state, &run.cells, &run.plan.cells, &rule);
    let cells = run.cells.iter().map(|_| CellData::default()).collect();
    let runs = [LoadedRun { run, cells, legs: None, damage: Vec::new(), label: None }];
    let both = [runs[0].clone(), runs[0].clone()];
    let _ = text::summary(&runs[0], 80, false);
    let _ = text::details(&runs[0], 80, true);
    let _ = text::comparison(&compare(&both), 80, false);
    let _ = html(&both, &Options::default());
}
