//! The files of a cell.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use punctual_core::layout::{CELL_FILES, CELLS};
use punctual_core::run::CellData;
use punctual_core::schema::{Cell, CellState};

/// The folder of a cell; `None` if the name in `run.json` is not a valid one.
pub fn cell_folder(dir: &Path, cell: &Cell) -> Option<PathBuf> {
    let mut name = Path::new(&cell.dir).components();
    match (name.next(), name.next()) {
        (Some(Component::Normal(name)), None) => Some(dir.join(CELLS).join(name)),
        _ => None,
    }
}

/// Reads what a cell recorded, and adds to `damage` what is missing.
pub fn read_cell(dir: &Path, cell: &Cell, damage: &mut Vec<String>) -> CellData {
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
