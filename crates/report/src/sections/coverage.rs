//! What the cells of runs executed of their kernels.

use maud::{Markup, html};
use punctual_core::coverage::{CellCoverage, Coverage, LockingFunction};
use punctual_core::sections::Sections;
use punctual_core::units::grouped;

use crate::explanation::times::{function_name, percent};
use crate::html::{heads, number};
use crate::text::{Align, Paint, Style, Table, push_styled, push_wrapped};
use crate::words;

/// Functions that a sentence names.
const NAMED: usize = 3;
/// Functions that a list of the page has.
const LISTED: usize = 200;

/// What `locking` functions do.
const LOCKING: &str = "take a spin lock or forbid preemption";

/// Heads of the columns of numbers, which [`values`] and [`totals`] have.
const COLUMNS: [&str; 5] = ["functions", "share", "only here", "that lock", "blocks"];

fn values(coverage: &Coverage, cell: &CellCoverage) -> [String; 5] {
    [
        grouped(cell.functions),
        percent(cell.functions, coverage.functions),
        match coverage.cells.len() {
            1 => "-".to_owned(),
            _ => grouped(cell.only.len() as u64),
        },
        grouped(cell.locking),
        grouped(cell.blocks),
    ]
}

/// Of all cells together.
fn totals(coverage: &Coverage) -> [String; 5] {
    let functions = coverage.executed.len() as u64;
    [
        grouped(functions),
        percent(functions, coverage.functions),
        String::new(),
        grouped(coverage.reached()),
        grouped(coverage.blocks),
    ]
}

/// Which functions that lock were not executed; none if the kernel has none.
fn sentence(coverage: &Coverage) -> Option<String> {
    let (all, unreached) = (grouped(coverage.locking), &coverage.unreached);
    if unreached.is_empty() {
        return (coverage.locking > 0)
            .then(|| format!("all {all} functions that {LOCKING} were executed"));
    }
    let count = grouped(unreached.len() as u64);
    let names: Vec<String> = unreached.iter().take(NAMED).map(name).collect();
    Some(format!(
        "{count} of {all} functions that {LOCKING} were not executed, such as {}",
        names.join(", ")
    ))
}

/// `do_exit (12 places)`.
fn name(function: &LockingFunction) -> String {
    let name = function_name(&function.name);
    match function.places {
        0 | 1 => name,
        places => format!("{name} ({} places)", grouped(places)),
    }
}

/// A row for each cell, and what was not executed. Nothing if nothing is known.
pub(super) fn push(out: &mut String, coverage: &Coverage, width: usize, paint: Paint) {
    if coverage.cells.is_empty() {
        return;
    }
    let heading =
        format!("What was executed of the kernel's {} functions", grouped(coverage.functions));
    out.push('\n');
    push_styled(out, &heading, Style::Strong, ("", 2, width), paint);
    let right = COLUMNS.map(|head| (head, Align::Right));
    let columns: Vec<_> = std::iter::once(("cell", Align::Left)).chain(right).collect();
    let mut table = Table::new(&columns).lesser(&["share", "only here"]);
    let row = |name: String, values: [String; 5]| {
        std::iter::once(name).chain(values).map(|text| (text, Style::Plain)).collect()
    };
    for cell in &coverage.cells {
        let key = words::key_name(&cell.key);
        table.named_row(row(key.clone(), values(coverage, cell)), key);
    }
    if coverage.cells.len() > 1 {
        table.row(row("all cells".to_owned(), totals(coverage)));
    }
    out.push_str(&table.render(width, paint));
    if let Some(sentence) = sentence(coverage) {
        push_wrapped(out, &sentence, "  ", 4, width);
    }
}

/// The same of several runs in one table, and the functions in lists that are opened to read them.
pub(super) fn markup(all: &[Sections], names: &[String]) -> Markup {
    let known = || all.iter().zip(names).filter(|(one, _)| !one.coverage.cells.is_empty());
    let (several, any) = (all.len() > 1, known().next().is_some());
    let heads_of_words: &[&str] = if several { &["kernel", "cell"] } else { &["cell"] };
    let row = |kernel: Option<&String>, cell: &str, values: [String; 5]| {
        html! { tr class=(if kernel.is_some() { "first" } else { "" }) {
            @if several { th scope="row" { @if let Some(kernel) = kernel { (kernel) } } }
            td { (cell) }
            @for value in values { (number(value)) }
        } }
    };
    let rows = |one: &Sections, name| {
        let coverage = &one.coverage;
        html! {
            @for (at, cell) in coverage.cells.iter().enumerate() {
                (row((at == 0).then_some(name), &words::key_name(&cell.key), values(coverage, cell)))
            }
            @if coverage.cells.len() > 1 { (row(None, "all cells", totals(coverage))) }
        }
    };
    html! { @if any { section {
        h2 { "What was executed" }
        p class="about" {
            "A function counts if a part of it was executed, which is not every way through it. \
             Functions that lock are those of the kernel that " (LOCKING) "; what only turns \
             interrupts off is not among them."
        }
        div class="scroll" { table {
            (heads("Functions and blocks of the kernel that were executed", heads_of_words, &COLUMNS))
            tbody { @for (one, name) in known() { (rows(one, name)) } }
        } }
        @for (one, name) in known() {
            @let kernel = if several { format!("{name}: ") } else { String::new() };
            @if let Some(sentence) = sentence(&one.coverage) { p { (kernel) (sentence) "." } }
            (lists(&one.coverage, &kernel))
        }
    } } }
}

fn lists(coverage: &Coverage, kernel: &str) -> Markup {
    let cells = coverage.cells.iter().filter(|_| coverage.cells.len() > 1);
    let unreached = format!("{kernel}functions that lock and were not executed");
    html! {
        (list(&unreached, &coverage.unreached, name))
        @for cell in cells {
            @let cell_name = words::key_name(&cell.key);
            @let title = format!("{kernel}functions that only {cell_name} executed");
            (list(&title, &cell.only, |name| function_name(name)))
        }
    }
}

pub(super) fn list<T>(title: &str, items: &[T], text: impl Fn(&T) -> String) -> Markup {
    let (shown, others) = items.split_at(items.len().min(LISTED));
    let texts: Vec<String> = shown.iter().map(text).collect();
    html! { @if !items.is_empty() { details {
        summary { (title) " (" (grouped(items.len() as u64)) ")" }
        p { (texts.join(", ")) }
        @if !others.is_empty() {
            p { (grouped(others.len() as u64)) " more are in sections.json." }
        }
    } } }
}
