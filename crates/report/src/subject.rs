//! A cell as figures and tables show it.

use punctual_core::legs::CellLegs;
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Latency, Run};

use crate::{data, words};

/// A cell of latencies of one of the runs, with what figures need of both.
pub(crate) struct Subject<'a> {
    pub run: &'a Run,
    pub cell: &'a Cell,
    pub latency: &'a Latency,
    pub data: &'a CellData,
    /// What each of its latencies consists of, if that is known.
    pub legs: Option<&'a CellLegs>,
    /// Number of the run and of the cell in it, from 0.
    pub at: (usize, usize),
    /// Kernel and cell, or the cell alone if there is one run.
    pub label: String,
    /// Which runs it stands for, if that is not the one run that is named.
    pub note: Option<String>,
}

/// The cells of latencies that have samples: those of equal keys side by side.
pub(crate) fn of_runs(runs: &[LoadedRun]) -> Vec<Subject<'_>> {
    let names = words::run_names(runs);
    let mut keys: Vec<&str> = Vec::new();
    let mut list = Vec::new();
    for (r, run) in runs.iter().enumerate() {
        for (c, (cell, data)) in data::cells(run).enumerate() {
            let Some(latency) = cell.latency().filter(|latency| latency.stats.samples > 0) else {
                continue;
            };
            if !keys.contains(&cell.key.as_str()) {
                keys.push(&cell.key);
            }
            let label = match names.get(r) {
                Some(name) if runs.len() > 1 => format!("{} · {name}", words::cell_name(cell)),
                _ => words::cell_name(cell),
            };
            let legs = data::legs(run, cell);
            let (run, at) = (&run.run, (r, c));
            list.push(Subject { run, cell, latency, data, legs, at, label, note: None });
        }
    }
    list.sort_by_key(|s| keys.iter().position(|key| *key == s.cell.key));
    list
}
