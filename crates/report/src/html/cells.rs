//! Every cell in detail: quantiles, threads, loads, worst samples, reasons.

use maud::{Markup, html};
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Helper, Latency, Series, Stats, Thread, Unit};
use punctual_core::units::{grouped, human_ns};

use super::parts::{class, heads, mean, mean_of, ns, number, of};
use super::phases::by_phase;
use super::series::quantiles;
use crate::describe::{circumstances, placed, policy, worst_samples};
use crate::{data, words};

/// How many of a cell's worst samples are listed.
const WORST: usize = 20;

/// A cell with what it recorded, and what tells it from others of its key.
pub type Listed<'a> = (String, &'a Cell, &'a CellData);

/// The cells of runs; several runs are told apart by their names.
pub fn of_runs<'a>(runs: &'a [LoadedRun], names: &[String]) -> Vec<Listed<'a>> {
    let mut list = Vec::new();
    for (run, name) in runs.iter().zip(names) {
        for (cell, data) in data::cells(run) {
            let key = words::key_name(&cell.key);
            let label = if runs.len() > 1 { format!("{key} · {name}") } else { key };
            list.push((label, cell, data));
        }
    }
    list
}

pub fn section(title: &str, cells: &[Listed<'_>]) -> Markup {
    if cells.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { (title) }
            @for (label, cell, data) in cells {
                details {
                    summary {
                        (label)
                        @if let Some(max) = cell.max_ns() { " · max " (human_ns(max)) }
                    }
                    (body(cell, data))
                }
            }
        }
    }
}

fn body(cell: &Cell, data: &CellData) -> Markup {
    let worst = worst_samples(cell, data, WORST);
    html! {
        @if let Some(absence) = words::absence(cell) { p { (absence) } }
        @if let Some(first) = cell.verdict.because.first() {
            p class=(class(cell.verdict.outcome)) { strong { (words::cell_outcome(cell)) } " " (words::clean(first)) }
        }
        p { (circumstances(cell).join(" · ")) }
        ul {
            @for reason in cell.verdict.because.iter().skip(1) { li { (words::clean(reason)) } }
            @for part in words::parts(cell) {
                li { "load " (words::work(part)) @if !part.containment.is_empty() { ", " (words::containment(&part.containment)) } }
            }
            @for note in words::cell_notes(cell) { li { (note) } }
        }
        @if let Some(latency) = cell.latency().filter(|latency| latency.stats.samples > 0) {
            (quantiles(latency))
            (by_phase(cell))
            (threads(latency))
            @if !latency.helpers.is_empty() { (helpers(&latency.helpers)) }
        }
        @if !cell.counters.is_empty() {
            ul { @for counter in &cell.counters {
                li class=(if counter.is_bad() { "bad" } else { "" }) { (words::counter(counter)) }
            } }
        }
        @if let Some(cost) = cell.cost().filter(|cost| !cost.repetitions.is_empty()) {
            p { "thread: " (placed(&cost.placement)) }
            p { (words::repetitions(cost)) }
        }
        @if !worst.is_empty() { (worst_table(&worst)) }
    }
}

fn threads(latency: &Latency) -> Markup {
    html! {
        div class="scroll" { table {
            (heads("Threads, as they were read back", &["thread", "verdict", "CPU", "policy"],
                &["timer slack", "offset", "max", "at", "p99.9", "avg", "min", "scheduled", "missed"]))
            tbody { @for thread in &latency.threads {
                @let s = &thread.stats;
                tr {
                    th scope="row" { (thread.thread) }
                    td class=(class(thread.verdict.outcome)) { (words::thread_outcome(thread)) }
                    td { (words::cpu_name(thread)) }
                    td { (policy(&thread.placement)) }
                    (number(thread.placement.timer_slack_ns.map_or_else(|| "–".to_owned(), words::duration)))
                    (number(words::duration(thread.offset_ns)))
                    td class="n max" { @if s.samples == 0 { "no samples" } @else { (ns(s.max)) } }
                    (number(thread.max_at_ns.map_or_else(|| "–".to_owned(), words::instant)))
                    (number(ns(s.p999)))
                    (number(mean(s.avg)))
                    (number(ns(s.min)))
                    (number(grouped(s.scheduled)))
                    (number(grouped(s.missed)))
                }
                @for (series, stats) in latency.series.iter().zip(&thread.series) { (part(thread, series, stats)) }
            } }
        } }
    }
}

/// What a thread measured of a leg or an aside.
fn part(thread: &Thread, series: &Series, stats: &Stats) -> Markup {
    let unit: Unit = series.unit;
    html! {
        tr class="thread" {
            th scope="row" colspan="6" { "  " (thread.thread) " · " (words::clean(&series.name)) }
            td class="n max" { @if stats.samples == 0 { "no samples" } @else { (of(unit, stats.max)) } }
            td {}
            (number(of(unit, stats.p999)))
            (number(mean_of(unit, stats.avg)))
            (number(of(unit, stats.min)))
            (number(grouped(stats.samples)))
            td {}
        }
    }
}

fn helpers(helpers: &[Helper]) -> Markup {
    html! {
        div class="scroll" { table {
            (heads("Threads without samples", &["what it does", "CPUs", "policy"], &["timer slack"]))
            tbody { @for Helper { name, placement } in helpers {
                tr {
                    th scope="row" { (words::clean(name)) }
                    td { (words::clean(&placement.affinity)) }
                    td { (policy(placement)) }
                    (number(placement.timer_slack_ns.map_or_else(|| "–".to_owned(), words::duration)))
                }
            } }
        } }
    }
}

fn worst_table(worst: &[(i64, u64, String)]) -> Markup {
    html! {
        div class="scroll" { table {
            (heads("Worst samples", &[], &["latency", "after the start", "CPU"]))
            tbody { @for (latency, at, cpu) in worst {
                tr { td class="n max" { (human_ns(*latency)) } (number(words::instant(*at))) (number(cpu.clone())) }
            } }
        } }
    }
}
