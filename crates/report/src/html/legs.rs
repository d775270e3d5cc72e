//! What latencies consist of, where runs were repeated for that.

use maud::{Markup, html};

use super::parts::{heads, number};
use crate::legs::{HEADS, cells, rows};
use crate::subject::Subject;
use crate::words;

/// A table for each cell of which legs are known; nothing if there is none. `names` are those of
/// runs or kernels, by the numbers of the subjects.
pub fn section(subjects: &[Subject<'_>], names: &[String]) -> Markup {
    let cells = cells(subjects);
    let several = names.len() > 1;
    let words = if several { &["leg", "kernel"][..] } else { &["leg"] };
    html! {
        @if !cells.is_empty() {
            section {
                h2 { (words::LEGS_TITLE) }
                p class="about" { "Every guest was repeated, watched, and came out identical." @for until in words::LEGS { " " b { (words::leg_title(until)) } ": " (words::leg_meaning(until)) "." } }
                @for cell in &cells {
                    @let caption = cell.first().map_or_else(String::new, |one| words::key_name(&one.cell.key));
                    @let rows = rows(cell);
                    div class="scroll" { table {
                        (heads(&caption, words, &HEADS))
                        tbody { @for (n, row) in rows.iter().enumerate() {
                            @let is_first = n == 0 || rows[n - 1].leg != row.leg;
                            tr class=(if is_first && several { "first" } else { "" }) {
                                th scope="row" { @if is_first { (row.leg) } }
                                @if several { td { (names.get(row.run).map_or("", String::as_str)) } }
                                td class="n max" { (row.numbers[0]) }
                                @for text in &row.numbers[1..] { (number(text.clone())) }
                            }
                        } }
                    } }
                }
            }
        }
    }
}
