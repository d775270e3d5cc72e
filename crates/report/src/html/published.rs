//! Runs beside a publication, on the page.

use maud::{Markup, html};
use punctual_core::units::human_ns;

use super::parts::{heads, number};
use crate::published::PublishedBeside;
use crate::words;

/// Costs and latencies beside those of a publication, with what is doubtful about them.
pub fn section(beside: &PublishedBeside) -> Markup {
    html! {
        section {
            h2 { "Published: " (beside.citation.name) }
            p { (beside.citation.title) }
            p class="about" { (beside.platforms.join("; ")) }
            ul class="conditions" {
                li { (words::PUBLISHED) }
                @for doubt in beside.citation.doubts { li { (doubt) } }
            }
            (costs(beside))
            (latencies(beside))
        }
    }
}

fn costs(beside: &PublishedBeside) -> Markup {
    let columns: Vec<&str> =
        beside.runs.iter().chain(&beside.kernels).map(String::as_str).collect();
    html! {
        @if !beside.costs.is_empty() {
            div class="scroll" { table {
                (heads("Costs", &["cost"], &columns))
                tbody { @for (title, costs) in beside.parts() {
                    tr class="first" { th scope="rowgroup" colspan=(columns.len() + 1) { (title) } }
                    @for (name, cost) in costs { tr {
                        th scope="row" { (name) }
                        @let [runs, published] = PublishedBeside::values(cost);
                        @for value in runs { td class="n max" { (value) } }
                        @for value in published { (number(value)) }
                    } }
                } }
            } }
            ul class="conditions" { @for doubt in beside.cost_doubts() { li { (doubt) } } }
        }
    }
}

fn latencies(beside: &PublishedBeside) -> Markup {
    let value = |ns: Option<i64>| ns.map_or_else(|| "–".to_owned(), human_ns);
    html! {
        @if !beside.published.is_empty() {
            div class="scroll" { table {
                (heads("Latencies", &["kernel", "test", "load", "duration"], &["max", "avg", "min"]))
                tbody {
                    @for cell in &beside.measured {
                        @let parts: Vec<&str> = cell.key.split(punctual_core::key::BETWEEN).collect();
                        @let part = |at: usize| parts.get(at).copied().unwrap_or_default();
                        tr {
                            th scope="row" { (beside.runs.get(cell.run).map_or("", String::as_str)) }
                            td { (words::clean(part(0))) }
                            td { (words::load_name(part(1))) }
                            td { (words::clean(part(2))) }
                            td class="n max" { (value(cell.max_ns)) }
                            (number(cell.avg_ns.map_or_else(|| "–".to_owned(), words::mean_ns)))
                            (number(value(cell.min_ns)))
                        }
                    }
                    tr class="first" { th scope="rowgroup" colspan="7" { "As published" } }
                    @for latency in &beside.published {
                        tr {
                            th scope="row" { (latency.kernel) " on " (latency.platform) }
                            td { (latency.test) }
                            td { (latency.load) }
                            td { (latency.duration) }
                            @for value in [&latency.max, &latency.avg, &latency.min] {
                                (number(value.as_ref().map_or_else(|| "–".to_owned(), |v| format!("{v} {}", latency.unit))))
                            }
                        }
                        @if let Some(note) = &latency.note {
                            tr class="note" { td colspan="7" { "! " (note) } }
                        }
                    }
                }
            } }
        }
    }
}
