//! The report: one HTML file that needs nothing else, not even a script.

mod cells;
mod compare;
mod cost;
mod facts;
mod figures;
mod guide;
mod papers;
mod parts;
mod series;
mod spread;
mod summary;
mod verdict;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use punctual_core::run::LoadedRun;

use crate::figure;
use crate::replicates::Kernels;
use crate::words;

const STYLE: &str = include_str!("page.css");

/// How a report is made.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its title; without one it is made from boards and kernels.
    pub title: Option<String>,
}

/// One report about runs, side by side if there are several, by kernel if kernels have
/// replicates: verdict, conditions, tables, figures, facts. The text is a complete HTML
/// file that loads nothing, runs no script, and has light, dark and printed forms.
#[must_use]
pub fn page(runs: &[LoadedRun], options: &Options) -> String {
    let kernels = Kernels::of(runs);
    let title = options.title.clone().unwrap_or_else(|| title(runs, kernels.as_ref()));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (words::clean(&title)) }
                style { (PreEscaped(figure::STYLE)) (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { (words::clean(&title)) } }
                main {
                    @if let Some(kernels) = &kernels { (spread::main(kernels)) } @else { (main(runs)) }
                }
            }
        }
    };
    page.into_string()
}

/// Runs that are shown individually.
fn main(runs: &[LoadedRun]) -> Markup {
    let names = words::run_names(runs);
    let named: Vec<_> = runs.iter().zip(names.iter().map(String::as_str)).collect();
    html! {
        @if runs.is_empty() { p { "No runs were given." } }
        @for run in runs { (verdict::verdict(run)) }
        (verdict::conditions(runs, &names))
        (summary::section(runs, &names))
        (cost::section(runs, &names))
        (compare::section(runs, &names))
        (figures::section(&figure::set(runs, None), &figures::CAPTIONS))
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
        let noun = if number == 1 { "kernel" } else { "kernels" };
        return format!("{number} {noun}, {} on {boards}", words::runs(runs.len()));
    }
    match runs {
        [run] => format!("{} · Linux {}", run.run.board.name, run.run.kernel.release),
        _ => format!("{} runs on {}", runs.len(), boards.join(", ")),
    }
}
