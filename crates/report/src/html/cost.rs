//! What operations cost: a table of its own, since a cost is no latency.

use maud::{Markup, html};
use punctual_core::compare::{Against, Comparison, CostRow, MatchedCost};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Cost};

use super::parts::{heads, number};
use crate::words;
use crate::words::CostHead;

/// The costs of runs; several runs are told apart by their names.
pub fn section(runs: &[LoadedRun], names: &[String]) -> Markup {
    let several = runs.len() > 1;
    let rows: Vec<(usize, &Cell, &Cost)> = words::costs(runs).collect();
    let parts = words::cost_parts(&rows, |(_, cell, cost)| (cost.section, cell.load.as_str()));
    let mut columns = vec!["cost", "metric"];
    columns.extend(several.then_some("run"));
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Costs" }
                p class="about" { (words::COSTS) }
                div class="scroll" { table {
                    (heads("", &columns, &["value", "interval", "spread", "repetitions", "ended"]))
                    tbody { @for (section, load, rows) in &parts {
                        @let kinds: Vec<_> = rows.iter().map(|(_, _, cost)| (cost.unit, cost.better)).collect();
                        @let head = words::cost_head(*section, load, &kinds);
                        tr class="first" {
                            th scope="rowgroup" colspan=(columns.len() + 5) { (head.title) }
                        }
                        @for (run, cell, cost) in rows {
                            (row(cell, cost, &head, names.get(*run).filter(|_| several)))
                        }
                    } }
                } }
            }
        }
    }
}

fn row(cell: &Cell, cost: &Cost, head: &CostHead, run: Option<&String>) -> Markup {
    html! {
        tr {
            th scope="row" { (head.row(words::cost_name(cell), cost.better)) }
            td { (words::probe_name(cell)) ": " (words::clean(&cost.meaning)) }
            @if let Some(run) = run { td class="run" { (run) } }
            @if let Some(absence) = words::absence(cell) {
                td class="doubt" colspan="5" { (absence) }
            } @else {
                td class="n max" { (head.cost(cost.unit, cost.end, cost.value, (cost.low, cost.high))) }
                (number(head.interval(cost)))
                (number(words::share(cost.spread)))
                (number(cost.repetitions.len().to_string()))
                (number(words::cost_end(cost).to_owned()))
            }
        }
    }
}

/// Costs of several runs side by side; `names` are those of the runs.
pub fn compared(comparison: &Comparison, names: &[String]) -> Markup {
    html! {
        @if !comparison.costs.is_empty() {
            div class="scroll" { table {
                (heads("Costs: ratios to the first run of each", &["metric", "run"], &["value", "interval", "ratio", "against the first"]))
                tbody { @for cost in &comparison.costs {
                    @for (i, row) in cost.rows.iter().enumerate() { (compared_row(cost, i, row, names)) }
                } }
            } }
        }
    }
}

fn compared_row(cost: &MatchedCost, number_of: usize, row: &CostRow, names: &[String]) -> Markup {
    let class = match row.against_first {
        Some(Against::Better) => "n pass",
        Some(Against::Worse) => "n fail",
        Some(Against::Alike) | None => "n",
    };
    html! {
        tr class=(if number_of == 0 { "first" } else { "" }) {
            th scope="row" { @if number_of == 0 { (words::key_name(&cost.key)) } }
            td { (names.get(row.run).map_or("", String::as_str)) }
            td class="n max" { (words::cost_row(cost.unit, row)) }
            (number(words::cost_interval(cost.unit, row.low, row.high)))
            (number(words::ratio(row.ratio)))
            td class=(class) { (words::against(row.against_first)) }
        }
    }
}
