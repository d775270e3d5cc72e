//! `punctual show`: everything that a run recorded, cell by cell.

use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Cell, Stats};
use punctual_core::units::{grouped, human_ns};

use super::style::{Paint, Style, of_outcome};
use super::summary;
use super::table::{Align, Table, push_wrapped};
use crate::describe::{basics, circumstances, flat_facts, policy, worst_samples};
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
        out.push_str(&format!("\n{}\n", paint.apply(&words::clean(&cell.key), Style::Strong)));
        out.push_str(&cell_details(cell, data, width, paint));
    }
    out.push_str(&format!("\n{}\n", paint.apply("Facts", Style::Strong)));
    let mut facts = Table::new(&[("fact", Align::Left), ("value", Align::Left)]);
    for (key, value) in basics(run).into_iter().chain(flat_facts(run)) {
        facts.row(vec![(key, Style::Plain), (value, Style::Plain)]);
    }
    out.push_str(&facts.render(width, paint));
    out
}

fn cell_details(cell: &Cell, data: &CellData, width: usize, paint: Paint) -> String {
    let mut out = String::new();
    if let Some(absence) = words::absence(cell) {
        return format!("  {absence}\n");
    }
    push_wrapped(&mut out, &circumstances(cell).join(" · "), "  ", 2, width);
    out.push_str(&quantiles(cell).render(width, paint));
    out.push_str(&threads(cell).render(width, paint));
    for part in &cell.load_work {
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
            ("CPU", Align::Right),
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
    let name = words::outcome(verdict.outcome);
    let mut first = format!("  {}  ", paint.apply(name, of_outcome(verdict.outcome)));
    for reason in &verdict.because {
        let indent = name.len() + 4;
        push_wrapped(&mut out, &words::clean(reason), &first, indent, width);
        first = " ".repeat(indent);
    }
    out
}

fn quantiles(cell: &Cell) -> Table {
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
    let Stats { corrected, .. } = &cell.stats;
    let text = |ns: Option<i64>| (ns.map_or_else(|| "-".to_owned(), human_ns), Style::Plain);
    let mean = |ns: Option<f64>| (ns.map_or_else(|| "-".to_owned(), words::mean_ns), Style::Plain);
    let s = &cell.stats;
    table.row(vec![
        ("samples".to_owned(), Style::Plain),
        (text(s.max_ns).0, Style::Strong),
        text(s.p9999_ns),
        text(s.p999_ns),
        text(s.p99_ns),
        text(s.p50_ns),
        mean(s.avg_ns),
        mean(s.stddev_ns),
        text(s.min_ns),
        (grouped(s.early), Style::Plain),
    ]);
    table.row(vec![
        ("corrected".to_owned(), Style::Plain),
        (String::new(), Style::Plain),
        text(corrected.p9999_ns),
        text(corrected.p999_ns),
        text(corrected.p99_ns),
        text(corrected.p50_ns),
    ]);
    if corrected.from_bins {
        table.note("part of the corrected values was expanded from histogram bins".to_owned());
    }
    table
}

fn threads(cell: &Cell) -> Table {
    let right = Align::Right;
    let mut table = Table::new(&[
        ("thread", right),
        ("CPU", right),
        ("policy", Align::Left),
        ("max", right),
        ("at", right),
        ("p99.9", right),
        ("avg", right),
        ("min", right),
        ("scheduled", right),
        ("missed", right),
    ]);
    for thread in &cell.threads {
        let s = &thread.stats;
        let text = |ns: Option<i64>| (ns.map_or_else(|| "-".to_owned(), human_ns), Style::Plain);
        table.row(vec![
            (thread.thread.to_string(), Style::Plain),
            (words::cpu_name(thread), Style::Plain),
            (policy(thread), Style::Plain),
            (text(s.max_ns).0, Style::Strong),
            (thread.max_at_ns.map_or_else(|| "-".to_owned(), words::instant), Style::Plain),
            text(s.p999_ns),
            (s.avg_ns.map_or_else(|| "-".to_owned(), words::mean_ns), Style::Plain),
            text(s.min_ns),
            (grouped(s.scheduled), Style::Plain),
            (grouped(s.missed), Style::Plain),
        ]);
    }
    table
}
