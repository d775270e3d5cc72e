//! A run directory exactly as it is on disk, for exact comparison: nothing is repaired,
//! rebuilt or judged.

use std::io;
use std::path::Path;

use anyhow::{Context, bail};
use punctual_core::compare::exact::Files;
use punctual_core::layout::{BLOCKS, HISTOGRAMS};
use punctual_core::schema::{Cell, Run};
use serde_json::Value;

use super::cell_files::{self, cell_folder};
use super::writer::read_ended;

/// The content of a run directory.
pub struct Raw {
    /// `run.json`.
    pub run: Run,
    /// The same, including keys that this version does not know.
    pub json: Value,
    /// The files of its cells, in their order.
    pub files: Vec<Files>,
}

/// Reads a run directory unchanged.
///
/// # Errors
/// Those of [`super::load()`]; or a file exists but cannot be read.
pub fn read_raw(dir: &Path) -> anyhow::Result<Raw> {
    let (run, bytes) = read_ended(dir)?;
    let json = serde_json::from_slice(&bytes)?;
    let mut reader = cell_files::Files::default();
    let read = |cell| read_files(dir, cell, &mut reader);
    let files = run.cells.iter().map(read).collect::<Result<_, _>>()?;
    Ok(Raw { run, json, files })
}

fn read_files(dir: &Path, cell: &Cell, reader: &mut cell_files::Files) -> anyhow::Result<Files> {
    let Some(folder) = cell_folder(dir, cell) else {
        bail!("{}: \"{}\" is no name of a cell's folder", dir.display(), cell.dir);
    };
    let mut read = |name: &str| match reader.bytes(&folder.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(error).with_context(|| format!("cannot read {}", folder.join(name).display()))
        }
    };
    Ok(Files { blocks: read(BLOCKS)?, histograms: read(HISTOGRAMS)? })
}
