//! The summary that ends a run: conditions first, then the table, the verdict last.

use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Run, Stats, Unit};
use punctual_core::units::{grouped, human_ns};
use unicode_width::UnicodeWidthStr;

use super::cost;
use super::style::{Paint, Style, of_outcome};
use super::table::{Align, Table, push_wrapped};
use crate::words;

/// One run in the terminal: header, conditions, a row for every cell and thread
/// with the maximum first, the loads' work, the verdict. `width` is that of the
/// terminal in columns; what can be wrapped is; `colour` adds escape sequences.
#[must_use]
pub fn summary(run: &LoadedRun, width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = head(run, width, paint);
    out.push('\n');
    if run.run.cells.iter().any(|cell| cell.latency().is_some()) {
        out.push_str(&fitting_table(&run.run, width).render(width, paint));
    }
    out.push_str(&cost::of_run(&run.run, width, paint));
    if let Some(warmup) = warmup(&run.run) {
        out.push_str(&format!("  {}\n", paint.apply(&warmup, Style::Faint)));
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
    let mut line = String::new();
    for part in words::headline(&run.run) {
        let joined = format!("{line} · {part}");
        if line.is_empty() {
            line = part;
        } else if joined.width() <= width {
            line = joined;
        } else {
            out.push_str(&paint.apply(&line, Style::Strong));
            out.push('\n');
            line = format!("  {part}");
        }
    }
    out.push_str(&paint.apply(&line, Style::Strong));
    out.push('\n');
    let notes = words::run_notes(run).into_iter();
    let conditions = run.run.conditions.iter();
    for text in notes.chain(conditions.map(|c| words::clean(&c.text).into_owned())) {
        push_wrapped(&mut out, &text, &paint.apply("  ! ", Style::Doubt), 4, width);
    }
    out
}

const COLUMNS: [(&str, Align); 10] = [
    ("probe", Align::Left),
    ("load", Align::Left),
    ("CPU", Align::Right),
    ("max", Align::Right),
    ("p99.9", Align::Right),
    ("p99", Align::Right),
    ("avg", Align::Right),
    ("min", Align::Right),
    ("samples", Align::Right),
    ("missed", Align::Right),
];

/// How many columns the name of a probe or a load takes at most and, on a narrow
/// terminal, at least.
const NAME_WIDTH: std::ops::RangeInclusive<usize> = 10..=22;

/// The table with names as long as `width` allows; a name that is shortened
/// is written in full below its row.
fn fitting_table(run: &Run, width: usize) -> Table {
    NAME_WIDTH
        .rev()
        .map(|name| table(run, name))
        .find(|table| table.width() <= width)
        .unwrap_or_else(|| table(run, *NAME_WIDTH.start()))
}

fn table(run: &Run, name_width: usize) -> Table {
    let mut table = Table::new(&COLUMNS);
    for cell in &run.cells {
        let Some(latency) = cell.latency() else { continue };
        let names = [words::probe_name(cell), words::load_name(&cell.load).into_owned()];
        let [probe, load] = names.each_ref().map(|name| shortened(name, name_width));
        let lead = |cpu: String| {
            vec![(probe.clone(), Style::Plain), (load.clone(), Style::Plain), (cpu, Style::Plain)]
        };
        if let Some(absence) = words::absence(cell) {
            table.row(lead("-".to_owned()));
            table.note(absence);
            continue;
        }
        let below = |name: String, cpu: String| {
            vec![(name, Style::Plain), (String::new(), Style::Plain), (cpu, Style::Plain)]
        };
        let whole = match &latency.threads[..] {
            [one] => words::cpu_name(one),
            _ => "all".to_owned(),
        };
        table.row(numbers(lead(whole.clone()), &latency.stats, Unit::Ns));
        for series in &latency.series {
            let name = format!("  {}", shortened(&words::series_name(series), name_width));
            table.row(numbers(below(name, whole.clone()), &series.stats, series.unit));
        }
        if latency.threads.len() > 1 {
            for thread in &latency.threads {
                let lead = below(String::new(), words::cpu_name(thread));
                table.row(numbers(lead, &thread.stats, Unit::Ns));
            }
        }
        for text in notes(cell, &names, &[probe, load]) {
            table.note(text);
        }
    }
    table
}

fn shortened(name: &str, width: usize) -> String {
    if name.width() <= width {
        return name.to_owned();
    }
    let mut short = String::new();
    for c in name.chars() {
        short.push(c);
        if short.width() + 1 >= width {
            break;
        }
    }
    short.push('…');
    short
}

fn notes(cell: &Cell, names: &[String; 2], shown: &[String; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    if names != shown {
        notes.push(format!("{} under {}", names[0], names[1]));
    }
    notes.extend(words::load_note(cell));
    notes.extend(words::counter_notes(cell));
    notes.extend(words::cell_notes(cell));
    notes
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

pub(super) fn verdict(run: &Run, width: usize, paint: Paint) -> String {
    let verdict = &run.verdict;
    let mut name = words::outcome(verdict.outcome).to_owned();
    if !run.privileged {
        name.push_str(" (not real-time)");
    }
    let first = format!("{}  ", paint.apply(&name, of_outcome(verdict.outcome)));
    let indent = name.width() + 2;
    let mut out = String::new();
    let mut reasons = verdict.because.iter().map(|r| words::clean(r).into_owned());
    let reason = reasons.next().unwrap_or_else(|| {
        if verdict.deadline_ns.is_none() {
            "nothing is judged without a deadline".to_owned()
        } else {
            "no reason recorded".to_owned()
        }
    });
    push_wrapped(&mut out, &reason, &first, indent, width);
    let blank = " ".repeat(indent);
    for reason in reasons.chain(words::worst(run)) {
        push_wrapped(&mut out, &reason, &blank, indent, width);
    }
    out
}
