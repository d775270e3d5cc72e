//! The aimed releases of runs as one HTML file that loads nothing.

use maud::{Markup, html};
use punctual_core::aimed::{AimedCell, AimedRun, Course, Shot, Target};
use punctual_core::units::grouped;

use super::found::{
    AimedFrom, OTHER_COURSE, SameCourse, again, aimed_ns, cell_name, cells, difference, latest,
    names, passed_over, ratio, reason, samples,
};
use super::sentence::sentence;
use super::text::{kernel, title};
use crate::explanation::times::length;
use crate::figure::aimed as drawn;
use crate::html::{document, heads, number, verdict};
use crate::sections::found::between;
use crate::words;

/// How to read the page.
const READ: &str = "A release that is aimed at a section in which a woken thread could not have run \
    waits until it ends. Predicted is what is left of the section then, and what a wake-up takes. \
    Sampled is the largest latency that ordinary releases found by chance, aimed the largest of \
    the aimed ones. Point at a mark in a figure for its release.";

/// Heads of numbers in the table of targets.
const NUMBERS: [&str; 6] = ["length", "release", "at", "predicted", "measured", "difference"];

/// The page: the latest release of each run, all runs side by side, and of each cell the figure and
/// what was aimed at.
#[must_use]
pub fn page(all: &[AimedRun]) -> String {
    let names = names(all);
    let cells = cells(all);
    let heading = match all {
        [one] => title(one),
        _ => format!("How late releases of {} can be", words::runs(all.len())),
    };
    let below = html! { @for one in all { p class="made" { (kernel(one)) } } };
    let main = html! {
        @for caveat in words::once(all.iter().flat_map(|one| &one.caveats)) { p { (words::clean(caveat)) } }
        @for (one, name) in all.iter().zip(&names) {
            (verdict((all.len() > 1).then_some((name, &one.run)), &sentence(one), &html! {}))
        }
        @if !cells.is_empty() { (maxima(all.len(), &cells)) p class="about" { (READ) } }
        @for cell in &cells { (of_cell(cell, &cells, all.len() > 1)) }
    };
    document(&heading, &below, &main)
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// A row for each run of each cell.
fn maxima(runs: usize, cells: &[SameCourse<'_>]) -> Markup {
    let words = if runs > 1 { &["cell", "kernel"][..] } else { &["cell"] };
    let row = |same: &SameCourse<'_>, one: &AimedFrom<'_>, is_first: bool| {
        html! {
            tr class=(if is_first { "first" } else { "" }) {
                th scope="row" { @if is_first { (cell_name(same.key, same.course)) } }
                @if runs > 1 { td { (one.name) } }
                (number(or_dash(one.cell.sampled_max_ns.map(length))))
                td class="n max" { (or_dash(aimed_ns(one.cell).map(length))) }
                (number(ratio(one.cell)))
            }
        }
    };
    html! {
        div class="scroll" { table {
            (heads("The latest release by cell", words, &["sampled", "aimed", "ratio"]))
            tbody { @for same in cells { @for (at, one) in same.runs.iter().enumerate() {
                (row(same, one, at == 0))
            } } }
        } }
    }
}

/// The figure of a cell, then what each run has of it.
fn of_cell(same: &SameCourse<'_>, all: &[SameCourse<'_>], several: bool) -> Markup {
    html! {
        section {
            h2 { (cell_name(same.key, same.course)) }
            @if same.course == Course::Alone { p { (OTHER_COURSE) } }
            @if let Some(figure) = drawn::of_cell(same, all) {
                figure { figcaption { (figure.title) } (figure.inline()) }
            }
            @for one in &same.runs {
                @if several { h3 { (one.name) } }
                p { (samples(one.cell)) "." }
                @if one.cell.targets.is_empty() { p { "No section was aimed at." } }
                @else { (targets(one.cell)) }
                @if let Some(passed_over) = passed_over(one.cell) { p { (passed_over) "." } }
            }
        }
    }
}

fn targets(cell: &AimedCell) -> Markup {
    let latest = latest(cell).map(|(target, _)| target);
    let row = |target: &Target| {
        let is_latest = latest.is_some_and(|latest| std::ptr::eq(latest, target));
        html! {
            tr {
                td {
                    (between(&target.section.from, &target.section.to))
                    @if let Some(again) = again(target) { br; span class="soft" { (again) } }
                    // Its name is as long as that of any run: a column of its own would push the
                    // numbers off the page.
                    @if let Shot::Measured { run, .. } = &target.measured {
                        br; span class="soft" { "measured in " (words::clean(run)) }
                    }
                }
                (number(length(target.section.length_ns)))
                (number(grouped(target.number)))
                (number(words::instant(target.at_ns)))
                (number(length(target.predicted_ns)))
                @match &target.measured {
                    Shot::Measured { latency_ns, .. } => {
                        td class=(if is_latest { "n max" } else { "n" }) { (length(*latency_ns)) }
                    }
                    Shot::Failed { .. } => td class="n doubt" { "failed" },
                }
                (number(or_dash(difference(target))))
            }
            @if let Shot::Failed { why } = &target.measured {
                tr class="note" { td colspan=(1 + NUMBERS.len()) { div { (reason(why)) } } }
            }
        }
    };
    html! {
        div class="scroll" { table {
            (heads("Sections that releases were aimed at", &["section"], &NUMBERS))
            tbody { @for target in &cell.targets { (row(target)) } }
        } }
    }
}
