//! The files of a cell.

use std::collections::HashSet;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use punctual_core::layout::{CELL_FILES, CELLS};
use punctual_core::run::CellData;
use punctual_core::run::limits::{Budget, MAX_CELL_FILE};
use punctual_core::schema::{Cell, CellState};
use punctual_sys::file;

/// The folder of a cell; `None` if the name in `run.json` is not a valid one.
pub fn cell_folder(dir: &Path, cell: &Cell) -> Option<PathBuf> {
    let mut name = Path::new(&cell.dir).components();
    match (name.next(), name.next()) {
        (Some(Component::Normal(name)), None) => Some(dir.join(CELLS).join(name)),
        _ => None,
    }
}

/// Reads the files of a run's cells, each file once.
#[derive(Default)]
pub struct Files {
    /// Device and inode of those that were read.
    read: HashSet<(u64, u64)>,
    budget: Budget,
}

impl Files {
    /// Reads one file.
    ///
    /// # Errors
    /// The file system's; or it is no regular file, is larger than [`MAX_CELL_FILE`], or was
    /// read as that of another cell.
    pub fn bytes(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let file = file::open(path)?;
        let metadata = file.metadata()?;
        if !self.read.insert((metadata.dev(), metadata.ino())) {
            return Err(io::Error::other("it is a file of another cell too"));
        }
        file::read_open(&file, MAX_CELL_FILE)
    }

    /// Reads what a cell recorded, and adds to `damage` what is missing.
    pub fn read_cell(&mut self, dir: &Path, cell: &Cell, damage: &mut Vec<String>) -> CellData {
        let mut data = CellData::default();
        let Some(folder) = cell_folder(dir, cell) else {
            damage.push(format!("\"{}\" is no name of a cell's folder: not read", cell.dir));
            return data;
        };
        let whole =
            !matches!(cell.state, CellState::Pending | CellState::Skipped | CellState::Running);
        // A cost has no distribution, and no seconds if it took less than one; an empty file is no file
        // on its way from a virtual board.
        let is_empty = cell.cost().is_some();
        for name in CELL_FILES {
            match self.bytes(&folder.join(name)) {
                Ok(bytes) => data.read(&bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound && (!whole || is_empty) => {}
                Err(error) => damage.push(format!(
                    "{CELLS}/{}/{name} cannot be read ({error}): figures lack what it held",
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
        let left_out = self.budget.admit(cell, &mut data);
        damage.extend(left_out.map(|text| format!("{CELLS}/{}: {text}", cell.dir)));
        data
    }
}
