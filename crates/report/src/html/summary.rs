//! The summary table: the maximum first, a row for every cell and thread.

use maud::{Markup, html};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Latency, Series, Stats, Thread, Unit};
use punctual_core::units::{grouped, human_ns};

use super::parts::{class, mean_of, number, of};
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
                        tbody { @for (run, cell) in rows {
                            @if let Some(latency) = cell.latency() {
                                (cell_rows(cell, latency, names.get(run).filter(|_| several)))
                            }
                        } }
                    }
                }
            }
        }
    }
}

/// Cells of latencies with their runs' numbers, cells of equal keys next to each other.
pub fn ordered(runs: &[LoadedRun]) -> Vec<(usize, &Cell)> {
    let mut list: Vec<(usize, &Cell)> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let cells = run.run.cells.iter().filter(|cell| cell.latency().is_some());
        list.extend(cells.map(|cell| (i, cell)));
    }
    let keys: Vec<&str> = list.iter().map(|(_, cell)| cell.key.as_str()).collect();
    let mut order: Vec<_> = list
        .iter()
        .map(|(run, cell)| (keys.iter().position(|key| *key == cell.key), *run, *cell))
        .collect();
    order.sort_by_key(|(key, run, _)| (*key, *run));
    order.into_iter().map(|(_, run, cell)| (run, cell)).collect()
}

fn cell_rows(cell: &Cell, latency: &Latency, run: Option<&String>) -> Markup {
    let columns = 11 + usize::from(run.is_some());
    let notes = notes(cell);
    let threads = &latency.threads;
    html! {
        tr class="first" {
            th scope="row" { (words::cell_name(cell)) }
            @if let Some(run) = run { td class="run" { (run) } }
            @if let Some(absence) = words::absence(cell) {
                td class="doubt" colspan=(columns - usize::from(run.is_some())) { (absence) }
            } @else {
                td { @if let [one] = &threads[..] { (words::cpu_name(one)) } @else { "all" } }
                (numbers(&latency.stats, Unit::Ns))
                td class=(class(cell.verdict.outcome)) { (words::outcome(cell.verdict.outcome)) }
            }
        }
        @if words::absence(cell).is_none() {
            @for series in &latency.series { (series_row(series, run)) }
            @if threads.len() > 1 { @for thread in threads { (thread_row(thread, run)) } }
            @if !notes.is_empty() {
                tr class="note" { td colspan=(columns + 1) { div { (notes.join(" · ")) } } }
            }
        }
    }
}

/// A leg or an aside, below the series that is judged.
fn series_row(series: &Series, run: Option<&String>) -> Markup {
    html! {
        tr class="thread" {
            th scope="row" { "  " (words::series_name(series)) }
            @if run.is_some() { td {} }
            td { "all" }
            (numbers(&series.stats, series.unit))
            td {}
        }
    }
}

fn thread_row(thread: &Thread, run: Option<&String>) -> Markup {
    html! {
        tr class="thread" {
            th scope="row" { "  thread " (thread.thread) }
            @if run.is_some() { td {} }
            td { (words::cpu_name(thread)) }
            (numbers(&thread.stats, Unit::Ns))
            td class=(class(thread.verdict.outcome)) { (words::outcome(thread.verdict.outcome)) }
        }
    }
}

fn numbers(stats: &Stats, unit: Unit) -> Markup {
    html! {
        @if stats.samples == 0 {
            td class="doubt" colspan="5" { "no samples" }
        } @else {
            td class="n max" { (of(unit, stats.max)) }
            (number(of(unit, stats.p999)))
            (number(of(unit, stats.p99)))
            (number(mean_of(unit, stats.avg)))
            (number(of(unit, stats.min)))
        }
        (number(grouped(stats.samples)))
        (number(grouped(stats.missed)))
        (number(grouped(stats.early)))
        (number(of(unit, stats.corrected.p999)))
    }
}

fn notes(cell: &Cell) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(words::load_note(cell));
    if let Some(ns) = cell.latency().and_then(|latency| latency.warmup_max_ns) {
        notes.push(format!("warm-up max {}", human_ns(ns)));
    }
    notes.extend(words::counter_notes(cell));
    notes.extend(words::cell_notes(cell));
    notes
}
