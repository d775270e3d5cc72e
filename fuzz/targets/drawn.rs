//! A run whose records are anything: it is compared, shown and drawn all the same.

use punctual_core::compare::compare;
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Ideal, Role, Run, Series, Stats, Unit};
use punctual_report::{Options, figures, html, text};

use crate::frames;

thread_local!(static RUN: Run = run());

/// Two cells, of pulses, and of intervals with a leg.
fn run() -> Run {
    let simulated = include_bytes!("../seeds/run_json/simulated");
    let mut run: Run = serde_json::from_slice(simulated).unwrap();
    let ideals = [
        (Ideal::Pulse { width_ns: 50_000 }, Role::Aside),
        (Ideal::Interval { ns: 9, limit_ns: 27 }, Role::Leg),
    ];
    for (latency, (ideal, role)) in run.cells.iter_mut().filter_map(Cell::latency_mut).zip(ideals) {
        latency.ideal = Some(ideal);
        latency.series.push(Series {
            name: "other".to_owned(),
            meaning: String::new(),
            role,
            unit: Unit::Ns,
            stats: Stats::default(),
        });
    }
    run
}

pub fn target(bytes: &[u8]) {
    let mut data = CellData::default();
    data.read(&frames::of(bytes));
    let run = RUN.with(Run::clone);
    let cells = run.cells.iter().map(|_| data.clone()).collect();
    let runs = [LoadedRun { run, cells, legs: None, damage: Vec::new(), label: None, side: None }];
    let _ = text::details(&runs[0], 80, false);
    let _ = text::comparison(&compare(&[runs[0].clone(), runs[0].clone()]), 80, false);
    let _ = html(&runs, &Options::default());
    let _ = figures(&runs);
}
