//! The sections of runs in the terminal: first the longest, then of each cell how many there
//! were, the longest ones, and between which functions.

use punctual_core::explanation::Hold;
use punctual_core::sections::{CellSections, KindSections, Section, Sections};
use punctual_core::units::grouped;

use super::coverage;
use super::found::{between, facts, max, mostly, pairs, sampled, share, stack};
use super::sentence::sentence;
use crate::explanation::times::{function_name, length};
use crate::text::{Align, Paint, Style, Table, push_pairs, push_styled, push_wrapped};
use crate::words;

/// Pairs of functions that are listed.
const PAIRS: usize = 10;
/// Functions of a stack that are listed.
const STACK: usize = 8;
/// The sections of each run in lines of at most `width` columns.
#[must_use]
pub fn text(all: &[Sections], width: usize, colour: bool) -> String {
    let paint = Paint::new(colour);
    let mut out = String::new();
    for (number, sections) in all.iter().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        of_run(&mut out, sections, width, paint);
    }
    out
}

pub(super) fn title(sections: &Sections) -> String {
    format!("When {} could not react", words::clean(&sections.run))
}

pub(super) fn kernel(sections: &Sections) -> String {
    words::watched_kernel(&sections.release, sections.model, sections.instruction_ns)
}

/// What the kinds of section mean that a run was searched for.
pub(super) fn meanings(sections: &Sections) -> Vec<(String, String)> {
    let kinds = || sections.cells.iter().flat_map(|cell| &cell.kinds);
    let holds = [Hold::Interrupts, Hold::Scheduler].into_iter();
    let searched = holds.filter(|how| kinds().any(|kind| kind.how == *how));
    let meaning = |how: Hold| words::section_meaning(how, sections.model).to_owned();
    searched.map(|how| (words::section_name(how).to_owned(), meaning(how))).collect()
}

fn of_run(out: &mut String, sections: &Sections, width: usize, paint: Paint) {
    push_styled(out, &title(sections), Style::Strong, ("", 0, width), paint);
    push_wrapped(out, &kernel(sections), "", 0, width);
    push_styled(out, &sentence(sections), Style::Strong, ("", 2, width), paint);
    push_pairs(out, &meanings(sections), width);
    for cell in &sections.cells {
        out.push('\n');
        let head = head(cell);
        push_styled(out, &head, Style::Strong, ("", 0, width), paint);
        out.push_str(&counts(cell).render(width, paint));
        for kind in cell.kinds.iter().filter(|kind| kind.count > 0) {
            of_kind(out, kind, width, paint);
        }
    }
    coverage::push(out, &sections.coverage, width, paint);
    for caveat in &sections.caveats {
        push_wrapped(out, &words::clean(caveat), "  ! ", 4, width);
    }
}

/// `wakeup @ hackbench @ 2s, watched for 2.000 s`.
pub(super) fn head(cell: &CellSections) -> String {
    let watched = words::instant(cell.watched_ns);
    format!("{}, watched for {watched}", words::key_name(&cell.key))
}

/// A row for each kind, and the largest sample below their longest.
fn counts(cell: &CellSections) -> Table {
    let right = Align::Right;
    let columns =
        [("sections", Align::Left), ("longest", right), ("share of time", right), ("count", right)];
    let mut table = Table::new(&columns).lesser(&["share of time"]);
    let plain = |text: String| (text, Style::Plain);
    for kind in &cell.kinds {
        table.row(vec![
            plain(words::section_name(kind.how).to_owned()),
            (max(kind).unwrap_or_else(|| "-".to_owned()), Style::Strong),
            plain(share(cell, kind)),
            plain(grouped(kind.count)),
        ]);
    }
    if let Some(max) = sampled(cell) {
        table.row(vec![plain("largest sample".to_owned()), plain(max)]);
    }
    table
}

fn of_kind(out: &mut String, kind: &KindSections, width: usize, paint: Paint) {
    if !kind.longest.is_empty() {
        let head = format!("longest {}", words::section_clause(kind.how));
        out.push('\n');
        push_styled(out, &head, Style::Strong, ("  ", 2, width), paint);
        longest(out, kind, width, paint);
    }
    functions(out, kind, width, paint);
}

/// The lengths in a column, and beside each when it was and between what, where it began, what
/// ran.
fn longest(out: &mut String, kind: &KindSections, width: usize, paint: Paint) {
    let widest = kind.longest.iter().map(|section| length(section.length_ns).len()).max();
    let indent = widest.unwrap_or(0) + 4;
    let mut before: Option<&Section> = None;
    for section in &kind.longest {
        let style = if before.is_none() { Style::Strong } else { Style::Plain };
        let ns = length(section.length_ns);
        // Padding stays outside the escape sequences.
        let pad = " ".repeat(indent - 2 - ns.len());
        let first = format!("{pad}{}  ", paint.apply(&ns, style));
        push_styled(out, &facts(section, kind.how), style, (&first, indent, width), paint);
        // The longest ones are often the same place again and again.
        let is_same = before.is_some_and(|before| before.stack == section.stack);
        let stack = stack(section, STACK).map(|stack| match is_same {
            true => "same stack".to_owned(),
            false => format!("in {stack}"),
        });
        for line in stack.into_iter().chain(mostly(section)) {
            push_styled(out, &line, Style::Plain, (&" ".repeat(indent), indent, width), paint);
        }
        before = Some(section);
    }
}

/// The functions that sections begin and end in.
fn functions(out: &mut String, kind: &KindSections, width: usize, paint: Paint) {
    let (shown, others) = pairs(kind, PAIRS);
    if shown.is_empty() {
        return;
    }
    out.push('\n');
    let right = Align::Right;
    let columns = [
        ("from", Align::Left),
        ("to", Align::Left),
        ("longest", right),
        ("count", right),
        ("in all", right),
    ];
    let mut table = Table::new(&columns).lesser(&["in all"]);
    for pair in shown {
        let numbers = [length(pair.max_ns), grouped(pair.count), length(pair.total_ns)];
        let [longest, count, all] = numbers.map(|text| (text, Style::Plain));
        let ends = [&pair.from, &pair.to].map(|name| (function_name(name), Style::Plain));
        let [from, to] = ends;
        table.named_row(vec![from, to, longest, count, all], between(&pair.from, &pair.to));
    }
    out.push_str(&table.render(width, paint));
    if others > 0 {
        let noun = if others == 1 { "pair" } else { "pairs" };
        let text = format!("{} more {noun} of functions", grouped(others as u64));
        push_wrapped(out, &text, "  ", 4, width);
    }
}
