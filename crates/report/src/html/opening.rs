//! The table that a report of several runs or kernels opens with: who is how late, and is that
//! good enough.

use maud::{Markup, html};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Outcome};
use punctual_core::units::human_ns;

use super::parts::{broken, class, number};
use crate::replicates::Kernels;
use crate::words;

/// A kernel, or a run.
struct Line {
    name: String,
    /// The largest sample, whether that is later than the deadline, and its cell.
    max: Option<(i64, bool, String)>,
    outcomes: Vec<(Outcome, String)>,
}

/// A line for every run; nothing for a single run.
pub fn of_runs(runs: &[LoadedRun], names: &[String]) -> Markup {
    if runs.len() < 2 {
        return html! {};
    }
    let lines = runs.iter().zip(names).map(|(run, name)| {
        let outcome = run.run.verdict.outcome;
        Line {
            name: name.clone(),
            max: largest([run].into_iter()),
            outcomes: vec![(outcome, words::outcome(outcome).to_owned())],
        }
    });
    table("run", &lines.collect::<Vec<_>>())
}

/// A line for every kernel.
pub fn of_kernels(kernels: &Kernels<'_>) -> Markup {
    let groups = kernels.comparison.groups.iter().zip(&kernels.names);
    let lines = groups.map(|(group, name)| Line {
        name: format!("{name} ({})", words::runs(group.runs.len())),
        max: largest(group.runs.iter().filter_map(|run| kernels.runs.get(*run))),
        outcomes: words::outcomes(&kernels.comparison, group),
    });
    table("kernel", &lines.collect::<Vec<_>>())
}

fn largest<'a>(runs: impl Iterator<Item = &'a LoadedRun>) -> Option<(i64, bool, String)> {
    let cells = runs.flat_map(|run| &run.run.cells);
    let maxima = cells.filter_map(|cell| Some((cell.max_ns()?, cell)));
    let (max, cell): (i64, &Cell) = maxima.max_by_key(|(max, _)| *max)?;
    Some((max, super::parts::is_late(cell, max), words::cell_name(cell)))
}

#[allow(clippy::cast_precision_loss, reason = "a ratio of latencies needs no 16th digit")]
fn ratio(max: i64, first: Option<i64>) -> Option<f64> {
    let first = first.filter(|first| *first > 0)?;
    (max > 0).then(|| max as f64 / first as f64)
}

fn table(of: &str, lines: &[Line]) -> Markup {
    let first = lines.first().and_then(|line| line.max.as_ref()).map(|(max, ..)| *max);
    html! {
        div class="scroll" { table class="opening" {
            thead { tr {
                th scope="col" { (of) }
                th scope="col" { "verdict" }
                @for head in ["largest latency", "ratio"] { th scope="col" class="n" { (head) } }
                th scope="col" { "in" }
            } }
            tbody { @for line in lines {
                tr {
                    th scope="row" { (broken(&line.name)) }
                    td { @for (i, (outcome, text)) in line.outcomes.iter().enumerate() {
                        @if i > 0 { ", " }
                        span class=(class(*outcome)) { (text) }
                    } }
                    @if let Some((max, late, cell)) = &line.max {
                        td class=(if *late { "n max late" } else { "n max" }) { (human_ns(*max)) }
                        (number(words::ratio(ratio(*max, first))))
                        td { (broken(cell)) }
                    } @else {
                        td class="doubt" colspan="3" { "no samples" }
                    }
                }
            } }
        } }
    }
}
