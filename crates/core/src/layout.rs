//! Names of a run's files and folders, the only place that defines them.

use std::path::{Path, PathBuf};

/// The default folder for runs.
pub const RUNS: &str = "punctual-runs";

/// What a run records in addition to its samples.
pub const RUN_JSON: &str = "run.json";

/// What the cells of a run have become since a large `run.json` was last written.
pub const CELLS_JSONL: &str = "cells.jsonl";

/// The sections of a run that was watched.
pub const SECTIONS_JSON: &str = "sections.json";

/// The legs of all samples of a run that was repeated and watched.
pub const LEGS_JSON: &str = "legs.json";

/// The aimed releases of an experiment, in its folder.
pub const AIMED_JSON: &str = "aimed.json";

/// The folder that contains the cells' folders.
pub const CELLS: &str = "cells";

/// The records of a running cell: blocks, late samples, work, intervals.
pub const BLOCKS: &str = "blocks";

/// The records written at a cell's end: histograms and the worst samples.
pub const HISTOGRAMS: &str = "histograms";

/// The end of the kernel's trace, as text, if a sample exceeded the break value while tracing
/// was on.
pub const TRACE: &str = "trace.txt";

/// The files of records of a cell.
pub const CELL_FILES: [&str; 2] = [BLOCKS, HISTOGRAMS];

/// The first of `parent/name`, `parent/name-2`, `parent/name-3` and so on that does not exist
/// yet, so that runs started within one second do not share a folder.
pub fn unused(parent: &Path, name: &str, exists: impl Fn(&Path) -> bool) -> PathBuf {
    let mut path = parent.join(name);
    let mut number = 2_u64;
    while exists(&path) {
        path = parent.join(format!("{name}-{number}"));
        number += 1;
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_folders_have_a_number() {
        for (there, path) in [(0, "runs/a"), (1, "runs/a-2"), (2, "runs/a-3")] {
            let taken: Vec<_> = ["runs/a", "runs/a-2"][..there].iter().map(Path::new).collect();
            let found = unused(Path::new("runs"), "a", |path| taken.contains(&path));
            assert_eq!(found, Path::new(path));
        }
    }
}
