//! `punctual report`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ArgMatches;
use punctual_core::run::LoadedRun;
use punctual_report::{Options, figures, html};

use crate::ending::Ending;
use crate::{files, output, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let runs = runs(matches)?;
    if let Some(path) = matches.get_one::<PathBuf>("output") {
        write(&runs, path, matches.get_one::<String>("title").cloned())?;
    }
    let figures = match matches.get_one::<PathBuf>("figures") {
        Some(folder) => write_figures(&runs, folder)?,
        None => Vec::new(),
    };
    if matches.get_flag("json") {
        output::print_json(&serde_json::json!({
            "report": matches.get_one::<PathBuf>("output"),
            "figures": figures,
            "runs": runs.iter().map(|run| &run.run.run_id).collect::<Vec<_>>(),
        }))?;
    }
    Ok(Ending::Done)
}

/// Reads the named runs; for a set, all runs in it.
pub fn runs(matches: &ArgMatches) -> anyhow::Result<Vec<LoadedRun>> {
    let mut runs = Vec::new();
    for name in matches.get_many::<String>("runs").into_iter().flatten() {
        for dir in store::find_all(name)? {
            runs.push(store::load(&dir)?);
        }
    }
    Ok(runs)
}

/// Writes the report on these runs to one HTML file.
pub fn write(runs: &[LoadedRun], path: &Path, title: Option<String>) -> anyhow::Result<()> {
    files::replace(path, html(runs, &Options { title }).as_bytes())
        .with_context(|| cannot_write(path))
}

/// Writes the figures and returns their paths.
fn write_figures(runs: &[LoadedRun], folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| cannot_write(folder))?;
    let mut written = Vec::new();
    for (name, svg) in figures(runs) {
        let path = folder.join(name);
        files::replace(&path, svg.as_bytes()).with_context(|| cannot_write(&path))?;
        written.push(path);
    }
    Ok(written)
}

pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
