//! Runs side by side: ratios, estimates over replicates, what differs, caveats.

use maud::{Markup, html};
use punctual_core::compare::{Bearing, Comparison, Replicates};
use punctual_core::units::grouped;

use super::compared_costs;
use super::parts::{mean, ns, number};
use crate::text::{
    difference_text, episodes_text, estimate_texts, estimates_title, unmatched_texts,
};
use crate::words;

/// The comparison of several runs that are shown individually; nothing for a single run.
pub fn section(comparison: &Comparison, names: &[String]) -> Markup {
    if comparison.runs.len() < 2 {
        return html! {};
    }
    html! {
        section {
            h2 { "Side by side" }
            (caveats(comparison))
            @if !comparison.cells.is_empty() { (table(comparison, names)) }
            (compared_costs::section(comparison))
            (differences(comparison, names))
        }
    }
}

pub fn caveats(comparison: &Comparison) -> Markup {
    html! {
        @if !comparison.caveats.is_empty() {
            h3 { "What may not be concluded" }
            ul class="conditions" { @for caveat in &comparison.caveats { li { (words::clean(caveat)) } } }
        }
    }
}

pub fn differences(comparison: &Comparison, names: &[String]) -> Markup {
    if comparison.differences.is_empty() && comparison.unmatched.is_empty() {
        return html! {};
    }
    html! {
        h3 { "What differs" }
        ul {
            @for difference in &comparison.differences {
                li {
                    (difference_text(comparison, names, difference))
                    @if difference.role == Bearing::Confounder { strong { " (not the kernel)" } }
                }
            }
            @for text in unmatched_texts(comparison, names) { li { (text) } }
        }
    }
}

/// Every run of every cell; `names` are those of the runs.
pub fn table(comparison: &Comparison, names: &[String]) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption { "Ratios to the first run of each cell" }
                thead { tr {
                    th scope="col" { "cell" }
                    th scope="col" { "run" }
                    @for head in ["max", "ratio", "p99.9", "ratio", "p99", "ratio", "avg", "ratio", "min", "samples", "missed"] {
                        th scope="col" class="n" { (head) }
                    }
                } }
                tbody {
                    @for (name, cell) in words::with_phases(&comparison.cells) {
                        @for (i, row) in cell.rows.iter().enumerate() {
                            tr class=(if i == 0 { "first" } else { "" }) {
                                th scope="row" { @if i == 0 { (name) } }
                                td { (names.get(row.run).map_or("", String::as_str)) }
                                td class="n max" { @if row.samples == 0 { "no samples" } @else { (ns(row.max_ns)) } }
                                (number(words::ratio(row.ratio.max)))
                                (number(ns(row.p999_ns)))
                                (number(words::ratio(row.ratio.p999)))
                                (number(ns(row.p99_ns)))
                                (number(words::ratio(row.ratio.p99)))
                                (number(mean(row.avg_ns)))
                                (number(words::ratio(row.ratio.avg)))
                                (number(ns(row.min_ns)))
                                (number(grouped(row.samples)))
                                (number(grouped(row.missed)))
                            }
                        }
                    }
                }
            }
        }
    }
}

pub fn estimates(comparison: &Comparison, replicates: &Replicates) -> Markup {
    let names = words::kernel_names(&comparison.groups);
    let noun = words::side_noun(&comparison.groups);
    html! {
        div class="scroll" {
            table {
                caption { (estimates_title(&names, noun, replicates)) }
                thead { tr {
                    @for head in [noun, "quantity"] { th scope="col" { (head) } }
                    @for head in ["runs", "ratio", "interval", "at most", "bootstrap", "p (Holm)"] {
                        th scope="col" class="n" { (head) }
                    }
                } }
                tbody {
                    @for cell in replicates.estimates.chunk_by(|a, b| a.key == b.key) {
                        tr class="first" { th scope="rowgroup" colspan="8" { (words::key_name(&cell[0].key)) } }
                        @for estimate in cell {
                            @let [kernel, quantity, numbers @ ..] = estimate_texts(&names, estimate);
                            tr {
                                td { (kernel) }
                                td { (quantity) }
                                @for text in numbers { (number(text)) }
                            }
                        }
                    }
                }
            }
        }
        p class="about" { (words::estimates_note(replicates)) }
        @for rates in &replicates.episodes { p { (episodes_text(&names, rates)) } }
    }
}
