//! A run whose records are anything: it is compared, shown and drawn all the same.

use punctual_core::compare::compare;
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::Run;
use punctual_report::{Options, figures, html, text};

use crate::frames;

thread_local!(static RUN: Run =
    serde_json::from_slice(include_bytes!("../seeds/run_json/simulated")).unwrap());

pub fn target(bytes: &[u8]) {
    let mut data = CellData::default();
    data.read(&frames::of(bytes));
    let run = RUN.with(Run::clone);
    let cells = run.cells.iter().map(|_| data.clone()).collect();
    let runs = [LoadedRun { run, cells, legs: None, damage: Vec::new(), label: None }];
    let _ = text::details(&runs[0], 80, false);
    let _ = text::comparison(&compare(&[runs[0].clone(), runs[0].clone()]), 80, false);
    let _ = html(&runs, &Options::default());
    let _ = figures(&runs);
}
