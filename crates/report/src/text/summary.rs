//! The summary that ends a run: conditions first, then the table, the verdict last.

use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Latency, Run, Stats, Unit};
use punctual_core::units::{grouped, human_ns};
use unicode_width::UnicodeWidthStr;

use super::cost;
use super::legs::legs;
use super::style::{Paint, Style, of_outcome};
use super::table::{Align, Table};
use super::wrap::{push_parts, push_wrapped, wrap};
use crate::{data, words};

/// One run in the terminal: header, conditions, a row for every cell and thread
/// with the maximum first, the loads' work, the verdict. No line is wider than `width`
/// (columns of the terminal, at least 40); `colour` adds escape sequences.
#[must_use]
pub fn summary(run: &LoadedRun, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = head(run, width, paint);
    out.push('\n');
    if run.run.cells.iter().any(|cell| cell.latency().is_some()) {
        out.push_str(&table(run).render(width, paint));
    }
    out.push_str(&cost::of_run(&run.run, width, paint));
    out.push_str(&legs(std::slice::from_ref(run), width, colour));
    if let Some(warmup) = warmup(&run.run) {
        for line in wrap(&warmup, width.saturating_sub(2)) {
            out.push_str(&format!("  {}\n", paint.apply(&line, Style::Faint)));
        }
    }
    out.push_str(&verdict(&run.run, width, paint));
    out
}

fn warmup(run: &Run) -> Option<String> {
    let maxima = run.cells.iter().filter_map(|cell| cell.latency()?.warmup_max_ns);
    let text = |max| format!("warm-up, excluded from all results: max {}", human_ns(max));
    maxima.max().map(text)
}

/// Header line, notes on the run, conditions.
pub(super) fn head(run: &LoadedRun, width: usize, paint: Paint) -> String {
    let mut out = String::new();
    let parts = words::headline(&run.run).into_iter().map(|part| (part, Style::Strong));
    push_parts(&mut out, &parts.collect::<Vec<_>>(), ("", Style::Plain), 2, width, paint);
    let notes = words::run_notes(run).into_iter();
    let conditions = run.run.conditions.iter();
    for text in notes.chain(conditions.map(|c| words::clean(&c.text).into_owned())) {
        push_wrapped(&mut out, &text, &paint.apply("  ! ", Style::Doubt), 4, width);
    }
    out
}

fn table(run: &LoadedRun) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("probe", Align::Left),
        ("load", Align::Left),
        ("CPU", Align::List),
        ("max", right),
        ("p99.9", right),
        ("p99", right),
        ("avg", right),
        ("min", right),
        ("samples", right),
        ("missed", right),
    ])
    .lesser(&["p99", "min", "samples", "avg", "p99.9"]);
    for (cell, data) in data::cells(run) {
        if let Some(latency) = cell.latency() {
            push_cell(&mut table, run, cell, latency, data);
        }
    }
    table
}

/// The row of a cell, those of its series, phases, types of cores and threads, and its notes.
fn push_cell(table: &mut Table, run: &LoadedRun, cell: &Cell, latency: &Latency, data: &CellData) {
    let lead = |probe: &str, load: &str, cpu: &str| -> Vec<_> {
        [probe, load, cpu].map(|text| (text.to_owned(), Style::Plain)).into()
    };
    let (probe, load) = (words::probe_name(cell), words::load_name(&cell.load));
    let full = format!("{probe} under {load}");
    if let Some(absence) = words::absence(cell) {
        table.named_row(lead(&probe, &load, "-"), full);
        table.note(absence);
        return;
    }
    let whole = words::cpus_name(&run.run, &latency.threads);
    table.named_row(numbers(lead(&probe, &load, &whole), &latency.stats, Unit::Ns), full);
    for series in &latency.series {
        let name = words::series_name(series);
        let cells = lead(&format!("  {name}"), "", &whole);
        table.named_row(numbers(cells, &series.stats, series.unit), name);
    }
    for row in words::phase_rows(cell) {
        let full = format!("{}: {}", row.name, row.load);
        let cells = lead(&format!("  {}", row.name), &row.load, &whole);
        table.named_row(numbers(cells, &row.found.stats, Unit::Ns), full);
    }
    for row in words::core_type_rows(run, latency, data) {
        let full = format!("{} on CPUs {}", row.name, row.cpus);
        let cells = lead(&format!("  {}", row.name), "", &row.cpus);
        table.named_row(numbers(cells, &row.stats, Unit::Ns), full);
    }
    if latency.threads.len() > 1 {
        for thread in &latency.threads {
            let (name, cpu) = (format!("  thread {}", thread.thread), words::cpu_name(thread));
            let full = format!("thread {} on CPUs {cpu}", thread.thread);
            table.named_row(numbers(lead(&name, "", &cpu), &thread.stats, Unit::Ns), full);
        }
    }
    notes(cell).for_each(|text| table.note(text));
}

fn notes(cell: &Cell) -> impl Iterator<Item = String> {
    let load = words::load_note(cell).into_iter();
    load.chain(words::counter_notes(cell)).chain(words::cell_notes(cell))
}

fn numbers(mut row: Vec<(String, Style)>, stats: &Stats, unit: Unit) -> Vec<(String, Style)> {
    let plain = |text: String| (text, Style::Plain);
    if stats.samples == 0 {
        row.push(("no samples".to_owned(), Style::Doubt));
        row.extend((0..4).map(|_| plain(String::new())));
    } else {
        let quantile = |value: Option<i64>| plain(words::value(unit, value));
        let (max, _) = quantile(stats.max);
        row.push((max, Style::Strong));
        row.push(quantile(stats.p999));
        row.push(quantile(stats.p99));
        row.push(plain(words::mean(unit, stats.avg)));
        row.push(quantile(stats.min));
    }
    row.push(plain(grouped(stats.samples)));
    let style = if stats.missed > 0 { Style::Doubt } else { Style::Plain };
    row.push((grouped(stats.missed), style));
    row
}

/// What the first sentence of a verdict begins with, and how far its other lines are moved in: an
/// outcome, or nothing if that is so long that it has a line of its own.
pub(super) fn lead(
    out: &mut String,
    name: String,
    style: Style,
    width: usize,
    paint: Paint,
) -> (String, usize) {
    let indent = name.width() + 2;
    if indent <= width / 2 {
        return (format!("{}  ", paint.apply(&name, style)), indent);
    }
    push_parts(out, &[(name, style)], ("", Style::Plain), 2, width, paint);
    ("  ".to_owned(), 2)
}

pub(super) fn verdict(run: &Run, width: usize, paint: Paint) -> String {
    let verdict = &run.verdict;
    let name = words::labelled(words::run_outcome(run), &words::labels(run));
    let mut out = String::new();
    let (first, indent) = lead(&mut out, name, of_outcome(verdict.outcome), width, paint);
    let mut reasons = verdict.because.iter().map(|r| words::clean(r).into_owned());
    let reason = reasons.next().unwrap_or_else(|| match verdict.deadline_ns {
        None => "no deadline given".to_owned(),
        Some(_) => "no reason recorded".to_owned(),
    });
    push_wrapped(&mut out, &reason, &first, indent, width);
    for reason in reasons {
        push_wrapped(&mut out, &reason, "  ", 2, width);
    }
    out
}
