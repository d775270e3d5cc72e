//! What a cell found in each phase of its load, in the terminal.

use punctual_core::schema::Cell;
use punctual_core::units::grouped;

use super::style::{Paint, Style};
use super::table::{Align, Table};
use super::wrap::push_wrapped;
use crate::words;

/// The schedule of the load and a row for each phase; nothing if the load does not change.
pub fn by_phase(cell: &Cell, width: usize, paint: Paint) -> String {
    let mut out = String::new();
    let Some(note) = words::schedule_note(cell) else { return out };
    push_wrapped(&mut out, &note, "  ", 4, width);
    let right = Align::Right;
    let has_deadline = cell.verdict.deadline_ns.is_some();
    let mut columns = vec![
        ("phase", Align::Left),
        ("load", Align::Left),
        ("seconds", right),
        ("max", right),
        ("at", right),
        ("p99.9", right),
        ("p99", right),
        ("p50", right),
        ("avg", right),
        ("min", right),
        ("samples", right),
        ("missed", right),
    ];
    columns.extend(has_deadline.then_some(("late", right)));
    let mut table = Table::new(&columns);
    for row in words::phase_rows(cell) {
        let (found, s) = (row.found, &row.found.stats);
        let plain = |text: String| (text, Style::Plain);
        let value = |value| plain(words::value(punctual_core::schema::Unit::Ns, value));
        let or_none = |text: Option<String>| plain(text.unwrap_or_else(|| "-".to_owned()));
        let (max, _) = value(s.max);
        let full = format!("{}: {}", row.name, row.load);
        let mut cells = vec![
            plain(row.name),
            plain(row.load),
            plain(grouped(found.seconds)),
            if s.samples == 0 { ("none".to_owned(), Style::Doubt) } else { (max, Style::Strong) },
            or_none(found.max_at_ns.map(words::instant)),
            value(s.p999),
            value(s.p99),
            value(s.p50),
            or_none(s.avg.map(words::mean_ns)),
            value(s.min),
            plain(grouped(s.samples)),
            plain(grouped(s.missed)),
        ];
        if has_deadline {
            cells.push(or_none(found.late.map(grouped)));
        }
        table.named_row(cells, full);
    }
    out.push_str(&table.render_whole(2, width, paint));
    out
}
