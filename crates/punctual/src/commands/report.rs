//! `punctual report`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ArgMatches;
use punctual_core::run::LoadedRun;
use punctual_report::{Options, figures, html};

use crate::ending::Ending;
use crate::store;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let runs = runs(matches)?;
    if let Some(path) = matches.get_one::<PathBuf>("output") {
        write(&runs, path, matches.get_one::<String>("title").cloned())?;
    }
    if let Some(folder) = matches.get_one::<PathBuf>("figures") {
        write_figures(&runs, folder)?;
    }
    Ok(Ending::Done)
}

/// The runs that were named, read.
pub fn runs(matches: &ArgMatches) -> anyhow::Result<Vec<LoadedRun>> {
    let names = matches.get_many::<String>("runs").into_iter().flatten();
    names.map(|name| store::load(&store::find(name)?)).collect()
}

/// Writes the report of runs to one HTML file.
pub fn write(runs: &[LoadedRun], path: &Path, title: Option<String>) -> anyhow::Result<()> {
    fs::write(path, html(runs, &Options { title })).with_context(|| cannot_write(path))
}

fn write_figures(runs: &[LoadedRun], folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| cannot_write(folder))?;
    for (name, svg) in figures(runs) {
        let path = folder.join(name);
        fs::write(&path, svg).with_context(|| cannot_write(&path))?;
    }
    Ok(())
}

pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
