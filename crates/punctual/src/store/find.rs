//! Finds the run that a name refers to.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use punctual_core::layout::{RUN_JSON, RUNS};
use punctual_lab::experiment::{EXPERIMENT, runs_listed};
use punctual_sys::file;

use super::run_json::read_run;

/// The directory of a run or of a set of runs. `name` is a path, that of `run.json` included; a
/// name below [`RUNS`] (`set/run` for a run of a set); the beginning of such a name; or `last`
/// for the latest run.
///
/// # Errors
/// No run matches, or several do; the message lists them.
pub fn find(name: &str) -> anyhow::Result<PathBuf> {
    let path = Path::new(name);
    if path.is_file() && path.ends_with(RUN_JSON) {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        return Ok(dir.unwrap_or(Path::new(".")).to_owned());
    }
    if path.exists() {
        return Ok(path.to_owned());
    }
    let runs = all();
    if name == "last" {
        return match latest(&runs) {
            Some(run) => Ok(run.clone()),
            None => bail!(
                "last: there is no run in ./{RUNS}; name the folder of one that --out put elsewhere"
            ),
        };
    }
    let name = name.trim_end_matches('/');
    // A name without a slash is a run or a set, one with a slash is a run of a set.
    let depth = path.components().count();
    let begins = |run: &PathBuf| {
        let named: PathBuf = run.strip_prefix(RUNS).ok()?.components().take(depth).collect();
        let begins = named.as_os_str().as_bytes().starts_with(name.as_bytes());
        begins.then(|| Path::new(RUNS).join(named))
    };
    let mut found: Vec<PathBuf> = runs.iter().filter_map(begins).collect();
    found.dedup();
    let exact = Path::new(RUNS).join(name);
    match &found[..] {
        [one] => Ok(one.clone()),
        [] => bail!("{name}: no such run directory, and no run in ./{RUNS} begins so"),
        several if several.contains(&exact) => Ok(exact),
        several => bail!("{name}: several runs begin so:{}", listed(several)),
    }
}

/// The directory of one run, named as in [`find`]. A set will do if it contains only one run.
///
/// # Errors
/// Those of [`find`]; or the name is that of a set of several runs, which the message lists.
pub fn find_one(name: &str) -> anyhow::Result<PathBuf> {
    let path = find(name)?;
    match set(&path).as_deref() {
        None => Ok(path),
        Some([run]) => Ok(run.clone()),
        Some(runs) => bail!("{name}: a set of runs; name one of them:{}", listed(runs)),
    }
}

/// The directories that a name stands for (see [`find`]): one run, or all runs of a set. None for
/// what else lies in the folder of a set, which a shell's `set/*` names too.
///
/// # Errors
/// Those of [`find`].
pub fn find_all(name: &str) -> anyhow::Result<Vec<PathBuf>> {
    let path = find(name)?;
    let beside = path.is_file() && path.parent().and_then(set).is_some();
    Ok(set(&path).unwrap_or_else(|| if beside { Vec::new() } else { vec![path] }))
}

/// The runs of a set, in the order of its experiment, otherwise by name. `None` if `path` is
/// not a folder that contains runs and is not a run itself.
pub fn set(path: &Path) -> Option<Vec<PathBuf>> {
    if is_run(path) {
        return None;
    }
    let mut runs: Vec<_> = folders(path).into_iter().filter(|path| is_run(path)).collect();
    let order = order_of(path);
    let place: HashMap<&OsStr, usize> =
        order.iter().enumerate().map(|(place, name)| (OsStr::new(name), place)).collect();
    let place_of = |run: &PathBuf| run.file_name().and_then(|name| place.get(name)).copied();
    runs.sort_by_cached_key(|run| place_of(run).unwrap_or(order.len()));
    (!runs.is_empty()).then_some(runs)
}

/// The largest list of an experiment's runs, bytes: some 50,000 runs.
const MAX_EXPERIMENT: u64 = 4 << 20;

/// The names of an experiment's runs, in the order of its kernels.
fn order_of(path: &Path) -> Vec<String> {
    runs_listed(&file::read(&path.join(EXPERIMENT), MAX_EXPERIMENT).unwrap_or_default())
}

/// Every run below [`RUNS`], including those of sets, by name; names begin with the time.
pub fn all() -> Vec<PathBuf> {
    within(Path::new(RUNS))
}

/// A run, or every run in a folder and in the sets that it contains, by name.
pub fn within(folder: &Path) -> Vec<PathBuf> {
    if is_run(folder) {
        return vec![folder.to_owned()];
    }
    let runs = |path: PathBuf| match set(&path) {
        None if is_run(&path) => vec![path],
        runs => runs.unwrap_or_default(),
    };
    folders(folder).into_iter().flat_map(runs).collect()
}

fn is_run(path: &Path) -> bool {
    path.join(RUN_JSON).is_file()
}

/// The subfolders of a folder, by name.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn listed(runs: &[PathBuf]) -> String {
    runs.iter().map(|run| format!("\n  {}", run.display())).collect()
}

/// The run that was started last. Run IDs begin with the start time, to the second, by the
/// clock of the host that started them. Names given with `--out` tell no time, and the clock
/// of a virtual board starts on the same day in every boot.
fn latest(runs: &[PathBuf]) -> Option<&PathBuf> {
    let started = |path: &&PathBuf| {
        let run = read_run(path).ok()?;
        Some((run.run_id.split('-').next()?.to_owned(), run.started.realtime_ns))
    };
    runs.iter().max_by_key(started)
}
