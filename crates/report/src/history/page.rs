//! A history as one HTML file that loads nothing.

use maud::{Markup, html};
use punctual_core::history::History;

use super::table::values;
use super::{READ, figure};
use crate::html::document;
use crate::words;

/// The page: the figure, a table for each load, the kernels.
#[must_use]
pub fn page(history: &History) -> String {
    let drawn = figure(history);
    let main = html! {
        p { (READ) }
        @if let Some(drawn) = &drawn { figure { (drawn.inline()) } }
        @for board in &history.boards { p { "Measured on " (words::clean(board)) "." } }
        @for caveat in &history.caveats { p { (words::clean(caveat)) } }
        @for (number, key) in history.cells.iter().enumerate() {
            section {
                h2 { (words::key_name(key)) }
                div class="scroll" { table {
                    thead { tr {
                        th { "release" } th { "model" } th class="n" { "max" }
                        th class="n" { "p99.9" } th class="n" { "avg" }
                        th class="n" { "boots" }
                    } }
                    tbody { @for kernel in &history.kernels { tr {
                        td { (words::clean(kernel.short_release())) }
                        td { (kernel.model.as_str()) }
                        @if let Some(values) = values(kernel, number) {
                            @for value in values { td class="n" { (value) } }
                        } @else { td colspan="4" { "no samples" } }
                    } } }
                } }
            }
        }
        section {
            h2 { "Kernels" }
            div class="scroll" { table {
                thead { tr { th { "release" } th { "version" } } }
                tbody { @for kernel in &history.kernels { tr {
                    td { (words::clean(&kernel.release)) }
                    td { (words::clean(&kernel.version)) }
                } } }
            } }
        }
    };
    document("Latency by release and preemption model", &Markup::default(), &main)
}
