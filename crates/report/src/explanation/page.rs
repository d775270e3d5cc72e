//! An explanation as one HTML file that loads nothing.

use maud::{Markup, html};
use punctual_core::explanation::{Chosen, Explained, ExplainedCell, Explanation};
use punctual_core::preemption::Model;
use punctual_core::units::grouped;

use super::sentence::cause;
use super::text::{FUNCTIONS, facts, function_rows, shown, title, unexplained};
use super::times::{Asked, asked, leg_ns, length, longest, rank_name, rest_ns};
use crate::figure::flame;
use crate::html::{document, heads, number};
use crate::words;

/// How to read the figures.
const READ: &str = "Over time, functions stand below their callers; what is below another ran \
    within it. In the stacks the same functions have the time of all their calls together, \
    sorted by name. The functions with the most own time are in colour. Point at a box for its \
    name and its time.";

/// The page: of each cell the causes, the legs, and the figures and functions of each sample.
#[must_use]
pub fn page(explanation: &Explanation) -> String {
    let Explanation { release, model, instruction_ns, .. } = explanation;
    let kernel = words::watched_kernel(release, *model, *instruction_ns);
    let below = html! { p class="made" { (kernel) } };
    let main = html! {
        @for caveat in &explanation.caveats { p { (words::clean(caveat)) } }
        @for (at, cell) in explanation.cells.iter().enumerate() {
            section {
                h2 { (words::key_name(&cell.key)) }
                @for one in asked(cell) { (said(cell, &one, explanation.model)) }
                @if cell.samples.is_empty() {
                    @if cell.unexplained.is_empty() { p { "no samples" } }
                } @else {
                    (legs(cell))
                    p class="about" { (READ) }
                    @for rank in 0..cell.samples.len() { (sample(cell, (at, rank))) }
                }
            }
        }
        @if !explanation.cells.is_empty() {
            section {
                h2 { "Legs" }
                dl { @for leg in words::LEGS {
                    dt { (words::leg_name(leg)) } dd { (words::leg_meaning(leg)) }
                } }
            }
        }
    };
    document(&title(&words::clean(&explanation.run)), &below, &main)
}

/// Why a sample was late, those of the worst ones in a box.
fn said(cell: &ExplainedCell, one: &Asked<'_>, model: Model) -> Markup {
    let (chosen, sentence) = match one {
        Asked::Explained(number, sample) => {
            let cause = cause(sample, model);
            let sentence = html! {
                p { b { (rank_name(cell, *number)) } ": " (cause.sentence) "." }
                @for remedy in &cause.remedies { p { (remedy.words()) } }
            };
            (sample.chosen, sentence)
        }
        Asked::Unexplained(name, sample) => {
            (sample.chosen, html! { p { b { (name) } ": " (unexplained(sample)) "." } })
        }
    };
    match chosen {
        Chosen::Typical => sentence,
        Chosen::Worst | Chosen::At => html! { div class="verdict" { (sentence) } },
    }
}

/// A column for each sample, and the longest leg of each in bold type.
fn legs(cell: &ExplainedCell) -> Markup {
    let ranks: Vec<_> = (0..cell.samples.len()).map(|rank| rank_name(cell, rank)).collect();
    let samples = || cell.samples.iter();
    let has = |leg: &_| samples().any(|sample| leg_ns(sample, *leg).is_some());
    let time = |sample: &Explained, leg| {
        let is_longest = longest(sample).is_some_and(|longest| longest.until == leg);
        let text = leg_ns(sample, leg).map_or_else(|| "–".to_owned(), length);
        html! { td class=(if is_longest { "n max" } else { "n" }) { (text) } }
    };
    html! {
        div class="scroll" { table {
            (heads("Legs; the longest of each sample is bold", &["leg"], &ranks))
            tbody {
                @for leg in words::LEGS.into_iter().filter(has) {
                    tr {
                        th scope="row" { (words::leg_name(leg)) }
                        @for sample in samples() { (time(sample, leg)) }
                    }
                }
                @if samples().any(|sample| rest_ns(sample) > 0) {
                    tr {
                        th scope="row" { "not known" }
                        @for sample in samples() { (number(length(rest_ns(sample)))) }
                    }
                }
                tr class="first" {
                    th scope="row" { "latency" }
                    @for sample in samples() { (number(length(sample.latency_ns))) }
                }
                tr {
                    th scope="row" { "instructions" }
                    @for sample in samples() { (number(grouped(sample.instructions))) }
                }
            }
        } }
    }
}

/// What shows why a sample was late.
fn sample(cell: &ExplainedCell, at: (usize, usize)) -> Markup {
    let Some(sample) = cell.samples.get(at.1) else { return Markup::default() };
    let lines = shown(sample);
    let figures = flame::of_sample(cell, at);
    html! {
        h3 { (rank_name(cell, at.1)) ": " (facts(sample)) }
        @if !lines.is_empty() { ul { @for line in &lines { li { (line) } } } }
        @for figure in &figures { figure { figcaption { (figure.title) } (figure.inline()) } }
        div class="scroll" { table {
            (heads(
                &format!("Own time, at most {FUNCTIONS} functions"),
                &["function"],
                &["own time", "share"],
            ))
            tbody { @for [name, time, share] in function_rows(sample) {
                tr { th scope="row" { (name) } (number(time)) (number(share)) }
            } }
        } }
    }
}
