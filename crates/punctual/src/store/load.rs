//! Loads a whole run from its directory.

use std::path::Path;

use punctual_core::judge::judge_recorded;
use punctual_core::recover;
use punctual_core::run::LoadedRun;
use punctual_core::schema::RunState;

use super::cell_files::Files;
use super::legs::read_legs;
use super::writer::read_ended;

/// Reads a run directory. A run whose process was killed is rebuilt from its blocks. Each is judged
/// by its plan, here and now: a recorded verdict is not believed.
///
/// # Errors
/// It is not a run directory, its `run.json` cannot be read or is of another major version, or
/// the run is still being written.
pub fn load(dir: &Path) -> anyhow::Result<LoadedRun> {
    let (mut run, _) = read_ended(dir)?;
    let mut damage = Vec::new();
    for cell in &mut run.cells {
        // A recorded interval of 0 is damage, and would divide by zero.
        if let Some(latency) = cell.latency_mut() {
            latency.interval_ns = latency.interval_ns.filter(|interval| *interval > 0);
        }
    }
    let mut files = Files::default();
    let cells = run.cells.iter().map(|cell| files.read_cell(dir, cell, &mut damage)).collect();
    let legs = read_legs(dir, &run, &mut damage);
    let mut loaded = LoadedRun { run, cells, legs, damage, label: None, side: None };
    judge_recorded(&mut loaded);
    if loaded.run.state == RunState::Running {
        recover::rebuild(&mut loaded);
    }
    Ok(loaded)
}
