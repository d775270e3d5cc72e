//! The summary table: the maximum first, a row for every cell and thread.

use maud::{Markup, html};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Latency, Series, Stats, Thread, Unit};
use punctual_core::units::{grouped, human_ns};

use super::parts::{broken, class, is_late, maximum, mean_of, number, of};
use crate::data;
use crate::words::{self, CoreTypeRow, PhaseRow};

/// Which columns the table has: one in which every row has nothing to say is left out.
struct Shown {
    run: bool,
    early: bool,
    corrected: bool,
}

impl Shown {
    fn of<'a>(run: bool, cells: impl Iterator<Item = &'a Latency>) -> Self {
        let (mut early, mut corrected) = (false, false);
        for latency in cells {
            let series = latency.series.iter().map(|series| &series.stats);
            for stats in series.chain([&latency.stats]) {
                early |= stats.early > 0;
                corrected |= stats.missed > 0;
            }
        }
        Self { run, early, corrected }
    }

    fn count(&self) -> usize {
        10 + usize::from(self.run) + usize::from(self.early) + usize::from(self.corrected)
    }
}

pub fn section(runs: &[LoadedRun], names: &[String]) -> Markup {
    let several = runs.len() > 1;
    let rows = ordered(runs);
    let columns = Shown::of(several, rows.iter().filter_map(|(_, cell)| cell.latency()));
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Summary" }
                div class="scroll" {
                    table {
                        thead {
                            tr {
                                th scope="col" { "probe · load" }
                                th scope="col" { "verdict" }
                                @if columns.run { th scope="col" { "run" } }
                                th scope="col" { "CPU" }
                                @for head in ["max", "p99.9", "p99", "avg", "min", "samples", "missed"] {
                                    th scope="col" class="n" { (head) }
                                }
                                @if columns.early { th scope="col" class="n" { "early" } }
                                @if columns.corrected { th scope="col" class="n two" { "corrected p99.9" } }
                            }
                        }
                        tbody { @for (run, cell) in rows {
                            @if let Some(latency) = cell.latency() {
                                (cell_rows(&runs[run], cell, latency, names.get(run).filter(|_| several), &columns))
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

fn cell_rows(
    loaded: &LoadedRun,
    cell: &Cell,
    latency: &Latency,
    run: Option<&String>,
    columns: &Shown,
) -> Markup {
    let notes = notes(cell);
    let cpus = words::cpus_name(&loaded.run, &latency.threads);
    let data = data::cells(loaded).find(|(one, _)| std::ptr::eq(*one, cell));
    let by_type = data.map(|(_, data)| words::core_type_rows(loaded, latency, data));
    let threads = &latency.threads;
    let late = |stats: &Stats| stats.max.is_some_and(|max| is_late(cell, max));
    html! {
        tr class="first" {
            th scope="row" {
                (broken(&words::cell_name(cell)))
                @if cell.is_simulated() { " · " (words::SIMULATED) }
            }
            @if let Some(absence) = words::absence(cell) {
                td {}
                @if let Some(run) = run { td class="run" { (broken(run)) } }
                td class="doubt" colspan=(columns.count() - 2 - usize::from(columns.run)) { (absence) }
            } @else {
                td class=(class(cell.verdict.outcome)) { (words::cell_outcome(cell)) }
                @if let Some(run) = run { td class="run" { (broken(run)) } }
                td { (broken(&cpus)) }
                (numbers(&latency.stats, Unit::Ns, late(&latency.stats), columns))
            }
        }
        @if words::absence(cell).is_none() {
            @for series in &latency.series { (series_row(series, &cpus, columns)) }
            @for row in words::phase_rows(cell) { (phase_row(cell, &row, &cpus, columns)) }
            @for row in by_type.into_iter().flatten() {
                (core_type_row(&row, late(&row.stats), columns))
            }
            @if threads.len() > 1 { @for thread in threads {
                (thread_row(thread, late(&thread.stats), columns))
            } }
            @if !notes.is_empty() {
                tr class="note" { td colspan=(columns.count()) { div { (notes.join(" · ")) } } }
            }
        }
    }
}

/// A leg or an aside, below the series that is judged.
fn series_row(series: &Series, cpus: &str, columns: &Shown) -> Markup {
    html! {
        tr class="thread" {
            th scope="row" { (words::series_name(series)) }
            td {}
            @if columns.run { td {} }
            td { (broken(cpus)) }
            (numbers(&series.stats, series.unit, false, columns))
        }
    }
}

/// A phase of the load, or the changes between them.
fn phase_row(cell: &Cell, row: &PhaseRow<'_>, cpus: &str, columns: &Shown) -> Markup {
    let stats = &row.found.stats;
    html! {
        tr class="thread" {
            th scope="row" { (row.name) " · " (broken(&row.load)) }
            td {}
            @if columns.run { td {} }
            td { (broken(cpus)) }
            (numbers(stats, Unit::Ns, stats.max.is_some_and(|max| is_late(cell, max)), columns))
        }
    }
}

/// The threads on one type of cores.
fn core_type_row(row: &CoreTypeRow, late: bool, columns: &Shown) -> Markup {
    html! {
        tr class="thread" {
            th scope="row" { (row.name) }
            td {}
            @if columns.run { td {} }
            td { (broken(&row.cpus)) }
            (numbers(&row.stats, Unit::Ns, late, columns))
        }
    }
}

fn thread_row(thread: &Thread, late: bool, columns: &Shown) -> Markup {
    html! {
        tr class="thread" {
            th scope="row" { "thread " (thread.thread) }
            td class=(class(thread.verdict.outcome)) { (words::thread_outcome(thread)) }
            @if columns.run { td {} }
            td { (broken(&words::cpu_name(thread))) }
            (numbers(&thread.stats, Unit::Ns, late, columns))
        }
    }
}

fn numbers(stats: &Stats, unit: Unit, late: bool, columns: &Shown) -> Markup {
    html! {
        @if stats.samples == 0 {
            td class="doubt" colspan="5" { "no samples" }
        } @else {
            (maximum(&of(unit, stats.max), late))
            (number(of(unit, stats.p999)))
            (number(of(unit, stats.p99)))
            (number(mean_of(unit, stats.avg)))
            (number(of(unit, stats.min)))
        }
        (number(grouped(stats.samples)))
        (number(grouped(stats.missed)))
        @if columns.early { (number(grouped(stats.early))) }
        @if columns.corrected { (number(of(unit, stats.corrected.p999))) }
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
