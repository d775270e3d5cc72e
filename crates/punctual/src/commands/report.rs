//! `punctual report`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ArgMatches;
use punctual_core::compare::{ComparedSide, are_replicates, warm_against_cold};
use punctual_core::indices;
use punctual_core::run::LoadedRun;
use punctual_report::figure::{Figure, left_out};
use punctual_report::{Options, figures, html, words};

use super::address::open;
use super::by::By;
use crate::ending::Ending;
use crate::{files, output, store};

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let runs = runs(matches)?;
    if let Some(why) = warm_against_cold(&runs) {
        bail!("{why}: report them one by one");
    }
    if let Some(path) = matches.get_one::<PathBuf>("output") {
        let title = matches.get_one::<String>("title").cloned();
        let any_duration = matches.get_flag("any-duration");
        write(&runs, path, &Options { title, any_duration, published: None })?;
        if matches.get_flag("open") {
            open(path);
        }
    }
    let figures = match matches.get_one::<PathBuf>("figures") {
        Some(folder) => write_figures(&figures(&runs), folder)?,
        None => Vec::new(),
    };
    let left_out = figures.first().and_then(|_| left_out(&runs));
    if matches.get_flag("json") {
        output::print_json(&serde_json::json!({
            "report": matches.get_one::<PathBuf>("output"),
            "figures": figures,
            "left_out": left_out,
            "indices": runs.iter().map(|run| indices::of_run(&run.run)).collect::<Vec<_>>(),
            "runs": runs.iter().map(|run| &run.run.run_id).collect::<Vec<_>>(),
        }))?;
    } else if let Some(why) = left_out {
        output::complain(why);
    }
    Ok(Ending::Done)
}

/// Reads the named runs; for a set, all runs in it but those of aimed releases, which are not
/// samples like others.
pub fn runs(matches: &ArgMatches) -> anyhow::Result<Vec<LoadedRun>> {
    let (mut runs, mut dirs) = (Vec::new(), Vec::new());
    let names: Vec<&String> = matches.get_many("runs").into_iter().flatten().collect();
    // The argument of each run.
    let mut arguments = Vec::new();
    for (argument, name) in names.iter().enumerate() {
        let found = found(name)?;
        let is_set = found.len() > 1;
        for dir in found {
            let run = store::load(&dir)?;
            if !is_set || run.run.aim.is_none() {
                runs.push(run);
                dirs.push(dir);
                arguments.push(argument);
            }
        }
    }
    anyhow::ensure!(!runs.is_empty(), "no run directory is among these");
    called(&mut runs, &dirs);
    match matches.get_one::<By>("by") {
        Some(by) => by.make_sides(&mut runs),
        None => {
            no_run_twice(&runs, &names, &arguments)?;
            by_argument(&mut runs, &names, &arguments);
        }
    }
    Ok(runs)
}

/// Calls runs by the shortest ends of their folders' paths that tell them apart.
pub fn called(runs: &mut [LoadedRun], dirs: &[PathBuf]) {
    for (run, label) in runs.iter_mut().zip(labels(dirs)) {
        run.label = label;
    }
}

/// The runs of an argument: of a name, or of several that are joined by `+`.
fn found(name: &str) -> anyhow::Result<Vec<PathBuf>> {
    if !is_joined(name) {
        return store::find_all(name);
    }
    let each = name.split('+').map(store::find_all).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(each.concat())
}

/// Whether an argument is several names; an existing run or path that has a `+` in it is one.
fn is_joined(name: &str) -> bool {
    name.contains('+') && store::find(name).is_err()
}

/// Refuses a run that two arguments give: it would be compared with itself.
fn no_run_twice(runs: &[LoadedRun], names: &[&String], arguments: &[usize]) -> anyhow::Result<()> {
    let mut known = BTreeMap::new();
    for (run, argument) in runs.iter().zip(arguments) {
        let first = *known.entry(&run.run.run_id).or_insert(*argument);
        if first != *argument {
            bail!(
                "run {} is in \"{}\" and again in \"{}\": a run cannot be compared with itself, so \
                 give it once",
                words::clean(&run.run.run_id),
                words::clean(names[first]),
                words::clean(names[*argument])
            );
        }
    }
    Ok(())
}

