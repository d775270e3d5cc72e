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
