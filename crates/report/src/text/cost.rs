//! Costs of a run in the terminal: a table of their own, since a cost is no latency, in the
//! sections of LMbench's published summary.

use punctual_core::indices;
use punctual_core::schema::{Cell, Run};

use super::style::{Paint, Style};
use super::table::{Align, Table};
use super::wrap::push_wrapped;
use crate::words;

/// The costs of a run; nothing if it has none. `width` and `colour` as for [`super::summary`].
#[must_use]
pub fn costs(run: &Run, width: usize, colour: bool) -> String {
    of_run(run, width, Paint::new(colour))
}

/// Columns besides the name, the first to be left out last.
const COLUMNS: [(&str, Align); 7] = [
    ("value", Align::Right),
    ("interval", Align::Right),
    INSTRUCTIONS,
    ("ended", Align::Left),
    ("spread", Align::Right),
    ("repetitions", Align::Right),
    ("metric", Align::Left),
];

/// Only virtual boards count them, and not for rates.
const INSTRUCTIONS: (&str, Align) = ("instructions", Align::Right);

/// The costs of a run; nothing if it has none. Rather than cut a name it leaves out a column.
pub fn of_run(run: &Run, width: usize, paint: Paint) -> String {
    let cells: Vec<&Cell> = run.cells.iter().filter(|cell| cell.cost().is_some()).collect();
    if cells.is_empty() {
        return String::new();
    }
    let counted = cells.iter().any(|cell| cell.cost().is_some_and(|c| c.instructions.is_some()));
    let known = COLUMNS.iter().filter(|column| counted || **column != INSTRUCTIONS);
    let known: Vec<_> = known.copied().collect();
    let with = |columns: usize| table(&cells, &known[..columns]);
    let mut columns = known.len();
    while columns > 1 && with(columns).is_squeezed(width) {
        columns -= 1;
    }
    let mut out = with(columns).render(width, paint);
    out.push_str(&indices_of(run, width));
    out
}

fn table(cells: &[&Cell], columns: &[(&'static str, Align)]) -> Table {
    let heads: Vec<_> = [("cost", Align::Left)].iter().chain(columns).copied().collect();
    let mut table = Table::new(&heads);
    let parts = words::cost_parts(cells, |cell| {
        (cell.cost().map(|cost| cost.section).unwrap_or_default(), cell.load.as_str())
    });
    for (section, load, cells) in parts {
        let kinds: Vec<_> =
            cells.iter().filter_map(|cell| cell.cost()).map(|c| (c.unit, c.better)).collect();
        let head = words::cost_head(section, load, &kinds);
        table.heading(head.title.clone());
        cells.iter().for_each(|cell| push_cell(&mut table, cell, &head, columns));
    }
    table
}

fn push_cell(table: &mut Table, cell: &Cell, head: &words::CostHead, columns: &[(&str, Align)]) {
    let Some(cost) = cell.cost() else { return };
    let plain = |text: String| (text, Style::Plain);
    let name = head.row(words::cost_name(cell), cost.better);
    let full = format!("{name} ({})", words::probe_name(cell));
    let absence = words::absence(cell);
    let mut row = vec![plain(name)];
    if absence.is_none() {
        let cells = [
            (head.cost(cost.unit, cost.end, cost.value, (cost.low, cost.high)), Style::Strong),
            plain(head.interval(cost)),
            plain(cost.instructions.map_or_else(String::new, words::digits)),
            plain(words::cost_end(cost).to_owned()),
            plain(words::share(cost.spread)),
            plain(cost.repetitions.len().to_string()),
            plain(words::probe_name(cell)),
        ];
        // They may lack the instructions, and the last ones.
        let shown = COLUMNS.iter().zip(cells).filter(|(column, _)| columns.contains(column));
        row.extend(shown.map(|(_, cell)| cell));
    }
    table.named_row(row, full);
    if let Some(absence) = absence {
        table.note(absence);
        return;
    }
    let notes = words::load_note(cell).into_iter();
    let notes = notes.chain(words::counter_notes(cell)).chain(words::cell_notes(cell));
    notes.for_each(|note| table.note(note));
}

/// The indices that the run has most of the parts of.
fn indices_of(run: &Run, width: usize) -> String {
    let found = indices::of_run(run);
    let attempted: Vec<_> = found.iter().filter(|index| words::is_attempted(index)).collect();
    let mut out = String::new();
    if attempted.is_empty() {
        return out;
    }
    push_wrapped(&mut out, &format!("Indices. {}", words::index_baseline()), "  ", 2, width);
    for index in attempted {
        let text = format!("{} {}", words::index_name(index), words::index_value(index));
        push_wrapped(&mut out, &text, "  ", 4, width);
        push_wrapped(&mut out, &words::index_about(index.name), "      ", 6, width);
    }
    out
}
