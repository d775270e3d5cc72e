//! Runs side by side: how late a release was by chance, and how late it can be.

use punctual_core::aimed::{AimedRun, Course};

use super::found::{ALONE, AimedFrom, OTHER_COURSE, SameCourse, aimed_ns, cells, ratio};
use crate::explanation::times::length;
use crate::text::{Align, Paint, Style, Table, push_parts, push_wrapped};
use crate::words;

/// Heads of the first column of each run. As many runs fit no terminal.
const SAMPLED: [&str; 8] = [
    "A sampled",
    "B sampled",
    "C sampled",
    "D sampled",
    "E sampled",
    "F sampled",
    "G sampled",
    "H sampled",
];

/// The runs, and of each cell the largest sample, the latest aimed release and their ratio: columns
/// for each run, or a row if these are too wide. Lines have at most `width` columns.
#[must_use]
pub fn table(all: &[AimedRun], width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    runs(&mut out, all, width, paint);
    maxima(&mut out, all, width, paint);
    for caveat in words::once(all.iter().flat_map(|run| &run.caveats)) {
        push_wrapped(&mut out, &words::clean(caveat), "  ! ", 4, width);
    }
    out
}

/// The runs, each after its letter if there are several.
pub(super) fn runs(out: &mut String, all: &[AimedRun], width: usize, paint: Paint) {
    for (number, one) in all.iter().enumerate() {
        let [release, run] = [&one.release, &one.run].map(|text| words::clean(text).into_owned());
        let kernel = format!("Linux {release} {}", words::preemption_name(one.model));
        let parts = [(kernel, Style::Plain), (run, Style::Faint)];
        let (letter, indent) = match all.len() {
            1 => (String::new(), 0),
            _ => (format!("{}  ", words::letter(number)), 3),
        };
        push_parts(out, &parts, (&letter, Style::Strong), indent, width, paint);
    }
}

/// The table, with an empty line above it; nothing without a cell.
pub(super) fn maxima(out: &mut String, all: &[AimedRun], width: usize, paint: Paint) {
    let cells = cells(all);
    if cells.is_empty() {
        return;
    }
    out.push('\n');
    let columns = by_columns(all.len(), &cells);
    // Rows have the same columns if there is one run.
    let columns = columns.filter(|table| all.len() == 1 || !table.is_squeezed(width));
    let table = columns.unwrap_or_else(|| by_rows(all.len(), &cells));
    out.push_str(&table.render(width, paint));
    if cells.iter().any(|cell| cell.course == Course::Alone) {
        push_wrapped(out, &format!("{ALONE}. {OTHER_COURSE}"), "  ", 4, width);
    }
}

/// `wakeup @ hackbench @ 2s`, marked if it is alone, which is said below the table.
fn row_name(cell: &SameCourse<'_>) -> String {
    let key = words::key_name(cell.key);
    match cell.course {
        Course::Sampled => key,
        Course::Alone => format!("{key}, alone"),
    }
}

fn or_dash(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), length)
}

/// The largest sample of a run, its latest aimed release, and their ratio.
fn values(one: Option<&AimedFrom<'_>>) -> [(String, Style); 3] {
    let Some(AimedFrom { cell, .. }) = one else {
        return ["-"; 3].map(|dash| (dash.to_owned(), Style::Plain));
    };
    [
        (or_dash(cell.sampled_max_ns), Style::Plain),
        (or_dash(aimed_ns(cell)), Style::Strong),
        (ratio(cell), Style::Plain),
    ]
}

fn of_run<'a>(cell: &'a SameCourse<'a>, run: usize) -> Option<&'a AimedFrom<'a>> {
    cell.runs.iter().find(|one| one.run == run)
}

/// Three columns for each run; none if there are too many.
fn by_columns(runs: usize, cells: &[SameCourse<'_>]) -> Option<Table> {
    let sampled = if runs == 1 { &["sampled"] } else { SAMPLED.get(..runs)? };
    let right = Align::Right;
    let of_run = |head: &&'static str| [(*head, right), ("aimed", right), ("ratio", right)];
    let mut columns = vec![("", Align::Left)];
    columns.extend(sampled.iter().flat_map(of_run));
    let mut table = Table::new(&columns);
    for cell in cells {
        let name = row_name(cell);
        let mut row = vec![(name.clone(), Style::Plain)];
        row.extend((0..runs).flat_map(|run| values(self::of_run(cell, run))));
        table.named_row(row, name);
    }
    Some(table)
}

/// A row for each run.
fn by_rows(runs: usize, cells: &[SameCourse<'_>]) -> Table {
    let right = Align::Right;
    let columns = [("run", Align::Left), ("sampled", right), ("aimed", right), ("ratio", right)];
    let mut table = Table::new(&columns);
    for cell in cells {
        table.heading(row_name(cell));
        for run in 0..runs {
            let mut row = vec![(words::letter(run), Style::Plain)];
            row.extend(values(of_run(cell, run)));
            table.row(row);
        }
    }
    table
}
