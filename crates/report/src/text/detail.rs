//! `punctual show`: everything that a run recorded, cell by cell.

use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Cost, Helper, Latency, Run, Stats, Unit};
use punctual_core::units::{grouped, human_ns};

use super::phases::by_phase;
use super::style::{Paint, Style, of_outcome};
use super::summary::summary;
use super::table::{Align, Table};
use super::wrap::{push_pairs, push_parts, push_wrapped};
use crate::describe::{basics, circumstances, flat_facts, placed, policy, worst_samples};
use crate::{data, words};

/// How many of a cell's worst samples are listed.
const WORST: usize = 10;

/// One run in the terminal with all of its details: after the summary every
/// cell with raw and corrected quantiles, threads as they were read back, the
/// load's work, the worst samples, then the facts. `width` and `colour` as for
/// [`super::summary`].
#[must_use]
pub fn details(run: &LoadedRun, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = summary(run, width, colour);
    for (cell, data) in data::cells(run) {
        out.push('\n');
        let key = words::key_name(&cell.key);
        push_parts(&mut out, &[(key, Style::Strong)], ("", Style::Plain), 2, width, paint);
        out.push_str(&cell_details(cell, data, width, paint));
    }
    out.push_str(&format!("\n{}\n", paint.apply("Facts", Style::Strong)));
    let facts: Vec<_> = basics(run).into_iter().chain(flat_facts(run)).collect();
    push_pairs(&mut out, &facts, width);
    out
}

/// How each cost of a run was come by: every repetition, where its threads and processes ran, and how
/// it ended. `width` and `colour` as for [`super::summary`].
#[must_use]
pub fn timings(run: &Run, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    for (cell, cost) in run.cells.iter().filter_map(|cell| Some((cell, cell.cost()?))) {
        let key = words::key_name(&cell.key);
        push_parts(&mut out, &[(key, Style::Strong)], ("", Style::Plain), 2, width, paint);
        match words::absence(cell) {
            Some(absence) => push_wrapped(&mut out, &absence, "  ", 4, width),
            None => out.push_str(&timing(cost, width)),
        }
    }
    out
}

fn timing(cost: &Cost, width: usize) -> String {
    let mut out = String::new();
    let mut push = |text: &str| push_wrapped(&mut out, text, "  ", 4, width);
    push(&cost.meaning);
    push(&format!(
        "{}, interval {}",
        words::cost(cost),
        words::cost_interval(cost.unit, cost.low, cost.high)
    ));
    push(&format!("ended: {}", cost.note.as_deref().unwrap_or_else(|| words::cost_end(cost))));
    if let Some(instructions) = cost.instructions {
        push(&format!("{} instructions", words::instructions(instructions)));
    }
    push(&format!("thread: {}", placed(&cost.placement)));
    for helper in &cost.helpers {
        push(&format!("{}: {}", words::clean(&helper.name), placed(&helper.placement)));
    }
    push(&words::repetitions(cost));
    out
}

fn cell_details(cell: &Cell, data: &CellData, width: usize, paint: Paint) -> String {
    let mut out = String::new();
    if let Some(absence) = words::absence(cell) {
        push_wrapped(&mut out, &absence, "  ", 4, width);
        return out;
    }
    push_wrapped(&mut out, &circumstances(cell).join(" · "), "  ", 2, width);
    if let Some(latency) = cell.latency() {
        out.push_str(&quantiles(latency).render_whole(1, width, paint));
        out.push_str(&by_phase(cell, width, paint));
        out.push_str(&threads(latency).render_whole(3, width, paint));
        if !latency.helpers.is_empty() {
            out.push_str(&helpers(latency).render(width, paint));
        }
    }
    if let Some(cost) = cell.cost().filter(|cost| !cost.repetitions.is_empty()) {
        out.push_str(&timing(cost, width));
    }
    for counter in &cell.counters {
        let first =
            if counter.is_bad() { paint.apply("  ! ", Style::Doubt) } else { "    ".to_owned() };
        push_wrapped(&mut out, &words::counter(counter), &first, 4, width);
    }
    for part in words::parts(cell) {
        push_wrapped(&mut out, &format!("load: {}", words::work(part)), "  ", 8, width);
    }
    for note in words::cell_notes(cell) {
        push_wrapped(&mut out, &note, &paint.apply("  ! ", Style::Doubt), 4, width);
    }
    let worst = worst_samples(cell, data, WORST);
    if !worst.is_empty() {
        out.push_str("  worst samples\n");
        let mut table = Table::new(&[
            ("latency", Align::Right),
            ("after the start", Align::Right),
            ("CPU", Align::List),
        ]);
        for (latency, at, cpu) in worst {
            table.row(vec![
                (human_ns(latency), Style::Strong),
                (words::instant(at), Style::Plain),
                (cpu, Style::Plain),
            ]);
        }
        out.push_str(&table.render(width, paint));
    }
    let verdict = &cell.verdict;
    let name = words::cell_outcome(cell);
    let mut first = format!("  {}  ", paint.apply(name, of_outcome(verdict.outcome)));
    for reason in &verdict.because {
        let indent = if first.trim().is_empty() { 4 } else { name.len() + 4 };
        push_wrapped(&mut out, &words::clean(reason), &first, indent, width);
        first = " ".repeat(4);
    }
    out
}

