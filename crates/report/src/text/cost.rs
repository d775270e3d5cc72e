//! Costs in the terminal: a table of their own, since a cost is no latency.

use punctual_core::compare::{Against, Comparison, CostRow};
use punctual_core::schema::Run;

use super::style::{Paint, Style};
use super::table::{Align, Table};
use crate::words;

/// The costs of a run; nothing if it has none.
pub fn of_run(run: &Run, width: usize, paint: Paint) -> String {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("cost", Align::Left),
        ("load", Align::Left),
        ("value", right),
        ("interval", right),
        ("spread", right),
        ("repetitions", right),
        ("ended", Align::Left),
    ])
    .lesser(&["repetitions", "spread", "ended", "interval"]);
    let mut any = false;
    let plain = |text: String| (text, Style::Plain);
    for cell in &run.cells {
        let Some(cost) = cell.cost() else { continue };
        any = true;
        let names = [words::probe_name(cell), words::load_name(&cell.load).into_owned()];
        let full = names.join(" under ");
        let mut row: Vec<_> = names.into_iter().map(plain).collect();
        let absence = words::absence(cell);
        if absence.is_none() {
            row.extend([
                (words::cost(cost), Style::Strong),
                plain(words::cost_interval(cost.unit, cost.low, cost.high)),
                plain(words::share(cost.spread)),
                plain(cost.repetitions.len().to_string()),
                plain(words::cost_end(cost).to_owned()),
            ]);
        }
        table.named_row(row, full);
        if let Some(absence) = absence {
            table.note(absence);
            continue;
        }
        let notes = words::load_note(cell).into_iter();
        let notes = notes.chain(words::counter_notes(cell)).chain(words::cell_notes(cell));
        notes.for_each(|note| table.note(note));
    }
    if any { table.render(width, paint) } else { String::new() }
}

/// Costs of several runs side by side; nothing if they have none in common.
pub fn compared(comparison: &Comparison, width: usize, paint: Paint) -> String {
    if comparison.costs.is_empty() {
        return String::new();
    }
    let right = Align::Right;
    let mut table = Table::new(&[
        ("run", Align::Left),
        ("value", right),
        ("interval", right),
        ("ratio", right),
        ("against the first", Align::Left),
    ])
    .lesser(&["interval"]);
    for cost in &comparison.costs {
        table.heading(words::key_name(&cost.key));
        for row in &cost.rows {
            table.row(vec![
                (words::letter(row.run), Style::Plain),
                (words::cost_row(cost.unit, row), Style::Strong),
                (words::cost_interval(cost.unit, row.low, row.high), Style::Plain),
                (words::ratio(row.ratio), Style::Plain),
                (words::against(row.against_first).to_owned(), style(row)),
            ]);
        }
    }
    let gap = if comparison.cells.is_empty() { "" } else { "\n" };
    format!("{gap}{}", table.render(width, paint))
}

fn style(row: &CostRow) -> Style {
    match row.against_first {
        Some(Against::Better) => Style::Good,
        Some(Against::Worse) => Style::Bad,
        Some(Against::Alike) | None => Style::Plain,
    }
}
