//! The report: one HTML file that needs nothing else, not even a script.

mod cells;
mod compare;
mod facts;
mod guide;
mod papers;
mod spread;
mod summary;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Outcome, Run};

use crate::figure::{self, Figure};
use crate::kernels::Kernels;
use crate::words;

const STYLE: &str = include_str!("page.css");

/// How a report is made.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its title; without one it is made from boards and kernels.
    pub title: Option<String>,
}

/// One report over runs, side by side where there are several, by kernel where
/// kernels have replicates: verdict, conditions, tables, figures, facts. The text is a complete HTML file that
/// loads nothing, runs no script, and has light, dark and printed forms.
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

/// Runs that stand for themselves.
fn main(runs: &[LoadedRun]) -> Markup {
    let names = words::run_names(runs);
    let named: Vec<_> = runs.iter().zip(names.iter().map(String::as_str)).collect();
    html! {
        @if runs.is_empty() { p { "No runs were given." } }
        @for run in runs { (verdict(run)) }
        (conditions(runs, &names))
        (summary::section(runs, &names))
        (compare::section(runs, &names))
        (figures_section(&figure::set(runs), &CAPTIONS))
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

fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::None => "none",
        Outcome::Pass => "pass",
        Outcome::Skipped | Outcome::Inconclusive => "doubt",
        Outcome::Fail => "fail",
    }
}

fn verdict(loaded: &LoadedRun) -> Markup {
    let run: &Run = &loaded.run;
    let verdict = &run.verdict;
    html! {
        section class=(format!("verdict {}", class(verdict.outcome))) aria-label="verdict" {
            p class="outcome" {
                strong { (words::outcome(verdict.outcome)) }
                @if let Some(ns) = verdict.deadline_ns { span { "deadline " (words::duration(ns)) } }
                @if !run.privileged { span { "not real-time" } }
                @if run.is_virtual { span { "virtual machine" } }
            }
            p class="head" { (words::headline(run).join(" · ")) }
            @if verdict.because.is_empty() && verdict.deadline_ns.is_none() {
                p { "Nothing is judged without a deadline." }
            }
            ul {
                @for reason in &verdict.because { li { (words::clean(reason)) } }
                @if let Some(worst) = words::worst(run) { li { (worst) } }
                @for note in words::run_notes(loaded) { li { (note) } }
            }
        }
    }
}

fn conditions(runs: &[LoadedRun], names: &[String]) -> Markup {
    let any = runs.iter().any(|run| !run.run.conditions.is_empty());
    html! {
        @if any {
            section class="conditions" {
                h2 { "What makes these numbers suspect" }
                @for (run, name) in runs.iter().zip(names).filter(|(run, _)| !run.run.conditions.is_empty()) {
                    @if runs.len() > 1 { h3 { (name) } }
                    ul { @for condition in &run.run.conditions { li { (words::clean(&condition.text)) } } }
                }
            }
        }
    }
}

/// How the figures are to be read.
struct Captions {
    overview: &'static str,
    histograms: &'static str,
    timelines: &'static str,
}

const CAPTIONS: Captions = Captions {
    overview: "A curve far to the right at its lower end has rare, long latencies: the maximum is \
        its end. Missed periods count as late as they were.",
    histograms: "Every bar is a true count of the samples in its width. Latencies of zero and below \
        stand in the band \"early\" where the axis is logarithmic.",
    timelines: "Colour is the number of samples in a column and a latency bin, logarithmic. Below: \
        the load's work, so that holes show.",
};

fn figures_section(set: &figure::Set, captions: &Captions) -> Markup {
    let group = |name: &str, about: &str, list: &[Figure], class: &str| {
        html! {
            @if !list.is_empty() {
                h3 { (name) }
                p class="about" { (about) }
                div class=(class) { @for figure in list { figure { (figure.inline()) } } }
            }
        }
    };
    html! {
        @if !set.overview.is_empty() {
            section {
                h2 { "Figures" }
                p class="about" { "One latency axis for all cells and kernels; it covers every sample." }
                (group("All cells", captions.overview, &set.overview, "stack"))
                (group("Histograms", captions.histograms, &set.histograms, "grid"))
                (group("Timelines", captions.timelines, &set.timelines, "stack"))
            }
        }
    }
}

/// A number cell of a table.
fn number(text: String) -> Markup {
    html! { td class="n" { (text) } }
}

fn ns(value: Option<i64>) -> String {
    value.map_or_else(|| "–".to_owned(), punctual_core::units::human_ns)
}

fn mean(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), words::mean_ns)
}
