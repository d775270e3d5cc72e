//! Run directories, read.
//!
//! Invariant: nothing in a run directory makes this panic. What can be read is
//! read, and what cannot is named in [`LoadedRun::damage`].

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use punctual_core::layout::{CELL_FILES, CELLS, RUN_JSON};
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, CellState, Run, RunState, SCHEMA};
use punctual_lab::qemu::CHANNEL;
use serde::Deserialize;

mod find;
mod judge;
mod raw;
mod recover;

pub use punctual_core::layout::RUNS;

pub use find::{all, find, find_all, find_one, set};
pub use judge::judge_again;
pub use raw::{Raw, read_raw};

/// Reads a run directory. One whose process was killed is rebuilt from its blocks.
///
/// # Errors
/// Where it is no run directory, its `run.json` cannot be read, it is of another
/// major version, or it is still being written.
pub fn load(dir: &Path) -> anyhow::Result<LoadedRun> {
    let mut run = read_run(dir)?;
    let mut damage = Vec::new();
    for cell in &mut run.cells {
        // No release lies nowhere: a period of 0 is damage that would divide by zero.
        if let Some(latency) = cell.latency_mut() {
            latency.interval_ns = latency.interval_ns.filter(|interval| *interval > 0);
        }
    }
    let cells = run.cells.iter().map(|cell| read_cell(dir, cell, &mut damage)).collect();
    let mut loaded = LoadedRun { run, cells, damage };
    if loaded.run.state == RunState::Running {
        check_ended(dir)?;
        recover::rebuild(&mut loaded);
    }
    Ok(loaded)
}

/// Refuses a run that is still being written.
fn check_ended(dir: &Path) -> anyhow::Result<()> {
    let Some(pid) = find::writer_of(dir) else {
        return Ok(());
    };
    if dir.join(CHANNEL).exists() {
        bail!("{}: its guest still measures (process {pid}); wait for its end", dir.display());
    }
    bail!(
        "{}: process {pid} still measures; wait for its end, or see how it goes with kill -USR1 \
         {pid}",
        dir.display()
    )
}

/// Reads `run.json` alone.
///
/// # Errors
/// As [`load`]; what is wrong in the file is named with its line and column.
pub fn read_run(dir: &Path) -> anyhow::Result<Run> {
    parse(&dir.join(RUN_JSON), &bytes_of(dir)?)
}

fn bytes_of(dir: &Path) -> anyhow::Result<Vec<u8>> {
    let path = dir.join(RUN_JSON);
    fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            anyhow!("{}: not a run directory: there is no run.json in it", dir.display())
        }
        _ => anyhow!(error).context(format!("cannot read {}", path.display())),
    })
}

/// Reads `run.json` as this version understands it.
fn parse(path: &Path, bytes: &[u8]) -> anyhow::Result<Run> {
    #[derive(Deserialize)]
    struct Version {
        schema: Option<String>,
    }
    let damaged = || format!("{} is damaged or not of punctual", path.display());
    let version: Version = serde_json::from_slice(bytes).with_context(damaged)?;
    let Some(schema) = version.schema else {
        bail!("{}: it has no key \"schema\"", damaged());
    };
    let major = |version: &str| version.split('.').next().and_then(|part| part.parse::<u32>().ok());
    if major(&schema) != major(SCHEMA) {
        bail!(
            "{} is of schema version {schema}; this punctual {} reads version {SCHEMA}: use the \
             punctual that wrote it",
            path.display(),
            env!("CARGO_PKG_VERSION")
        );
    }
    serde_json::from_slice(bytes).with_context(damaged)
}

/// The folder of a cell; none where what `run.json` says cannot be one.
fn cell_folder(dir: &Path, cell: &Cell) -> Option<PathBuf> {
    let mut name = Path::new(&cell.dir).components();
    match (name.next(), name.next()) {
        (Some(Component::Normal(name)), None) => Some(dir.join(CELLS).join(name)),
        _ => None,
    }
}

/// Reads what a cell recorded; says in `damage` what is missing.
fn read_cell(dir: &Path, cell: &Cell, damage: &mut Vec<String>) -> CellData {
    let mut data = CellData::default();
    let Some(folder) = cell_folder(dir, cell) else {
        damage.push(format!("\"{}\" is no name of a cell's folder: not read", cell.dir));
        return data;
    };
    let whole = !matches!(cell.state, CellState::Pending | CellState::Skipped | CellState::Running);
    for file in CELL_FILES {
        match fs::read(folder.join(file)) {
            Ok(bytes) => data.read(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !whole => {}
            Err(error) => damage.push(format!(
                "{CELLS}/{}/{file} cannot be read ({error}): figures lack what it held",
                cell.dir
            )),
        }
    }
    if data.damaged > 0 {
        let numbers = if whole { "; the numbers are those of run.json" } else { "" };
        damage.push(format!(
            "{CELLS}/{}: {} damaged {} of its files passed over{numbers}",
            cell.dir,
            data.damaged,
            if data.damaged == 1 { "stretch" } else { "stretches" },
        ));
    }
    data
}

#[cfg(test)]
mod tests;
