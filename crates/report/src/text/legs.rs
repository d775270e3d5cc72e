//! What latencies consist of, where a run was repeated for that.

use punctual_core::compare::compare;
use punctual_core::run::LoadedRun;

use super::style::{Paint, Style};
use super::table::{Align, Table};
use crate::legs::{HEADS, LegRow, cells, rows};
use crate::replicates::Kernels;
use crate::subject::{self, Subject};
use crate::words;

/// A table for each cell of which legs are known: a row for each leg, with several runs one for
/// each of them, by their letters; of kernels with replicates the runs with the largest maximum.
/// Empty if nothing is known. `width` and `colour` as for [`super::summary`].
#[must_use]
pub fn legs(runs: &[LoadedRun], width: usize, colour: bool) -> String {
    if runs.iter().all(|run| run.legs.is_none()) {
        return String::new();
    }
    let comparison = compare(runs);
    match Kernels::of(runs, &comparison) {
        Some(kernels) => {
            let note = "of each kernel the run with the largest maximum";
            let names = kernels.names.clone();
            table(&kernels.worst(), &names, Some(note), width, Paint::new(colour))
        }
        None => {
            let names: Vec<_> = (0..runs.len()).map(words::letter).collect();
            table(&subject::of_runs(runs), &names, None, width, Paint::new(colour))
        }
    }
}

fn table(
    subjects: &[Subject<'_>],
    names: &[String],
    note: Option<&str>,
    width: usize,
    paint: Paint,
) -> String {
    let is_one = names.len() < 2;
    let mut columns = vec![("leg", Align::Left)];
    if !is_one {
        columns.push(("run", Align::Left));
    }
    columns.extend(HEADS.map(|head| (head, Align::Right)));
    let mut table = Table::new(&columns).lesser(&["samples", "at", "min"]);
    let cells = cells(subjects);
    if cells.is_empty() {
        return String::new();
    }
    for cell in cells {
        let key = cell.first().map_or_else(String::new, |one| words::key_name(&one.cell.key));
        table.heading(key);
        let mut before = None;
        for LegRow { leg, run, numbers } in rows(&cell) {
            // A name that several rows have stands in the first.
            let shown = if before.as_ref() == Some(&leg) { String::new() } else { leg.clone() };
            before = Some(leg);
            let mut cells = vec![(shown, Style::Plain)];
            if !is_one {
                cells.push((names.get(run).cloned().unwrap_or_default(), Style::Plain));
            }
            let [max, rest @ ..] = numbers;
            cells.push((max, Style::Strong));
            cells.extend(rest.map(|number| (number, Style::Plain)));
            table.row(cells);
        }
    }
    if let Some(note) = note {
        table.note(note.to_owned());
    }
    format!("\n{}\n{}", paint.apply(words::LEGS_TITLE, Style::Strong), table.render(width, paint))
}