fn quantiles(latency: &Latency) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("", Align::Left),
        ("max", right),
        ("p99.99", right),
        ("p99.9", right),
        ("p99", right),
        ("p50", right),
        ("avg", right),
        ("std dev", right),
        ("min", right),
        ("early", right),
    ]);
    let row = |name: &str, unit: Unit, s: &Stats| {
        let text = |value: Option<i64>| (words::value(unit, value), Style::Plain);
        let mean = |value: Option<f64>| (words::mean(unit, value), Style::Plain);
        vec![
            (name.to_owned(), Style::Plain),
            (text(s.max).0, Style::Strong),
            text(s.p9999),
            text(s.p999),
            text(s.p99),
            text(s.p50),
            mean(s.avg),
            mean(s.stddev),
            text(s.min),
            (grouped(s.early), Style::Plain),
        ]
    };
    let corrected = &latency.stats.corrected;
    table.row(row("samples", Unit::Ns, &latency.stats));
    let text = |value: Option<i64>| (words::value(Unit::Ns, value), Style::Plain);
    table.row(vec![
        ("corrected".to_owned(), Style::Plain),
        (String::new(), Style::Plain),
        text(corrected.p9999),
        text(corrected.p999),
        text(corrected.p99),
        text(corrected.p50),
    ]);
    if corrected.from_bins {
        table.note("part of the corrected values was expanded from histogram bins".to_owned());
    }
    for series in &latency.series {
        table.row(row(&words::series_name(series), series.unit, &series.stats));
    }
    table
}

fn threads(latency: &Latency) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("thread", right),
        ("CPU", Align::List),
        ("policy", Align::Left),
        ("max", right),
        ("at", right),
        ("p99.9", right),
        ("avg", right),
        ("min", right),
        ("scheduled", right),
        ("missed", right),
    ]);
    for thread in &latency.threads {
        let at = thread.max_at_ns.map_or_else(|| "-".to_owned(), words::instant);
        let lead = [words::cpu_name(thread), policy(&thread.placement), at];
        let full = format!("thread {}: {}", thread.thread, placed(&thread.placement));
        let cells = thread_row(thread.thread.to_string(), lead, Unit::Ns, &thread.stats);
        table.named_row(cells, full);
        for (series, stats) in latency.series.iter().zip(&thread.series) {
            let lead = [String::new(), words::series_name(series), String::new()];
            table.row(thread_row(String::new(), lead, series.unit, stats));
        }
    }
    table
}

fn thread_row(
    number: String,
    [cpu, policy, at]: [String; 3],
    unit: Unit,
    s: &Stats,
) -> Vec<(String, Style)> {
    let plain = |text: String| (text, Style::Plain);
    vec![
        plain(number),
        plain(cpu),
        plain(policy),
        (words::value(unit, s.max), Style::Strong),
        plain(at),
        plain(words::value(unit, s.p999)),
        plain(words::mean(unit, s.avg)),
        plain(words::value(unit, s.min)),
        plain(grouped(s.scheduled)),
        plain(grouped(s.missed)),
    ]
}

fn helpers(latency: &Latency) -> Table {
    let left = Align::Left;
    let mut table =
        Table::new(&[("thread without samples", left), ("CPUs", Align::List), ("policy", left)]);
    for Helper { name, placement } in &latency.helpers {
        let affinity = words::clean(&placement.affinity).into_owned();
        let texts = [words::clean(name).into_owned(), affinity, policy(placement)];
        table.row(texts.into_iter().map(|text| (text, Style::Plain)).collect());
    }
    table
}
