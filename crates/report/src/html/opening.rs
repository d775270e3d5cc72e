//! The table that a report of several runs or sides opens with: what they are, how late each is,
//! and whether that is good enough.

use maud::{Markup, html};
use punctual_core::compare::Comparison;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Outcome};
use punctual_core::units::human_ns;

use super::parts::{broken, class, is_late, maximum, number};
use crate::replicates::Kernels;
use crate::words;

/// A side, or a run.
struct Line {
    name: String,
    /// Its kernel, its board and the settings that differ.
    about: String,
    max: Option<Largest>,
    outcomes: Vec<(Outcome, String)>,
    /// What weakens it.
    labels: Vec<&'static str>,
}

/// The largest sample of a side or run, over all of its cells.
struct Largest {
    ns: i64,
    is_late: bool,
    cell: String,
    /// The longer a cell was measured, the larger its maximum is.
    duration_ns: u64,
}

/// A line for every run; nothing for a single run.
pub fn of_runs(runs: &[LoadedRun], comparison: &Comparison, names: &[String]) -> Markup {
    if runs.len() < 2 {
        return html! {};
    }
    let lines = runs.iter().zip(names).enumerate().map(|(number, (run, name))| Line {
        name: name.clone(),
        about: about(comparison, &[number]),
        max: largest([run].into_iter()),
        outcomes: vec![(run.run.verdict.outcome, words::run_outcome(&run.run).to_owned())],
        labels: words::labels(&run.run),
    });
    table("run", &lines.collect::<Vec<_>>())
}

/// A line for every side.
pub fn of_kernels(kernels: &Kernels<'_>) -> Markup {
    let groups = kernels.comparison.groups.iter().zip(&kernels.names);
    let lines = groups.map(|(group, name)| Line {
        name: format!("{name} ({})", words::runs(group.runs.len())),
        about: about(kernels.comparison, &group.runs),
        max: largest(group.runs.iter().filter_map(|run| kernels.runs.get(*run))),
        outcomes: words::outcomes(kernels.comparison, group),
        labels: words::side_labels(kernels.comparison, group),
    });
    let noun = words::side_noun(&kernels.comparison.groups);
    table(noun, &lines.collect::<Vec<_>>())
}

fn about(comparison: &Comparison, runs: &[usize]) -> String {
    let mut parts = vec![words::kernels(comparison, runs), words::boards(comparison, runs)];
    parts.extend(words::settings(comparison, runs));
    parts.join(" · ")
}

fn largest<'a>(runs: impl Iterator<Item = &'a LoadedRun>) -> Option<Largest> {
    let cells = runs.flat_map(|run| &run.run.cells);
    let maxima = cells.filter_map(|cell| Some((cell.max_ns()?, cell)));
    let (ns, cell): (i64, &Cell) = maxima.max_by_key(|(max, _)| *max)?;
    Some(Largest {
        ns,
        is_late: is_late(cell, ns),
        cell: words::cell_name(cell),
        duration_ns: cell.duration_ns,
    })
}

#[allow(clippy::cast_precision_loss, reason = "a ratio of latencies needs no 16th digit")]
fn ratio(max: &Largest, first: Option<&Largest>) -> Option<f64> {
    let first = first.filter(|first| first.ns > 0 && first.duration_ns == max.duration_ns)?;
    (max.ns > 0).then(|| max.ns as f64 / first.ns as f64)
}

fn table(of: &str, lines: &[Line]) -> Markup {
    let first = lines.first().and_then(|line| line.max.as_ref());
    // Runs with costs only have none, and the verdict says if nothing else was measured.
    let has_latencies = lines.iter().any(|line| line.max.is_some());
    html! {
        div class="scroll" { table class="opening" {
            thead { tr {
                th scope="col" { (of) }
                th scope="col" { "verdict" }
                @if has_latencies {
                    @for head in ["largest latency", "ratio"] { th scope="col" class="n" { (head) } }
                    th scope="col" { "in" }
                }
            } }
            tbody { @for line in lines {
                tr {
                    th scope="row" {
                        (broken(&line.name))
                        br;
                        span class="soft" { (broken(&line.about)) }
                    }
                    td { @for (i, (outcome, text)) in line.outcomes.iter().enumerate() {
                        @if i > 0 { ", " }
                        span class=(class(*outcome)) { (text) }
                    }
                    @for label in &line.labels { ", " span class="doubt" { (label) } } }
                    @if let Some(max) = &line.max {
                        (maximum(&human_ns(max.ns), max.is_late))
                        (number(words::ratio(ratio(max, first))))
                        td { (broken(&max.cell)) }
                    } @else if has_latencies {
                        td class="doubt" colspan="3" { "no samples" }
                    }
                }
            } }
        } }
    }
}
