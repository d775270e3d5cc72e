//! What a run comes to, and what makes its numbers suspect.

use maud::{Markup, html};
use punctual_core::run::LoadedRun;
use punctual_core::schema::Run;

use super::parts::class;
use crate::words;

pub fn verdict(loaded: &LoadedRun) -> Markup {
    let run: &Run = &loaded.run;
    let verdict = &run.verdict;
    html! {
        section class=(format!("verdict {}", class(verdict.outcome))) aria-label="verdict" {
            p class="outcome" {
                strong { (words::run_outcome(run)) }
                @if let Some(first) = verdict.because.first() { " " (words::clean(first)) }
                @for label in words::labels(run) { span { (label) } }
            }
            p class="head" { (words::headline(run).join(" · ")) }
            ul {
                @for reason in verdict.because.iter().skip(1) { li { (words::clean(reason)) } }
                @for note in words::run_notes(loaded) { li { (note) } }
            }
        }
    }
}

pub fn conditions(runs: &[LoadedRun], names: &[String]) -> Markup {
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
