//! Reads `run.json`.

use std::io;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use punctual_core::layout::{CELLS_JSONL, RUN_JSON};
use punctual_core::run::appended;
use punctual_core::run::limits::{MAX_RUN_JSON, exceeded, has_too_many_values};
use punctual_core::schema::{Run, RunState, SCHEMA};
use punctual_sys::file;
use serde::Deserialize;

/// Reads `run.json`, and of a run that was cut short what its cells have become since.
///
/// # Errors
/// `dir` is not a run directory, or its `run.json` cannot be read or is of another major
/// version. Errors in the file are reported with line and column.
pub fn read_run(dir: &Path) -> anyhow::Result<Run> {
    Ok(read_with_bytes(dir)?.0)
}

/// The same, with the bytes of `run.json`.
pub fn read_with_bytes(dir: &Path) -> anyhow::Result<(Run, Vec<u8>)> {
    let bytes = bytes_of(dir)?;
    let mut run = parse(&dir.join(RUN_JSON), &bytes)?;
    if run.state == RunState::Running {
        let path = dir.join(CELLS_JSONL);
        // One that is too large or cannot be read says no more than none.
        let lines = file::read(&path, MAX_RUN_JSON).unwrap_or_default();
        appended::put_in(&mut run, &lines);
        if let Some(what) = exceeded(&run) {
            bail!("{}: {what}", path.display());
        }
    }
    Ok((run, bytes))
}

/// The bytes of `run.json`.
pub fn bytes_of(dir: &Path) -> anyhow::Result<Vec<u8>> {
    let path = dir.join(RUN_JSON);
    file::read(&path, MAX_RUN_JSON).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            anyhow!("{}: not a run directory: there is no run.json in it", dir.display())
        }
        _ => anyhow!(error).context(format!("cannot read {}", path.display())),
    })
}

/// Parses `run.json`.
pub fn parse(path: &Path, bytes: &[u8]) -> anyhow::Result<Run> {
    #[derive(Deserialize)]
    struct Version {
        schema: Option<String>,
    }
    if has_too_many_values(bytes) {
        bail!("{}: it has more values than a run can have", path.display());
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
    let run: Run = serde_json::from_slice(bytes).with_context(damaged)?;
    match exceeded(&run) {
        Some(what) => bail!("{}: {what}", path.display()),
        None => Ok(run),
    }
}
