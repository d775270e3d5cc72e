//! `punctual compare --exact`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::ArgMatches;
use punctual_core::compare::exact::{Candidate, Exact, Sameness, compare};
use punctual_core::units::grouped;
use punctual_report::text::push_wrapped;
use punctual_report::words;
use serde::Serialize;

use crate::ending::Ending;
use crate::{output, store};

/// Two runs and the result of their comparison.
#[derive(Serialize)]
struct Pair {
    a: PathBuf,
    b: PathBuf,
    #[serde(flatten)]
    found: Found,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Found {
    Compared(Exact),
    Unreadable { error: String },
}

/// The result over all pairs, ordered from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Overall {
    Identical,
    Refused,
    NotIdentical,
    Unreadable,
}

#[derive(Serialize)]
struct Answer {
    outcome: Overall,
    /// Why the sets were not compared at all.
    refused: Vec<String>,
    pairs: Vec<Pair>,
}

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let names: Vec<&String> = matches.get_many("runs").into_iter().flatten().collect();
    let [a, b] = names[..] else {
        bail!("compare --exact takes two runs, or two sets of runs, and not {}", names.len());
    };
    let (a, b) = (store::find(a)?, store::find(b)?);
    let (answer, text) = match (store::set(&a), store::set(&b)) {
        (None, None) => runs(a, b)?,
        (Some(of_a), Some(of_b)) => sets(&a, of_a, &b, of_b),
        (of_a, _) => {
            let (set, run) = if of_a.is_some() { (&a, &b) } else { (&b, &a) };
            bail!(
                "{} is a set of runs, and {} is not: name two runs, or two sets",
                set.display(),
                run.display()
            )
        }
    };
    if matches.get_flag("json") {
        output::print_json(&answer)?;
    } else {
        output::print(&text)?;
    }
    Ok(match answer.outcome {
        Overall::Identical => Ending::Done,
        Overall::Refused => Ending::Refused,
        Overall::NotIdentical => Ending::Different,
        Overall::Unreadable => Ending::Failed,
    })
}

fn runs(a: PathBuf, b: PathBuf) -> anyhow::Result<(Answer, String)> {
    let exact = compared(&a, &b)?;
    let text = in_full(&exact);
    let pair = Pair { a, b, found: Found::Compared(exact) };
    let answer = Answer { outcome: pair.outcome(), refused: Vec::new(), pairs: vec![pair] };
    Ok((answer, text))
}

