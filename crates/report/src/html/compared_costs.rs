//! Costs side by side: the published layout, ratios, what they come to, and latency beside cost.

use maud::{Markup, html};
use punctual_core::compare::{Against, Comparison, MatchedCost, ToFirst};

use super::parts::{heads, number};
use crate::cost_sides::{self, Side};
use crate::words;
use crate::words::CostHead;

/// Costs of several runs side by side; nothing if they have none in common.
pub fn section(comparison: &Comparison) -> Markup {
    let sides = cost_sides::of(comparison);
    let names: Vec<_> = sides.iter().map(|side| side.name.clone()).collect();
    let parts = words::compared_parts(&comparison.costs);
    html! {
        @if !comparison.costs.is_empty() {
            h3 { "What it costs" }
            @if !comparison.has_costs_by_kernel() { (letters(comparison, &names)) }
            @for mean in &comparison.cost_means { p { b { (words::mean_sentence(&names, mean)) } } }
            (trade(comparison))
            @for part in &parts { (as_published(part, &sides)) }
            (ratios(&parts, &sides))
            p class="about" { (cost_sides::about(comparison)) }
            @let absences = cost_sides::absences(comparison, &sides);
            @if !absences.is_empty() { ul { @for note in &absences { li { (note) } } } }
            (index_rows(comparison, &names))
        }
    }
}

/// Which run a letter stands for.
fn letters(comparison: &Comparison, names: &[String]) -> Markup {
    html! {
        ul { @for (name, run) in names.iter().zip(&comparison.runs) {
            li { (name) ": " (words::clean(run.label.as_deref().unwrap_or(&run.run_id))) }
        } }
    }
}

/// A row for each kernel and a column for each metric.
fn as_published((head, costs): &(CostHead, Vec<&MatchedCost>), sides: &[Side]) -> Markup {
    let columns: Vec<String> =
        costs.iter().map(|cost| head.row(cost.name(), cost.better)).collect();
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    html! {
        div class="scroll" { table {
            (heads(&head.title, &["kernel"], &columns))
            tbody { @for side in sides {
                tr {
                    th scope="row" { (side.name) }
                    @for cost in costs { (number(side.value(cost, head))) }
                }
                @let counts: Vec<_> = costs.iter().map(|cost| side.instructions(cost)).collect();
                @if counts.iter().any(|count| !count.is_empty()) { tr class="thread" {
                    th scope="row" { "  instructions" }
                    @for count in counts { (number(count)) }
                } }
            } }
        } }
    }
}

/// A row for each metric, with the ratios of every other kernel.
fn ratios(parts: &[(CostHead, Vec<&MatchedCost>)], sides: &[Side]) -> Markup {
    let Some((first, others)) = sides.split_first().filter(|(_, others)| !others.is_empty()) else {
        return html! {};
    };
    let mut columns = vec![first.name.as_str()];
    for side in others {
        columns.extend([side.name.as_str(), "ratio", "interval", "against the first"]);
    }
    html! {
        div class="scroll" { table {
            (heads(&format!("Ratios of costs to {}", first.name), &["cost"], &columns))
            tbody { @for (head, costs) in parts {
                tr class="first" { th scope="rowgroup" colspan=(columns.len() + 1) { (head.title) } }
                @for cost in costs { tr {
                    th scope="row" { (head.row(cost.name(), cost.better)) }
                    (number(first.value(cost, head)))
                    @for side in others {
                        @let to_first = side.to_first(cost);
                        (number(side.value(cost, head)))
                        td class=(class(&to_first)) { (words::cost_ratio(to_first.ratio)) }
                        (number(words::ratio_interval(&to_first)))
                        td class=(class(&to_first)) { (against(&to_first)) }
                    }
                } }
            } }
        } }
    }
}

fn class(to_first: &ToFirst) -> &'static str {
    match to_first.against_first {
        Some(Against::Better) => "n pass",
        Some(Against::Worse) => "n fail",
        Some(Against::Alike) | None => "n",
    }
}

const fn against(to_first: &ToFirst) -> &'static str {
    match to_first.against_first {
        Some(Against::Better) => "better",
        Some(Against::Worse) => "worse",
        Some(Against::Alike) => "not shown to differ",
        None => "-",
    }
}

fn trade(comparison: &Comparison) -> Markup {
    let names = words::kernel_names(&comparison.groups);
    html! {
        @if !comparison.trade.is_empty() {
            p class="about" { (words::trade_about(&comparison.trade)) }
            div class="scroll" { table {
                (heads("Latency and cost", &["kernel", "latest"], &["cost"]))
                tbody { @for one in &comparison.trade { tr {
                    th scope="row" { (names.get(one.group).map_or("", String::as_str)) }
                    td { (words::trade_latency(one)) }
                    td class="n max" { (words::cost_ratio(Some(one.cost))) }
                } } }
            } }
        }
    }
}

fn index_rows(comparison: &Comparison, names: &[String]) -> Markup {
    let rows = words::index_rows(comparison);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    html! {
        @if !rows.is_empty() {
            div class="scroll" { table {
                (heads("Indices", &["index"], &names))
                tbody { @for row in &rows { tr {
                    th scope="row" { (row.name) }
                    @for text in &row.texts { (number(text.clone())) }
                } } }
            } }
            p class="about" { (words::index_baseline()) }
            ul { @for same in rows.chunk_by(|a, b| a.index == b.index) { li { (words::index_about(&same[0].index)) } } }
        }
    }
}
