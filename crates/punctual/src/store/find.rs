//! Which run is meant.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::bail;

use super::read_run;

/// The folder that runs are written to unless told otherwise.
pub const RUNS: &str = "punctual-runs";

/// The directory of a run: a path; or a run below [`RUNS`] by its name, by the
/// beginning of its name, or `last`.
///
/// # Errors
/// Where there is none, or several are meant; the message lists them.
pub fn find(name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(name);
    if path.exists() {
        return Ok(path.to_owned());
    }
    let runs = all();
    if name == "last" {
        return match latest(&runs) {
            Some(run) => Ok(run.clone()),
            None => bail!("last: there is no run in ./{RUNS}"),
        };
    }
    let begins = |run: &&PathBuf| {
        run.file_name().is_some_and(|file| file.as_bytes().starts_with(name.as_bytes()))
    };
    let found: Vec<&PathBuf> = runs.iter().filter(begins).collect();
    match (found.iter().find(|run| run.ends_with(name)), &found[..]) {
        (Some(run), _) | (None, [run]) => Ok((*run).clone()),
        (None, []) => bail!("{name}: no such run directory, and no run in ./{RUNS} begins so"),
        (None, several) => {
            let list: Vec<_> = several.iter().map(|run| format!("\n  {}", run.display())).collect();
            bail!("{name}: several runs begin so:{}", list.concat())
        }
    }
}

/// Every folder below [`RUNS`] that holds a `run.json`, by name, which begins with its time.
pub fn all() -> Vec<PathBuf> {
    let mut runs: Vec<PathBuf> = fs::read_dir(RUNS)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("run.json").is_file())
        .collect();
    runs.sort();
    runs
}

/// The run that started last by its own clock: names given with `--out` say nothing of time.
fn latest(runs: &[PathBuf]) -> Option<&PathBuf> {
    let started = |path: &&PathBuf| read_run(path).ok().map(|run| run.started.realtime_ns);
    runs.iter().max_by_key(started)
}

/// The process that holds a file of the run's cells open, where there is one
/// that this user may look at.
pub fn writer_of(dir: &Path) -> Option<u32> {
    let cells = fs::canonicalize(dir.join("cells")).ok()?;
    let holds = |process: &Path| {
        let files = fs::read_dir(process.join("fd")).into_iter().flatten();
        files
            .filter_map(|file| fs::read_link(file.ok()?.path()).ok())
            .any(|target| target.starts_with(&cells))
    };
    fs::read_dir("/proc").into_iter().flatten().find_map(|entry| {
        let entry = entry.ok()?;
        let pid = entry.file_name().to_str()?.parse().ok()?;
        holds(&entry.path()).then_some(pid)
    })
}
