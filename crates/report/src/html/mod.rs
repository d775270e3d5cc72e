//! The report: one HTML file that needs nothing else, not even a script.

mod cells;
mod compare;
mod compared_costs;
mod contents;
mod cost;
mod facts;
mod figures;
mod guide;
mod interrupts;
mod legs;
mod opening;
mod papers;
mod parts;
mod phases;
mod published;
mod series;
mod spread;
mod summary;
mod verdict;

pub(crate) use parts::{heads, number, verdict};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use punctual_core::compare::{Comparison, compare, compare_any_duration};
use punctual_core::published::Citation;
use punctual_core::run::LoadedRun;

use crate::describe::made;
use crate::published::beside;
use crate::replicates::Kernels;
use crate::{figure, subject, words};

const STYLE: &str = include_str!("page.css");

/// How a report is made.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its title; without one it is made from boards and kernels.
    pub title: Option<String>,
    /// Whether cells that differ in their duration only are compared, without their extremes.
    pub any_duration: bool,
    /// The publication beside which they are put.
    pub published: Option<Citation>,
}

/// One report about runs, side by side if there are several, by kernel if kernels have
/// replicates: verdict, conditions, tables, figures, facts. The text is a complete HTML
/// file that loads nothing, runs no script, and has light, dark and printed forms.
#[must_use]
pub fn page(runs: &[LoadedRun], options: &Options) -> String {
    let comparison = if options.any_duration { compare_any_duration(runs) } else { compare(runs) };
    let kernels = Kernels::of(runs, &comparison);
    let title = options.title.clone().unwrap_or_else(|| title(runs, kernels.as_ref()));
    let beside = options.published.as_ref().map(|citation| beside(runs, citation));
    let main = kernels.as_ref().map_or_else(|| main(runs, &comparison), spread::main);
    let main = html! { (main) @if let Some(beside) = &beside { (published::section(beside)) } };
    let made = html! { p class="made" { (made(runs).join(" · ")) } };
    document(&title, &made, &contents::with_contents(&main))
}

/// What a browser lets a page do: it has styles and pictures of its own, no script, and asks for
/// nothing. Whatever a name from elsewhere may contain, nothing of it runs.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// A page that loads nothing, with `below` its title.
pub(crate) fn document(title: &str, below: &Markup, main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (words::clean(title)) }
                style { (PreEscaped(figure::style())) (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (words::clean(title)) } (below) }
                main { (main) }
            }
        }
    };
    with_micro(&page.into_string())
}

/// A page with `µs` where numbers have the unit `us`, which other outputs keep since it can be
/// typed. Names and command lines have no space before a unit.
fn with_micro(page: &str) -> String {
    const PLAIN: &str = " us";
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find(PLAIN) {
        let (before, after) = (&rest[..at], &rest[at + PLAIN.len()..]);
        let ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let counts = before.ends_with(|c: char| c.is_ascii_digit() || c == ')');
        out.push_str(before);
        out.push_str(if ends && counts { " µs" } else { PLAIN });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Runs that are shown individually.
fn main(runs: &[LoadedRun], comparison: &Comparison) -> Markup {
    let names = words::run_names(runs);
    let named: Vec<_> = runs.iter().zip(names.iter().map(String::as_str)).collect();
    html! {
        @if runs.is_empty() { p { "No runs were given." } }
        (opening::of_runs(runs, comparison, &names))
        @for (run, name) in &named {
            @if runs.len() > 1 { h3 { (name) } }
            (verdict::verdict(run))
        }
        (verdict::conditions(runs, &names))
        (summary::section(runs, &names))
        (cost::section(runs, &names))
        (compare::section(comparison, &names))
        (legs::section(&subject::of_runs(runs), &names))
        (figures::section(&figure::set(runs, comparison, None), figure::left_out(runs), &figures::CAPTIONS))
        (papers::section(runs, &names))
        (cells::section("Cells", &cells::of_runs(runs, &names)))
        (facts::section("Boards and kernels", &named))
        (guide::section())
        (facts::commands(&facts::one_by_one(&named)))
    }
}

fn title(runs: &[LoadedRun], kernels: Option<&Kernels<'_>>) -> String {
    let mut boards: Vec<&str> = runs.iter().map(|run| run.run.board.name.as_str()).collect();
    boards.dedup();
    if let Some(kernels) = kernels {
        let (number, boards) = (kernels.names.len(), boards.join(", "));
        let noun = words::side_noun(&kernels.comparison.groups);
        let plural = if number == 1 { "" } else { "s" };
        return format!("{number} {noun}{plural}, {} on {boards}", words::runs(runs.len()));
    }
    match runs {
        [run] => format!("{} · Linux {}", run.run.board.name, run.run.kernel.release),
        _ => format!("{} runs on {}", runs.len(), boards.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_have_their_sign_where_they_are_units() {
        assert_eq!(
            with_micro("4.0 us, 566.0 (541.0 to 854.0) us, -i 200 user 5 users us 200us 3 us"),
            "4.0 µs, 566.0 (541.0 to 854.0) µs, -i 200 user 5 users us 200us 3 µs"
        );
    }
}
