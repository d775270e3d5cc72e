//! Every cell in detail: quantiles, threads, loads, worst samples, reasons.

use maud::{Markup, html};
use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Series, Thread};
use punctual_core::units::{grouped, human_ns};

use super::{class, mean, ns, number};
use crate::describe::{circumstances, policy, worst_samples};
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
            let key = words::clean(&cell.key);
            let label = if runs.len() > 1 { format!("{key} · {name}") } else { key.into_owned() };
            list.push((label, cell, data));
        }
    }
    list
}

pub fn section(title: &str, cells: &[Listed<'_>]) -> Markup {
    html! {
        section {
            h2 { (title) }
            @for (label, cell, data) in cells {
                details {
                    summary {
                        (label)
                        @if let Some(max) = cell.stats.max_ns { " · max " (human_ns(max)) }
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
        p { (circumstances(cell).join(" · ")) }
        ul {
            @for reason in &cell.verdict.because { li { (words::outcome(cell.verdict.outcome)) ": " (words::clean(reason)) } }
            @for part in &cell.load_work {
                li { "load " (words::work(part)) @if !part.containment.is_empty() { ", held by " (words::clean(&part.containment)) } }
            }
            @for note in words::cell_notes(cell) { li { (note) } }
        }
        @if cell.stats.samples > 0 {
            (quantiles(cell))
            (threads(&cell.threads))
        }
        @if !worst.is_empty() { (worst_table(&worst)) }
    }
}

fn heads(caption: &str, words: &[&str], numbers: &[&str]) -> Markup {
    html! {
        caption { (caption) }
        thead { tr {
            @for head in words { th scope="col" { (head) } }
            @for head in numbers { th scope="col" class="n" { (head) } }
        } }
    }
}

fn quantiles(cell: &Cell) -> Markup {
    html! {
        div class="scroll" { table {
            (heads("Distribution", &["series"], &["max", "p99.99", "p99.9", "p99", "p50", "avg", "std dev", "min", "values", "early"]))
            tbody { @for series in &cell.series { (series_rows(series)) } }
        } }
    }
}

fn series_rows(series: &Series) -> Markup {
    let s = &series.stats;
    let c = &s.corrected;
    html! {
        tr {
            th scope="row" { (words::clean(&series.name)) ": " (words::clean(&series.meaning)) }
            td class="n max" { (ns(s.max_ns)) }
            @for value in [s.p9999_ns, s.p999_ns, s.p99_ns, s.p50_ns] { (number(ns(value))) }
            (number(mean(s.avg_ns)))
            (number(mean(s.stddev_ns)))
            (number(ns(s.min_ns)))
            (number(grouped(s.samples)))
            (number(grouped(s.early)))
        }
        tr {
            th scope="row" { "corrected: missed releases as late as they were" @if c.from_bins { " (partly from bins)" } }
            td {}
            @for value in [c.p9999_ns, c.p999_ns, c.p99_ns, c.p50_ns] { (number(ns(value))) }
            td {} td {} td {}
            (number(grouped(c.samples)))
            td {}
        }
    }
}

fn threads(threads: &[Thread]) -> Markup {
    html! {
        div class="scroll" { table {
            (heads("Threads, as they were read back", &["thread", "CPU", "policy"],
                &["timer slack", "offset", "max", "at", "p99.9", "avg", "min", "scheduled", "missed"]))
            tbody { @for thread in threads {
                @let s = &thread.stats;
                tr {
                    th scope="row" { (thread.thread) }
                    td { (words::cpu_name(thread)) }
                    td class=(class(thread.verdict.outcome)) { (policy(thread)) }
                    (number(thread.timer_slack_ns.map_or_else(|| "–".to_owned(), words::duration)))
                    (number(words::duration(thread.offset_ns)))
                    td class="n max" { @if s.samples == 0 { "no samples" } @else { (ns(s.max_ns)) } }
                    (number(thread.max_at_ns.map_or_else(|| "–".to_owned(), words::instant)))
                    (number(ns(s.p999_ns)))
                    (number(mean(s.avg_ns)))
                    (number(ns(s.min_ns)))
                    (number(grouped(s.scheduled)))
                    (number(grouped(s.missed)))
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