/// Compares runs of equal names, one line each. A run that cannot be read does not keep the
/// others from being compared.
fn sets(a: &Path, of_a: Vec<PathBuf>, b: &Path, of_b: Vec<PathBuf>) -> (Answer, String) {
    let refused = [only_in(a, &of_a, &of_b), only_in(b, &of_b, &of_a)].concat();
    if !refused.is_empty() {
        let text = format!("refused: the sets hold runs of other names\n{}", indented(&refused));
        return (Answer { outcome: Overall::Refused, refused, pairs: Vec::new() }, text);
    }
    let pairs: Vec<Pair> = of_a.into_iter().zip(of_b).map(Pair::of).collect();
    let width = pairs.iter().map(|pair| pair.name().chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for pair in &pairs {
        let said = match &pair.found {
            Found::Compared(exact) => in_a_line(exact),
            Found::Unreadable { error } => format!("cannot be read: {error}"),
        };
        let said = words::clean(&said);
        if width < output::line_width() / 2 {
            let first = format!("{:width$}  ", pair.name());
            push_wrapped(&mut text, &said, &first, width + 2, output::line_width());
        } else {
            push_wrapped(&mut text, &pair.name(), "", 2, output::line_width());
            push_wrapped(&mut text, &said, "    ", 4, output::line_width());
        }
    }
    let identical = pairs.iter().filter(|pair| pair.outcome() == Overall::Identical).count();
    text.push_str(&format!("{identical} of {} runs identical\n", pairs.len()));
    let outcome = pairs.iter().map(Pair::outcome).max().unwrap_or(Overall::Identical);
    (Answer { outcome, refused, pairs }, text)
}

impl Pair {
    fn of((a, b): (PathBuf, PathBuf)) -> Self {
        let found = match compared(&a, &b) {
            Ok(exact) => Found::Compared(exact),
            Err(error) => Found::Unreadable { error: format!("{error:#}") },
        };
        Self { a, b, found }
    }

    fn name(&self) -> String {
        words::clean(&name(&self.a).to_string_lossy()).into_owned()
    }

    fn outcome(&self) -> Overall {
        match &self.found {
            Found::Compared(exact) => match exact.outcome {
                Sameness::Identical => Overall::Identical,
                Sameness::NotIdentical { .. } => Overall::NotIdentical,
                Sameness::Refused { .. } => Overall::Refused,
            },
            Found::Unreadable { .. } => Overall::Unreadable,
        }
    }
}

/// Compares two runs.
///
/// # Errors
/// One of them cannot be read.
pub fn compared(a: &Path, b: &Path) -> anyhow::Result<Exact> {
    if let (Ok(real_a), Ok(real_b)) = (a.canonicalize(), b.canonicalize())
        && real_a == real_b
    {
        let same = format!("{} and {} are one directory: name two runs", a.display(), b.display());
        return Ok(Exact::refused(vec![same], Vec::new()));
    }
    let (raw_a, raw_b) = (store::read_raw(a)?, store::read_raw(b)?);
    let (name_a, name_b) = (a.display().to_string(), b.display().to_string());
    Ok(compare(recorded(&name_a, &raw_a), recorded(&name_b, &raw_b)))
}

fn recorded<'a>(name: &'a str, raw: &'a store::Raw) -> Candidate<'a> {
    Candidate { name, run: &raw.run, json: &raw.json, files: &raw.files }
}

/// The runs of one set whose names are missing in the other.
fn only_in(set: &Path, runs: &[PathBuf], others: &[PathBuf]) -> Vec<String> {
    let lacks = |run: &&PathBuf| !others.iter().any(|other| name(other) == name(run));
    let missing = runs.iter().filter(lacks);
    missing.map(|run| format!("only in {}: {}", set.display(), name(run).display())).collect()
}

fn name(run: &Path) -> &OsStr {
    run.file_name().unwrap_or_default()
}

fn in_full(exact: &Exact) -> String {
    let mut text = String::new();
    let mut say = |first: &str, line: &str| {
        push_wrapped(
            &mut text,
            &words::clean(line),
            first,
            first.len().max(2),
            output::line_width(),
        );
    };
    match &exact.outcome {
        Sameness::Identical => say("", &in_short(exact)),
        Sameness::NotIdentical { .. } => {
            say("", &in_short(exact));
            let identical = format!(
                "identical: {} of {} cells, {} of {} bytes of records",
                exact.cells_identical,
                exact.cells,
                grouped(exact.bytes_identical as u64),
                grouped(exact.bytes as u64),
            );
            say("  ", &identical);
        }
        Sameness::Refused { refused } => {
            say("", "refused: the runs need not be identical");
            refused.iter().for_each(|reason| say("  ", reason));
        }
    }
    exact.notes.iter().for_each(|note| say("  ! ", note));
    text
}

fn in_a_line(exact: &Exact) -> String {
    let notes: Vec<_> = exact.notes.iter().map(|note| format!(" ! {note}")).collect();
    format!("{}{}", in_short(exact), notes.concat())
}

fn in_short(exact: &Exact) -> String {
    match &exact.outcome {
        Sameness::Identical => format!(
            "identical: {} {}, {} bytes of records",
            exact.cells,
            if exact.cells == 1 { "cell" } else { "cells" },
            grouped(exact.bytes as u64),
        ),
        Sameness::NotIdentical { first } => {
            let cell = first
                .cell
                .as_ref()
                .map_or_else(String::new, |cell| format!("{}: ", words::key_name(cell)));
            format!("not identical: {cell}{}", first.what)
        }
        Sameness::Refused { refused } => format!("refused: {}", refused.join("; ")),
    }
}

fn indented(lines: &[String]) -> String {
    let mut text = String::new();
    for line in lines {
        push_wrapped(&mut text, &words::clean(line), "  ", 4, output::line_width());
    }
    text
}
