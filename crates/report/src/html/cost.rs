//! What operations cost: a table of its own, since a cost is no latency.

use maud::{Markup, html};
use punctual_core::indices;
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Cost};

use super::parts::{heads, number};
use crate::words;
use crate::words::CostHead;

/// The costs of runs; several runs are told apart by their names.
pub fn section(runs: &[LoadedRun], names: &[String]) -> Markup {
    let several = runs.len() > 1;
    let rows: Vec<(usize, &Cell, &Cost)> = words::costs(runs).collect();
    let counted = rows.iter().any(|(.., cost)| cost.instructions.is_some());
    let parts = words::cost_parts(&rows, |(_, cell, cost)| (cost.section, cell.load.as_str()));
    let mut columns = vec!["cost", "metric"];
    columns.extend(several.then_some("run"));
    let mut numbers = vec!["value", "interval", "spread", "repetitions", "ended"];
    numbers.extend(counted.then_some("instructions"));
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Costs" }
                p class="about" { (words::COSTS) }
                div class="scroll" { table {
                    (heads("", &columns, &numbers))
                    tbody { @for (section, load, rows) in &parts {
                        @let kinds: Vec<_> = rows.iter().map(|(_, _, cost)| (cost.unit, cost.better)).collect();
                        @let head = words::cost_head(*section, load, &kinds);
                        tr class="first" {
                            th scope="rowgroup" colspan=(columns.len() + numbers.len()) { (head.title) }
                        }
                        @for (run, cell, cost) in rows {
                            (row(cell, cost, &head, names.get(*run).filter(|_| several), counted))
                        }
                    } }
                } }
                @if !several { (index_list(runs)) }
            }
        }
    }
}

fn row(cell: &Cell, cost: &Cost, head: &CostHead, run: Option<&String>, counted: bool) -> Markup {
    html! {
        tr {
            th scope="row" { (head.row(words::cost_name(cell), cost.better)) }
            td { (words::probe_name(cell)) ": " (words::clean(&cost.meaning)) }
            @if let Some(run) = run { td class="run" { (run) } }
            @if let Some(absence) = words::absence(cell) {
                td class="doubt" colspan=(5 + usize::from(counted)) { (absence) }
            } @else {
                td class="n max" { (head.cost(cost.unit, cost.end, cost.value, (cost.low, cost.high))) }
                (number(head.interval(cost)))
                (number(words::share(cost.spread)))
                (number(cost.repetitions.len().to_string()))
                (number(words::cost_end(cost).to_owned()))
                @if counted { (number(cost.instructions.map_or_else(String::new, words::digits))) }
            }
        }
    }
}

/// The indices that a run has most of the parts of.
fn index_list(runs: &[LoadedRun]) -> Markup {
    let found = runs.iter().flat_map(|run| indices::of_run(&run.run));
    let attempted: Vec<_> = found.filter(words::is_attempted).collect();
    html! {
        @if !attempted.is_empty() {
            h3 { "Indices" }
            p class="about" { (words::index_baseline()) }
            ul { @for index in &attempted {
                li {
                    b { (words::index_name(index)) " " (words::index_value(index)) }
                    " – " (words::index_about(index.name))
                }
            } }
        }
    }
}
