//! Replicates in the terminal: a row for every cell and kernel instead of one
//! for every run.

use punctual_core::compare::{Comparison, KernelRuns, Spread};
use punctual_core::units::human_ns;

use super::style::{Paint, Style, of_outcome};
use super::table::{Align, Table};
use super::wrap::{push_parts, push_wrapped};
use crate::words;

/// One paragraph for each kernel, then the table, if there are latencies.
pub fn section(comparison: &Comparison, width: usize, paint: Paint) -> String {
    let names = words::kernel_names(&comparison.groups);
    let mut out = String::new();
    for (group, name) in comparison.groups.iter().zip(&names) {
        push_head(&mut out, comparison, (group, name), width, paint);
        if let Some((max, run)) = worst(comparison, group) {
            let text = format!("largest maximum {} in {}", human_ns(max), words::clean(run));
            push_parts(&mut out, &[(text, Style::Faint)], ("   ", Style::Plain), 5, width, paint);
        }
    }
    out.push('\n');
    if comparison.cells.is_empty() {
        return out;
    }
    let about = words::spread_note(words::side_noun(&comparison.groups));
    push_wrapped(&mut out, &about, "  ", 2, width);
    let mut tables = Detail::ALL.iter().map(|detail| table(comparison, &names, *detail));
    let fitting = tables.find(|table| !table.is_squeezed(width));
    let narrowest = || table(comparison, &names, Detail::Max);
    out.push_str(&fitting.unwrap_or_else(narrowest).render(width, paint));
    out
}

fn push_head(
    out: &mut String,
    comparison: &Comparison,
    (group, name): (&KernelRuns, &str),
    width: usize,
    paint: Paint,
) {
    let mut parts = vec![
        (words::boards(comparison, &group.runs), Style::Plain),
        (words::kernels(comparison, &group.runs), Style::Plain),
        (words::runs(group.runs.len()), Style::Plain),
    ];
    let outcomes = words::outcomes(comparison, group).into_iter();
    parts.extend(outcomes.map(|(outcome, text)| (text, of_outcome(outcome))));
    let labels = words::side_labels(comparison, group).into_iter();
    parts.extend(labels.map(|text| (text.to_owned(), Style::Doubt)));
    push_parts(out, &parts, (&format!("{name}  "), Style::Strong), 3, width, paint);
}

/// The largest sample of a kernel over all cells of its runs, and the run that has it first.
fn worst<'a>(comparison: &'a Comparison, group: &KernelRuns) -> Option<(i64, &'a str)> {
    let runs = group.runs.iter().filter_map(|run| comparison.runs.get(*run));
    let maxima = runs.filter_map(|run| Some((run.max_ns?, run.run_id.as_str())));
    maxima.reduce(|a, b| if b.0 > a.0 { b } else { a })
}

/// Which quantities show their range; the others show only their medians.
/// The ratio of the means, which can be seen from them, is left out first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    Max,
    MaxAndP999,
    All,
}

impl Detail {
    /// From the widest table to the narrowest.
    const ALL: [Self; 3] = [Self::All, Self::MaxAndP999, Self::Max];
}

fn table(comparison: &Comparison, names: &[String], detail: Detail) -> Table {
    let right = Align::Right;
    let mut columns = vec![
        (words::side_noun(&comparison.groups), Align::Left),
        ("max", right),
        ("ratio", right),
        ("p99.9", right),
        ("ratio", right),
        ("avg", right),
    ];
    if detail == Detail::All {
        columns.push(("ratio", right));
    }
    columns.push(("runs", right));
    let mut table = Table::new(&columns).lesser(&["avg", "runs", "p99.9"]);
    for (name, cell) in words::with_phases(&comparison.cells) {
        table.heading(name);
        for (spread, name) in cell.spreads.iter().zip(names) {
            table.row(row(spread, name, detail));
        }
    }
    table
}

fn row(spread: &Spread, name: &str, detail: Detail) -> Vec<(String, Style)> {
    let plain = |text: String| (text, Style::Plain);
    if spread.runs == 0 {
        return vec![plain(name.to_owned()), ("no samples".to_owned(), Style::Doubt)];
    }
    let text = |ends: words::Ends, full: bool| match ends {
        Some([_, median, _]) if !full => words::span(Some([median; 3])),
        ends => words::span(ends),
    };
    let mut cells = vec![
        plain(name.to_owned()),
        (text(words::ends(spread.max_ns), true), Style::Strong),
        plain(words::ratio(spread.ratio.max)),
        plain(text(words::ends(spread.p999_ns), detail >= Detail::MaxAndP999)),
        plain(words::ratio(spread.ratio.p999)),
        plain(text(words::mean_ends(spread.avg_ns), detail == Detail::All)),
    ];
    if detail == Detail::All {
        cells.push(plain(words::ratio(spread.ratio.avg)));
    }
    cells.push(plain(spread.runs.to_string()));
    cells
}
