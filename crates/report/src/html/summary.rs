//! The summary table: the maximum first, a row for every cell and thread.

use maud::{Markup, html};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Stats, Thread};
use punctual_core::units::{grouped, human_ns};

use super::{class, mean, ns, number};
use crate::words;

pub fn section(runs: &[LoadedRun], names: &[String]) -> Markup {
    let several = runs.len() > 1;
    let rows = ordered(runs);
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Summary" }
                div class="scroll" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "probe · load" }
                                @if several { th scope="col" { "run" } }
                                th scope="col" { "CPU" }
                                @for head in ["max", "p99.9", "p99", "avg", "min", "samples", "missed", "early"] {
                                    th scope="col" class="n" { (head) }
                                }
                                th scope="col" class="n" { "corrected p99.9" }
                                th scope="col" { "verdict" }
                            }
                        }
                        tbody { @for (run, cell) in rows { (cell_rows(cell, names.get(run).filter(|_| several))) } }
                    }
                }
            }
        }
    }
}

/// Cells with their runs' numbers, cells of equal keys next to each other.
pub fn ordered(runs: &[LoadedRun]) -> Vec<(usize, &Cell)> {
    let mut list: Vec<(usize, &Cell)> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        list.extend(run.run.cells.iter().filter(|c| c.kind != "cost").map(|cell| (i, cell)));
    }
    let keys: Vec<&str> = list.iter().map(|(_, cell)| cell.key.as_str()).collect();
    let mut order: Vec<_> = list
        .iter()
        .map(|(run, cell)| (keys.iter().position(|key| *key == cell.key), *run, *cell))
        .collect();
    order.sort_by_key(|(key, run, _)| (*key, *run));
    order.into_iter().map(|(_, run, cell)| (run, cell)).collect()
}

fn cell_rows(cell: &Cell, run: Option<&String>) -> Markup {
    let columns = 11 + usize::from(run.is_some());
    let notes = notes(cell);
    html! {
        tr class="first" {
            th scope="row" { (words::cell_name(cell)) }
            @if let Some(run) = run { td class="run" { (run) } }
            @if let Some(absence) = words::absence(cell) {
                td class="doubt" colspan=(columns - usize::from(run.is_some())) { (absence) }
            } @else {
                td { @if let [one] = &cell.threads[..] { (words::cpu_name(one)) } @else { "all" } }
                (numbers(&cell.stats))
                td class=(class(cell.verdict.outcome)) { (words::outcome(cell.verdict.outcome)) }
            }
        }
        @if words::absence(cell).is_none() {
            @if cell.threads.len() > 1 { @for thread in &cell.threads { (thread_row(thread, run)) } }
            @if !notes.is_empty() {
                tr class="note" { td colspan=(columns + 1) { div { (notes.join(" · ")) } } }
            }
        }
    }
}

fn thread_row(thread: &Thread, run: Option<&String>) -> Markup {
    html! {
        tr class="thread" {
            th scope="row" { "  thread " (thread.thread) }
            @if run.is_some() { td {} }
            td { (words::cpu_name(thread)) }
            (numbers(&thread.stats))
            td class=(class(thread.verdict.outcome)) { (words::outcome(thread.verdict.outcome)) }
        }
    }
}

fn numbers(stats: &Stats) -> Markup {
    html! {
        @if stats.samples == 0 {
            td class="doubt" colspan="5" { "no samples" }
        } @else {
            td class="n max" { (ns(stats.max_ns)) }
            (number(ns(stats.p999_ns)))
            (number(ns(stats.p99_ns)))
            (number(mean(stats.avg_ns)))
            (number(ns(stats.min_ns)))
        }
        (number(grouped(stats.samples)))
        (number(grouped(stats.missed)))
        (number(grouped(stats.early)))
        (number(ns(stats.corrected.p999_ns)))
    }
}

fn notes(cell: &Cell) -> Vec<String> {
    let mut notes = Vec::new();
    if !cell.load_work.is_empty() {
        let parts: Vec<_> = cell.load_work.iter().map(words::work).collect();
        notes.push(format!("load: {}", parts.join(" · ")));
    }
    if let Some(ns) = cell.warmup_max_ns {
        notes.push(format!("warm-up max {}", human_ns(ns)));
    }
    notes.extend(words::cell_notes(cell));
    notes
}
