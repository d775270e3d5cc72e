//! The sections of runs as one HTML file that loads nothing.

use maud::{Markup, html};
use punctual_core::explanation::Hold;
use punctual_core::sections::{Section, Sections};
use punctual_core::units::grouped;

use super::between;
use super::compare::{began, ratio};
use super::coverage;
use super::found::{
    FromRun, SameKind, facts, kinds, max, mostly, names, pairs, sampled, share, stack,
};
use super::sentence::sentence;
use super::text::{kernel, meanings, title};
use crate::explanation::times::{function_name, length};
use crate::figure::sections as drawn;
use crate::html::{document, heads, number, verdict};
use crate::words;

/// Pairs of functions of a run that a table has.
const PAIRS: usize = 200;

/// How to read the figures.
const READ: &str = "The curves show which share of the sections was longer than a length; a circle \
    is the largest latency that the samples of the run found. Over time there is the longest \
    section of each slice. Point at a circle for its section.";

/// The page: the longest section of each run, all runs side by side, and of each cell and kind the
/// figures, the longest sections and the functions between which they are.
#[must_use]
pub fn page(all: &[Sections]) -> String {
    let names = names(all);
    let kinds = kinds(all);
    let heading = match all {
        [one] => title(one),
        _ => format!("When the kernels of {} could not react", words::runs(all.len())),
    };
    let below = html! { @for one in all { p class="made" { (kernel(one)) } } };
    let main = html! {
        @for caveat in words::once(all.iter().flat_map(|one| &one.caveats)) { p { (words::clean(caveat)) } }
        @for (one, name) in all.iter().zip(&names) {
            @let more = html! { @for (kind, meaning) in meanings(one) { p { (kind) ": " (meaning) "." } } };
            (verdict((all.len() > 1).then_some((name, &one.run)), &sentence(one), &more))
        }
        @if !kinds.is_empty() { (counts(all.len(), &kinds)) p class="about" { (READ) } }
        @for of_cell in kinds.chunk_by(|a, b| a.cell == b.cell) {
            section {
                @if let Some(first) = of_cell.first() { h2 { (words::key_name(first.key)) } }
                @for kind in of_cell { (of_kind(kind, &kinds, all.len() > 1)) }
            }
        }
        (coverage::markup(all, &names))
        (between::markup(all, &names))
    };
    document(&heading, &below, &main)
}

/// A row for each run of each kind in each cell.
fn counts(runs: usize, kinds: &[SameKind<'_>]) -> Markup {
    let dash = || "–".to_owned();
    let mut words = vec!["cell", "sections"];
    let mut numbers = vec!["longest"];
    if runs > 1 {
        words.push("kernel");
        numbers.push("ratio");
    }
    words.push("from");
    numbers.extend(["largest sample", "share of time", "count"]);
    let row = |kind: &SameKind<'_>, one: &FromRun<'_>, is_first: bool| {
        html! {
            tr class=(if is_first { "first" } else { "" }) {
                th scope="row" { @if is_first { (words::key_name(kind.key)) } }
                td { @if is_first { (words::section_name(kind.how)) } }
                @if runs > 1 { td { (one.name) } }
                td { (began(one)) }
                td class="n max" { (max(one.kind).unwrap_or_else(dash)) }
                @if runs > 1 { (number(ratio(kind, one))) }
                (number(sampled(one.cell).unwrap_or_else(dash)))
                (number(share(one.cell, one.kind)))
                (number(grouped(one.kind.count)))
            }
        }
    };
    html! {
        div class="scroll" { table {
            (heads("Sections by cell and kind, with the function that began the longest", &words, &numbers))
            tbody { @for kind in kinds { @for (at, one) in kind.runs.iter().enumerate() {
                (row(kind, one, at == 0))
            } } }
        } }
    }
}

/// The figures of a kind, then what each run has of it.
fn of_kind(kind: &SameKind<'_>, kinds: &[SameKind<'_>], several: bool) -> Markup {
    let name = words::section_name(kind.how);
    html! {
        h3 { (name) }
        @for figure in drawn::of_kind(kind, kinds) {
            figure { figcaption { (figure.title) } (figure.inline()) }
        }
        @for one in &kind.runs {
            @let caption = if several { format!("{name}, {}", one.name) } else { name.to_owned() };
            @if one.kind.count == 0 { p { (caption) ": no section was found." } } @else {
                (longest(&one.kind.longest, kind.how, &caption))
                (functions(one, &caption))
            }
        }
    }
}

fn longest(sections: &[Section], how: Hold, caption: &str) -> Markup {
    let row = |section: &Section, is_first: bool| {
        html! { tr {
            td class=(if is_first { "n max" } else { "n" }) { (length(section.length_ns)) }
            td {
                (facts(section, how))
                @if let Some(mostly) = mostly(section) { ", " (mostly) }
                @if let Some(stack) = stack(section, usize::MAX) {
                    br; span class="soft" { "in " (stack) }
                }
            }
        } }
    };
    html! {
        @if !sections.is_empty() {
            div class="scroll" { table {
                caption { "Longest sections · " (caption) }
                thead { tr { th scope="col" class="n" { "length" } th scope="col" { "section" } } }
                tbody { @for (at, section) in sections.iter().enumerate() { (row(section, at == 0)) } }
            } }
        }
    }
}

/// The pairs of functions; in a part of the page that is opened to read it, since it is long.
fn functions(one: &FromRun<'_>, caption: &str) -> Markup {
    let (shown, others) = pairs(one.kind, PAIRS);
    if shown.is_empty() {
        return Markup::default();
    }
    let all = grouped(one.kind.pairs.len() as u64);
    html! {
        details {
            summary { "Between two functions · " (caption) " (" (all) ")" }
            div class="scroll" { table {
                (heads("The pair with the longest section first", &["from", "to"], &["longest", "count", "in all"]))
                tbody { @for pair in shown { tr {
                    th scope="row" { (function_name(&pair.from)) }
                    td { (function_name(&pair.to)) }
                    td class="n max" { (length(pair.max_ns)) }
                    (number(grouped(pair.count)))
                    (number(length(pair.total_ns)))
                } } }
            } }
            @if others > 0 { p { (grouped(others as u64)) " more are in sections.json." } }
        }
    }
}
