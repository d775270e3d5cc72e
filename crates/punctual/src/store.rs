//! Run directories, read.
//!
//! Invariant: nothing in a run directory makes this panic. What can be read is
//! read, and what cannot is named in [`LoadedRun::damage`].

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, CellState, Run, RunState, SCHEMA};
use punctual_lab::qemu::CHANNEL;
use serde_json::Value;

mod find;
mod judge;
mod raw;
mod recover;

pub use find::{RUNS, all, find, find_all, find_one, set};
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
        cell.interval_ns = cell.interval_ns.filter(|interval| *interval > 0);
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
/// As [`load`].
pub fn read_run(dir: &Path) -> anyhow::Result<Run> {
    Ok(read_json(dir)?.1)
}

/// Reads `run.json` as it stands there, and as this version understands it.
fn read_json(dir: &Path) -> anyhow::Result<(Value, Run)> {
    let path = dir.join("run.json");
    let bytes = fs::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            anyhow!("{}: not a run directory: there is no run.json in it", dir.display())
        }
        _ => anyhow!(error).context(format!("cannot read {}", path.display())),
    })?;
    let damaged = || format!("{} is damaged or not of punctual", path.display());
    let value: Value = serde_json::from_slice(&bytes).with_context(damaged)?;
    let schema = value.get("schema").and_then(Value::as_str);
    let Some(schema) = schema else {
        bail!("{}: it has no key \"schema\"", damaged());
    };
    let major = |version: &str| version.split('.').next().and_then(|part| part.parse::<u32>().ok());
    if major(schema) != major(SCHEMA) {
        bail!(
            "{} is of schema version {schema}; this punctual {} reads version {SCHEMA}: use the \
             punctual that wrote it",
            path.display(),
            env!("CARGO_PKG_VERSION")
        );
    }
    // From the text, of which an error tells line and column.
    let run = serde_json::from_slice(&bytes).with_context(damaged)?;
    Ok((value, run))
}

/// The folder of a cell; none where what `run.json` says cannot be one.
fn cell_folder(dir: &Path, cell: &Cell) -> Option<PathBuf> {
    let mut name = Path::new(&cell.dir).components();
    match (name.next(), name.next()) {
        (Some(Component::Normal(name)), None) => Some(dir.join("cells").join(name)),
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
    for file in ["blocks", "histograms"] {
        match fs::read(folder.join(file)) {
            Ok(bytes) => data.read(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !whole => {}
            Err(error) => damage.push(format!(
                "cells/{}/{file} cannot be read ({error}): figures lack what it held",
                cell.dir
            )),
        }
    }
    if data.damaged > 0 {
        let numbers = if whole { "; the numbers are those of run.json" } else { "" };
        damage.push(format!(
            "cells/{}: {} damaged {} of its files passed over{numbers}",
            cell.dir,
            data.damaged,
            if data.damaged == 1 { "stretch" } else { "stretches" },
        ));
    }
    data
}
