//! A history as one HTML file that loads nothing.

use maud::{DOCTYPE, PreEscaped, html};
use punctual_core::history::History;

use super::table::values;
use super::{READ, figure};
use crate::html::{STYLE, with_micro};
use crate::{figure as figures, words};

/// The page: the figure, a table for each load, the kernels.
#[must_use]
pub fn page(history: &History) -> String {
    let drawn = figure(history);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Latency by release and preemption model" }
                style { (PreEscaped(figures::style())) (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { "Latency by release and preemption model" } }
                main {
                    p { (READ) }
                    @if let Some(drawn) = &drawn { figure { (drawn.inline()) } }
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
                }
            }
        }
    };
    with_micro(&page.into_string())
}