/// Makes each argument a side, unless each is one run: those are told apart as the runs of one
/// folder are, but two that nothing tells apart are two sides. Runs that were joined by `+` are
/// pooled, whatever they are of: that is what their reader asks for.
fn by_argument(runs: &mut [LoadedRun], names: &[&String], arguments: &[usize]) {
    let single =
        (0..names.len()).all(|argument| arguments.iter().filter(|of| **of == argument).count() < 2);
    let is_pair = matches!(&*runs, [a, b] if are_replicates(&a.run, &b.run));
    if names.len() < 2 || (single && !is_pair) {
        return;
    }
    let called = labels(&names.iter().map(PathBuf::from).collect::<Vec<_>>());
    for (run, argument) in runs.iter_mut().zip(arguments) {
        let label = called[*argument].clone().filter(|_| !is_joined(names[*argument]));
        let name = label.unwrap_or_else(|| names[*argument].clone());
        run.side = Some(ComparedSide { name, whole: is_joined(names[*argument]) });
    }
}

/// The ends of paths that tell runs apart, as short as that is possible: `before` and `after` of
/// `/tmp/before` and `/tmp/after`. None if a run is given twice, or if there is only one.
fn labels(dirs: &[PathBuf]) -> Vec<Option<String>> {
    let paths: Vec<PathBuf> =
        dirs.iter().map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.clone())).collect();
    let deepest = paths.iter().map(|path| path.components().count()).max().unwrap_or(0);
    let ends = |length: usize| -> Vec<String> {
        let end = |path: &PathBuf| {
            let skipped = path.components().count().saturating_sub(length);
            path.components().skip(skipped).collect::<PathBuf>().display().to_string()
        };
        paths.iter().map(end).collect()
    };
    let is_unique =
        |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    match (1..=deepest).map(ends).find(is_unique).filter(|_| dirs.len() > 1) {
        Some(names) => names.into_iter().map(Some).collect(),
        None => vec![None; dirs.len()],
    }
}

/// Writes the report on these runs to one HTML file.
pub fn write(runs: &[LoadedRun], path: &Path, options: &Options) -> anyhow::Result<()> {
    files::replace(path, html(runs, options).as_bytes()).with_context(|| cannot_write(path))
}

/// Writes every figure as SVG, PDF and PNG, and returns the paths.
///
/// # Errors
/// One of them cannot be written.
pub fn write_figures(figures: &[Figure], folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| cannot_write(folder))?;
    let mut written = Vec::new();
    for figure in figures {
        let forms =
            [("svg", figure.svg().into_bytes()), ("pdf", figure.pdf()?), ("png", figure.png()?)];
        for (form, bytes) in forms {
            let path = folder.join(format!("{}.{form}", figure.name));
            files::replace(&path, &bytes).with_context(|| cannot_write(&path))?;
            written.push(path);
        }
    }
    Ok(written)
}

pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(paths: &[&str]) -> Vec<Option<String>> {
        labels(&paths.iter().map(PathBuf::from).collect::<Vec<_>>())
    }

    #[test]
    fn runs_are_called_by_the_shortest_ends_of_their_paths() {
        let some = |texts: &[&str]| texts.iter().map(|t| Some((*t).to_owned())).collect::<Vec<_>>();
        assert_eq!(names(&["/no/x/before", "/no/x/after"]), some(&["before", "after"]));
        assert_eq!(names(&["/no/a/r", "/no/b/r"]), some(&["a/r", "b/r"]));
        assert_eq!(names(&["/no/a/r", "/no/a/r"]), [None, None]);
        assert_eq!(names(&["/no/a/r"]), [None]);
    }
}
