//! Runs side by side: the same cells on several kernels.

use punctual_core::sections::Sections;
use punctual_core::units::grouped;

use super::between;
use super::found::{FromRun, SameKind, ends, kinds, max, sampled, share};
use super::sentence::sentence;
use crate::explanation::times::function_name;
use crate::text::{Align, Paint, Style, Table, push_parts, push_styled, push_wrapped};
use crate::words;

/// Heads of columns. As many runs fit no terminal.
const LETTERS: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

/// The runs, the longest section of each, and what they have of each kind in each cell: a column
/// for each run, or a row if that is too wide. Lines have at most `width` columns.
#[must_use]
pub fn comparison(all: &[Sections], width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    for (number, one) in all.iter().enumerate() {
        let [release, run] = [&one.release, &one.run].map(|text| words::clean(text).into_owned());
        let kernel = format!("Linux {release} {}", words::preemption_name(one.model));
        let parts = [(kernel, Style::Plain), (run, Style::Faint)];
        let letter = format!("{}  ", words::letter(number));
        push_parts(&mut out, &parts, (&letter, Style::Strong), 3, width, paint);
        push_styled(&mut out, &sentence(one), Style::Plain, ("   ", 5, width), paint);
    }
    let kinds = kinds(all);
    if !kinds.is_empty() {
        out.push('\n');
        let columns = by_columns(all.len(), &kinds).filter(|table| !table.is_squeezed(width));
        let table = columns.unwrap_or_else(|| by_rows(all.len(), &kinds));
        out.push_str(&table.render(width, paint));
    }
    between::push(&mut out, all, width, paint);
    let mut said: Vec<&str> = Vec::new();
    for caveat in all.iter().flat_map(|one| &one.caveats) {
        if !said.contains(&caveat.as_str()) {
            said.push(caveat);
            push_wrapped(&mut out, &words::clean(caveat), "  ! ", 4, width);
        }
    }
    out
}

/// What a run has of a kind; none if it does not have the cell.
pub(super) fn of_run<'a>(kind: &'a SameKind<'a>, run: usize) -> Option<&'a FromRun<'a>> {
    kind.runs.iter().find(|one| one.run == run)
}

/// The function in which the longest section began.
pub(super) fn began(one: &FromRun<'_>) -> String {
    ends(one.kind).map_or_else(|| "-".to_owned(), |(from, _)| function_name(from))
}

/// The longest section over that of the first run.
pub(super) fn ratio(kind: &SameKind<'_>, one: &FromRun<'_>) -> String {
    let base = of_run(kind, 0).map(|base| base.kind.max_ns).filter(|ns| *ns > 0);
    words::ratio(base.map(|base| one.kind.max_ns as f64 / base as f64))
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// A column for each run; none if there are too many.
fn by_columns(runs: usize, kinds: &[SameKind<'_>]) -> Option<Table> {
    let letters = LETTERS.get(..runs)?.iter().map(|letter| (*letter, Align::Right));
    let columns: Vec<_> = std::iter::once(("", Align::Left)).chain(letters).collect();
    let mut table = Table::new(&columns);
    for of_cell in kinds.chunk_by(|a, b| a.cell == b.cell) {
        let Some(first) = of_cell.first() else { continue };
        table.heading(words::key_name(first.key));
        for kind in of_cell {
            let mut row = |name: &str, style, value: &dyn Fn(&FromRun<'_>) -> String| {
                table.row(row(kind, runs, (name, style), value));
            };
            let name = words::section_name(kind.how);
            row(name, Style::Strong, &|one| or_dash(max(one.kind)));
            row("  from", Style::Plain, &began);
            row("  share of time", Style::Plain, &|one| share(one.cell, one.kind));
            row("  count", Style::Plain, &|one| grouped(one.kind.count));
        }
        // The same whatever the kind.
        let sample = |run| {
            let one = of_cell.iter().find_map(|kind| of_run(kind, run));
            (or_dash(one.and_then(|one| sampled(one.cell))), Style::Plain)
        };
        let name = std::iter::once(("largest sample".to_owned(), Style::Plain));
        table.row(name.chain((0..runs).map(sample)).collect());
    }
    Some(table)
}

fn row(
    kind: &SameKind<'_>,
    runs: usize,
    (name, style): (&str, Style),
    value: &dyn Fn(&FromRun<'_>) -> String,
) -> Vec<(String, Style)> {
    let value = |run| (or_dash(of_run(kind, run).map(value)), style);
    let name = std::iter::once((name.to_owned(), Style::Plain));
    name.chain((0..runs).map(value)).collect()
}

/// A row for each run.
fn by_rows(runs: usize, kinds: &[SameKind<'_>]) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("longest", right),
        ("ratio", right),
        ("largest sample", right),
        ("share of time", right),
        ("count", right),
        ("from", Align::Left),
    ])
    .lesser(&["largest sample", "share of time", "count"]);
    for kind in kinds {
        let name = words::section_name(kind.how);
        table.heading(format!("{} · {name}", words::key_name(kind.key)));
        for run in 0..runs {
            let plain = |text: String| (text, Style::Plain);
            let letter = plain(words::letter(run));
            let Some(one) = of_run(kind, run) else {
                table.row(vec![letter, ("-".to_owned(), Style::Doubt)]);
                continue;
            };
            let mut cells = vec![letter, (or_dash(max(one.kind)), Style::Strong)];
            cells.extend(
                [
                    ratio(kind, one),
                    or_dash(sampled(one.cell)),
                    share(one.cell, one.kind),
                    grouped(one.kind.count),
                    began(one),
                ]
                .map(plain),
            );
            table.row(cells);
        }
    }
    table
}
