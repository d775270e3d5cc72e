//! What a cell found in each phase of its load.

use maud::{Markup, html};
use punctual_core::schema::Cell;
use punctual_core::units::grouped;

use super::parts::{heads, is_late, maximum, mean, ns, number};
use crate::words;

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// A row for each phase of the load and one for the changes; nothing if the load does not change.
pub fn by_phase(cell: &Cell) -> Markup {
    let rows = words::phase_rows(cell);
    let has_deadline = cell.verdict.deadline_ns.is_some();
    let mut columns =
        vec!["seconds", "max", "at", "p99.9", "p99", "p50", "avg", "min", "samples", "missed"];
    columns.extend(has_deadline.then_some("late"));
    html! {
        @if let Some(note) = words::schedule_note(cell) { p { (note) } }
        @if !rows.is_empty() {
            div class="scroll" { table {
                (heads("By phase of the load", &["phase", "load"], &columns))
                tbody { @for row in &rows {
                    @let s = &row.found.stats;
                    tr {
                        th scope="row" { (row.name) }
                        td { (row.load) }
                        (number(grouped(row.found.seconds)))
                        @if s.samples == 0 { td class="n max" { "no samples" } } @else {
                            (maximum(&ns(s.max), s.max.is_some_and(|max| is_late(cell, max))))
                        }
                        (number(or_dash(row.found.max_at_ns.map(words::instant))))
                        @for value in [s.p999, s.p99, s.p50] { (number(ns(value))) }
                        (number(mean(s.avg)))
                        (number(ns(s.min)))
                        (number(grouped(s.samples)))
                        (number(grouped(s.missed)))
                        @if has_deadline { (number(or_dash(row.found.late.map(grouped)))) }
                    }
                } }
            } }
        }
    }
}
