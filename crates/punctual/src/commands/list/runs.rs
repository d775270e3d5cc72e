//! `punctual list runs`: what runs there are, when they were made and what they came to.

use std::path::{Path, PathBuf};

use anyhow::ensure;
use punctual_core::judge::{judge_record, needs_recordings};
use punctual_core::schema::{Cell, CellState, Outcome, Run, RunState};
use punctual_core::units::human_ns;
use punctual_report::text::{Align, Paint, Style, Table, push_wrapped};
use punctual_report::{describe, words};
use serde::Serialize;

use crate::{output, store};

/// A run in the form of the JSON output.
#[derive(Serialize)]
pub(super) struct RunEntry {
    /// What it can be called by.
    name: String,
    /// Why it cannot be read.
    error: Option<String>,
    #[serde(flatten)]
    facts: Option<Facts>,
}

#[derive(Serialize)]
struct Facts {
    /// When it was started, s since 1970; 0 if that is not known.
    started_s: u64,
    /// How long its cells were to be measured, ns.
    duration_ns: u64,
    /// How long they were measured, ns: less if the run was cut short.
    measured_ns: u64,
    max_ns: Option<i64>,
    /// The outcome, in the word of `run.json`.
    outcome: Outcome,
    /// The same in the word of texts.
    #[serde(skip)]
    called: &'static str,
    simulated: Option<&'static str>,
    /// What weakens its verdict.
    labels: Vec<&'static str>,
    cells: usize,
    plan: String,
}

/// The runs in `folders`, or in [`store::RUNS`] if there are none. A folder is a run, a set of
/// runs, or contains such.
///
/// # Errors
/// A folder does not exist.
pub(super) fn find(folders: &[PathBuf]) -> anyhow::Result<Vec<RunEntry>> {
    if folders.is_empty() {
        return Ok(store::all().iter().map(|path| entry(path)).collect());
    }
    let mut found = Vec::new();
    for folder in folders {
        ensure!(folder.is_dir(), "{}: there is no such folder", folder.display());
        found.extend(store::within(folder).iter().map(|path| entry(path)));
    }
    Ok(found)
}

fn entry(path: &Path) -> RunEntry {
    let name = path.strip_prefix(store::RUNS).unwrap_or(path).to_string_lossy().into_owned();
    match judged(path) {
        Ok(run) => RunEntry { name, error: None, facts: Some(facts(&run)) },
        Err(error) => RunEntry { name, error: Some(format!("{error:#}")), facts: None },
    }
}

/// A run, judged as `punctual show` would, mostly without its recordings.
fn judged(path: &Path) -> anyhow::Result<Run> {
    let mut run = store::read_run(path)?;
    // One that still measures cannot be read whole.
    if (run.state == RunState::Running || needs_recordings(&run))
        && let Ok(loaded) = store::load(path)
    {
        return Ok(loaded.run);
    }
    judge_record(&mut run);
    Ok(run)
}

fn facts(run: &Run) -> Facts {
    Facts {
        started_s: words::started_ns(run) / 1_000_000_000,
        duration_ns: describe::total_ns(&run.cells),
        measured_ns: measured_ns(run),
        max_ns: run.cells.iter().filter_map(Cell::max_ns).max(),
        outcome: run.verdict.outcome,
        called: words::run_outcome(run),
        simulated: words::simulated_run(run),
        labels: words::labels(run),
        cells: run.cells.len(),
        plan: words::clean(&run.plan.name).into_owned(),
    }
}

/// How long all cells were measured, ns.
fn measured_ns(run: &Run) -> u64 {
    let cells = run.cells.iter().enumerate().map(|(number, cell)| {
        let ends_early =
            run.plan.cells.get(number).is_some_and(|planned| planned.samples.is_some());
        match cell.state {
            CellState::Complete if !ends_early => cell.duration_ns,
            _ => until_its_end_ns(cell).min(cell.duration_ns),
        }
    });
    cells.fold(0, u64::saturating_add)
}

/// How long a cell was measured that has not lasted as long as it was to, ns: by its releases, or
/// by the clock if it has no interval.
fn until_its_end_ns(cell: &Cell) -> u64 {
    if !cell.is_measured() {
        return 0;
    }
    let scheduled = cell.threads().iter().map(|thread| thread.stats.scheduled).max();
    let by_releases = scheduled.zip(cell.interval_ns()).map(|(n, ns)| n.saturating_mul(ns));
    by_releases
        .or_else(|| {
            let (started, ended) = (cell.started.as_ref()?, cell.ended.as_ref()?);
            Some(ended.monotonic_ns.saturating_sub(started.monotonic_ns))
        })
        .unwrap_or(cell.duration_ns)
}

/// The list for people, with where it looked.
pub(super) fn section(runs: &[RunEntry], folders: &[PathBuf]) -> String {
    let width = output::width();
    let places = match folders {
        [] => format!("./{}", store::RUNS),
        folders => folders.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", "),
    };
    let mut out = String::new();
    push_wrapped(&mut out, &words::clean(&format!("runs in {places}")), "", 2, width);
    if runs.is_empty() {
        out.push_str("  none\n");
    } else {
        out.push_str(&table(runs).render(width, Paint::new(output::colour())));
    }
    if folders.is_empty() {
        let elsewhere = "Runs that --out put elsewhere: punctual list runs DIR";
        push_wrapped(&mut out, elsewhere, "", 2, width);
    }
    out
}

fn table(runs: &[RunEntry]) -> Table {
    let right = Align::Right;
    let columns = [
        ("started (UTC)", right),
        ("measured", right),
        ("max", right),
        ("verdict", Align::Left),
        ("cells", right),
        ("plan", Align::Left),
    ];
    let mut table = Table::new(&columns).lesser(&["plan", "cells"]);
    for run in runs {
        // A name that is cut cannot be typed.
        table.heading(words::clean(&run.name).into_owned());
        if let Some(error) = &run.error {
            table.note(words::clean(error).into_owned());
        }
        if let Some(facts) = &run.facts {
            let full = format!("{}: {}", verdict(facts), facts.plan);
            table.named_row(cells(facts).map(|text| (text, Style::Plain)).into(), full);
        }
    }
    table
}

fn verdict(facts: &Facts) -> String {
    words::labelled(facts.called, &facts.labels)
}

fn cells(facts: &Facts) -> [String; 6] {
    let started = words::utc(facts.started_s.saturating_mul(1_000_000_000));
    [
        started.map_or_else(|| "-".to_owned(), |text| text[..16].to_owned()),
        describe::extent(facts.measured_ns),
        facts.max_ns.map_or_else(|| "-".to_owned(), human_ns),
        verdict(facts),
        facts.cells.to_string(),
        facts.plan.clone(),
    ]
}
