//! What the same cells executed of one kernel, and not of another.

use std::collections::BTreeSet;

use maud::{Markup, html};
use punctual_core::sections::Sections;
use punctual_core::units::grouped;

use super::coverage::list;
use crate::explanation::times::function_name;
use crate::html::{heads, number};
use crate::text::{Align, Paint, Style, Table, push_styled, push_wrapped};
use crate::words;

/// Why a name may be missing.
const MEANING: &str = "By name, without what compilers append to it. A function that is missing may \
    be part of its caller there, or not exist.";

/// A cell of a run beside the same of the first run.
struct Beside<'a> {
    key: &'a str,
    /// Index of the run.
    run: usize,
    both: u64,
    only_first: Vec<&'a str>,
    only_here: Vec<&'a str>,
}

/// The functions that a cell executed; none if it was not watched.
fn executed<'a>(of: &'a Sections, key: &str) -> Option<BTreeSet<&'a str>> {
    let coverage = &of.coverage;
    let cell = coverage.cells.iter().position(|cell| cell.key == key)?;
    let own = coverage.executed.iter().filter(|function| function.blocks.get(cell) > Some(&0));
    Some(own.map(|function| plain(&function.name)).collect())
}

/// Without `.constprop.0` and the like, which are another thing in each build.
fn plain(name: &str) -> &str {
    match name.split_once('.') {
        Some((before, after)) if !before.is_empty() && !after.contains('[') => before,
        _ => name,
    }
}

fn beside(all: &[Sections]) -> Vec<Beside<'_>> {
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    let mut all = Vec::new();
    for cell in &first.coverage.cells {
        let base = executed(first, &cell.key).unwrap_or_default();
        for (run, other) in (1..).zip(others) {
            let Some(own) = executed(other, &cell.key) else { continue };
            all.push(Beside {
                key: &cell.key,
                run,
                both: base.intersection(&own).count() as u64,
                only_first: base.difference(&own).copied().collect(),
                only_here: own.difference(&base).copied().collect(),
            });
        }
    }
    all
}

const HEADS: [&str; 3] = ["only here", "only A", "both"];

fn values(one: &Beside<'_>) -> [String; 3] {
    let count = |names: &[&str]| grouped(names.len() as u64);
    [count(&one.only_here), count(&one.only_first), grouped(one.both)]
}

/// A row for each run of each cell, but the first run. Nothing if none has been watched.
pub(super) fn push(out: &mut String, all: &[Sections], width: usize, paint: Paint) {
    let all = beside(all);
    if all.is_empty() {
        return;
    }
    out.push('\n');
    push_styled(out, "Functions that one kernel executed", Style::Strong, ("", 2, width), paint);
    let right = HEADS.map(|head| (head, Align::Right));
    let columns: Vec<_> = std::iter::once(("run", Align::Left)).chain(right).collect();
    let mut table = Table::new(&columns);
    for of_cell in all.chunk_by(|a, b| a.key == b.key) {
        table.heading(of_cell.first().map_or_else(String::new, |one| words::key_name(one.key)));
        for one in of_cell {
            let row = std::iter::once(words::letter(one.run)).chain(values(one));
            table.row(row.map(|text| (text, Style::Plain)).collect());
        }
    }
    out.push_str(&table.render(width, paint));
    push_wrapped(out, MEANING, "  ", 4, width);
}

/// The same, and the functions in lists that are opened to read them.
pub(super) fn markup(all: &[Sections], names: &[String]) -> Markup {
    let all = beside(all);
    let name = |run: usize| names.get(run).map_or("", String::as_str);
    let first = format!("only {}", name(0));
    let numbers = [HEADS[0], first.as_str(), HEADS[2]];
    html! { @if !all.is_empty() { section {
        h2 { "What one kernel executed" }
        p class="about" { (MEANING) }
        div class="scroll" { table {
            (heads("Functions by cell and kernel, beside the first kernel", &["cell", "kernel"], &numbers))
            tbody { @for of_cell in all.chunk_by(|a, b| a.key == b.key) {
                @for (at, one) in of_cell.iter().enumerate() {
                    tr class=(if at == 0 { "first" } else { "" }) {
                        th scope="row" { @if at == 0 { (words::key_name(one.key)) } }
                        td { (name(one.run)) }
                        @for value in values(one) { (number(value)) }
                    }
                }
            } }
        } }
        @for one in &all {
            @for (names, here, there) in [(&one.only_here, one.run, 0), (&one.only_first, 0, one.run)] {
                @let title = format!(
                    "{}: functions that {} executed and {} did not",
                    words::key_name(one.key), name(here), name(there)
                );
                (list(&title, names, |name| function_name(name)))
            }
        }
    } } }
}
