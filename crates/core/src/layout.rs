//! Names of the files and folders of runs: all that write or read them take them from here.

use std::path::{Path, PathBuf};

/// The folder that runs are written to unless told otherwise.
pub const RUNS: &str = "punctual-runs";

/// What a run records in addition to its samples.
pub const RUN_JSON: &str = "run.json";

/// The folder of the cells' folders.
pub const CELLS: &str = "cells";

/// What a cell records while it runs: blocks, late samples, work, intervals.
pub const BLOCKS: &str = "blocks";

/// What a cell records at its end: histograms and the worst samples.
pub const HISTOGRAMS: &str = "histograms";

/// The files of a cell.
pub const CELL_FILES: [&str; 2] = [BLOCKS, HISTOGRAMS];

/// The paths `parent/name`, `parent/name-2`, `parent/name-3` and so on: two runs that start
/// within a second take the first that does not exist.
pub fn numbered(parent: &Path, name: &str) -> impl Iterator<Item = PathBuf> {
    let first = parent.join(name);
    let others = (2_u32..).map({
        let (parent, name) = (parent.to_owned(), name.to_owned());
        move |number| parent.join(format!("{name}-{number}"))
    });
    std::iter::once(first).chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_folders_have_a_number() {
        let names: Vec<_> = numbered(Path::new("runs"), "a").take(3).collect();
        assert_eq!(names, ["runs/a", "runs/a-2", "runs/a-3"].map(PathBuf::from));
    }
}
