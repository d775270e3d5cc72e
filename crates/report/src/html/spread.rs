//! The report of kernels with replicates: a verdict, a row and a figure for each
//! kernel; single runs only in a section for reference.

use maud::{Markup, html};
use punctual_core::compare::{MatchedCell, Spread};
use punctual_core::run::LoadedRun;
use punctual_core::schema::{Cell, Outcome, Run};
use punctual_core::units::grouped;
use punctual_core::verdict::pool;

use super::figures::Captions;
use super::parts::{class, number};
use super::{cells, compare, compared_costs, facts, figures, guide, legs, opening, papers};
use crate::figure;
use crate::replicates::Kernels;
use crate::subject::Subject;
use crate::words;

const CAPTIONS: Captions = Captions {
    overview: "A dot is one run. In the distributions, a curve contains all samples of all runs of \
        a kernel: it ends at the largest maximum of any run. Missed periods are counted with their \
        actual delay.",
    histograms: "All runs of a kernel together; the line is the largest maximum of any run. Every \
        bar is the true number of samples in its width. Latencies of zero and \
        below are in the band \"early\"; values with a sign, such as deviations, have a linear axis.",
    timelines: "For each kernel and cell, only the run with the largest maximum. Colour is the \
        number of samples per column and latency bin, logarithmic. Below: the load's work, which \
        shows any gaps.",
};

pub fn main(kernels: &Kernels<'_>) -> Markup {
    let comparison = &kernels.comparison;
    let noun = words::side_noun(&comparison.groups);
    let groups = 0..kernels.names.len();
    let has_latencies = !comparison.cells.is_empty();
    let firsts: Vec<(&LoadedRun, &str)> = groups
        .clone()
        .filter_map(|group| Some((kernels.first(group)?, kernels.names[group].as_str())))
        .collect();
    let names = run_names(kernels);
    let worst = kernels.worst();
    let label = |worst: &Subject<'_>| {
        format!("{}: {}", kernels.name(worst.at.0), words::key_name(&worst.cell.key))
    };
    let listed: Vec<_> = worst.iter().map(|s| (label(s), s.cell, s.data)).collect();
    let mut figures = figure::set(kernels.runs, comparison, Some(kernels));
    let is_spread = |(_, figure): &(figure::Place, figure::Figure)| figure.name == "spread";
    let spread = figures.iter().position(is_spread).map(|at| figures.remove(at).1);
    html! {
        (opening::of_kernels(kernels))
        @if let Some(spread) = &spread { figure { (spread.inline()) } }
        @for group in groups { (verdict(kernels, group)) }
        (conditions(kernels))
        section {
            h2 { (if noun == "kernel" { "Kernels side by side" } else { "Side by side" }) }
            (compare::caveats(comparison))
            @if has_latencies { (table(kernels)) }
            (compared_costs::section(comparison))
            @if let Some(replicates) = &comparison.replicates { (compare::estimates(comparison, replicates)) }
            (compare::differences(comparison, &names))
        }
        (legs::section(&worst, &kernels.names))
        (figures::section(&figures, figure::left_out(kernels.runs), &CAPTIONS))
        section {
            h2 { "Every run" }
            details { summary { "Runs" } (runs(kernels, &names)) }
            @if has_latencies {
                details { summary { "Cells, run by run" } (compare::table(comparison, &names)) }
                details { summary { "Cells without and with load, run by run" } (papers::tables(kernels.runs, &names)) }
            }
        }
        (cells::section("Cells: the run with the largest maximum of each kernel", &listed))
        (facts::section("Boards and kernels: the first run of each kernel", &firsts))
        (guide::section())
        (facts::commands(&commands(kernels)))
    }
}

/// The verdicts of a kernel's runs, and the reasons of the worst of them.
fn verdict(kernels: &Kernels<'_>, group: usize) -> Markup {
    let side = &kernels.comparison.groups[group];
    let members = side.runs.iter().filter_map(|run| Some((*run, kernels.runs.get(*run)?)));
    let max = |run: &LoadedRun| run.run.cells.iter().filter_map(Cell::max_ns).max();
    let Some((worst, loaded)) =
        members.clone().max_by_key(|(_, run)| (run.run.verdict.outcome, max(run)))
    else {
        return html! {};
    };
    let (run, outcome) = (&loaded.run, loaded.run.verdict.outcome);
    let counts: Vec<_> =
        words::outcomes(kernels.comparison, side).into_iter().map(|(_, text)| text).collect();
    html! {
        section class=(format!("verdict {}", class(outcome))) aria-label="verdict" {
            p class="outcome" {
                strong { (kernels.names[group]) ": " (words::run_outcome(run)) }
                span {
                    (words::runs(side.runs.len()))
                    @if outcome != Outcome::None { ": " (counts.join(", ")) }
                }
                @if let Some(ns) = run.verdict.deadline_ns { span { "deadline " (words::duration(ns)) } }
                @for label in words::side_labels(kernels.comparison, side) { span { (label) } }
            }
            p class="head" { (words::headline(run).join(" · ")) }
            @if let Some(share) = share(kernels, group) { p { (words::clean(&share)) } }
            p { "The worst run, " (run_name(kernels, worst)) ":" }
            ul {
                @for reason in &run.verdict.because { li { (words::clean(reason)) } }
                @for (number, member) in members {
                    @for note in words::run_notes(member) { li { (run_name(kernels, number)) ": " (note) } }
                }
            }
        }
    }
}

/// What the runs of a side come to if they are judged as one, unless they cannot be.
fn share(kernels: &Kernels<'_>, group: usize) -> Option<String> {
    let runs = kernels.comparison.groups[group].runs.iter();
    let runs: Vec<&Run> = runs.filter_map(|run| Some(&kernels.runs.get(*run)?.run)).collect();
    let pooled = pool(&runs).ok()?;
    let outcome = words::outcome(pooled.verdict.outcome, true);
    Some(format!("Judged as one: {outcome}. {}", pooled.verdict.because.first()?))
}

/// Every condition once, with the runs that it applies to, if not all.
fn conditions(kernels: &Kernels<'_>) -> Markup {
    let mut found: Vec<(&str, Vec<usize>)> = Vec::new();
    for (number, run) in kernels.runs.iter().enumerate() {
        for condition in &run.run.conditions {
            match found.iter_mut().find(|(text, _)| *text == condition.text) {
                Some((_, holders)) => holders.push(number),
                None => found.push((&condition.text, vec![number])),
            }
        }
    }
    html! {
        @if !found.is_empty() {
            section class="conditions" {
                h2 { "What makes these numbers suspect" }
                ul { @for (text, holders) in &found {
                    li {
                        (words::clean(text))
                        @if holders.len() < kernels.runs.len() { " (" (of_kernels(kernels, holders)) ")" }
                    }
                } }
            }
        }
    }
}

/// `none: 3 of 8 runs, rt: 8 of 8 runs`.
fn of_kernels(kernels: &Kernels<'_>, holders: &[usize]) -> String {
    let groups = kernels.comparison.groups.iter().zip(&kernels.names);
    let parts = groups.filter_map(|(group, name)| {
        let held = group.runs.iter().filter(|run| holders.contains(run)).count();
        let all = group.runs.len();
        (held > 0).then(|| format!("{name}: {held} of {}", words::runs(all)))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn table(kernels: &Kernels<'_>) -> Markup {
    let noun = words::side_noun(&kernels.comparison.groups);
    html! {
        p class="about" { (words::spread_note(noun)) }
        div class="scroll" {
            table {
                thead { tr {
                    th scope="col" { (noun) }
                    @for head in ["max", "ratio", "p99.9", "ratio", "avg", "ratio", "runs", "samples", "missed"] {
                        th scope="col" class="n" { (head) }
                    }
                } }
                tbody {
                    @for (name, cell) in words::with_phases(&kernels.comparison.cells) {
                        tr class="first" { th scope="rowgroup" colspan="10" { (name) } }
                        @for (spread, name) in cell.spreads.iter().zip(&kernels.names) {
                            tr { td class="run" { (name) } (numbers(kernels, cell, spread)) }
                        }
                    }
                }
            }
        }
    }
}

fn numbers(kernels: &Kernels<'_>, cell: &MatchedCell, spread: &Spread) -> Markup {
    let members = &kernels.comparison.groups[spread.group].runs;
    let rows = || cell.rows.iter().filter(|row| members.contains(&row.run));
    html! {
        @if spread.runs == 0 {
            td class="doubt" colspan="9" { "no samples" }
        } @else {
            td class="n max" { (words::span(words::ends(spread.max_ns))) }
            (number(words::ratio(spread.ratio.max)))
            (number(words::span(words::ends(spread.p999_ns))))
            (number(words::ratio(spread.ratio.p999)))
            (number(words::span(words::mean_ends(spread.avg_ns))))
            (number(words::ratio(spread.ratio.avg)))
            (number(spread.runs.to_string()))
            (number(grouped(rows().map(|row| row.samples).sum())))
            (number(grouped(rows().map(|row| row.missed).sum())))
        }
    }
}

/// What a run is called: by its reader, or by its number. Letters are those of curves.
fn run_name(kernels: &Kernels<'_>, run: usize) -> String {
    let label = kernels.runs.get(run).and_then(|loaded| loaded.label.as_deref());
    label.map_or_else(|| format!("run {}", run + 1), |label| words::clean(label).into_owned())
}

/// The names of runs, each with its kernel.
fn run_names(kernels: &Kernels<'_>) -> Vec<String> {
    let groups = &kernels.comparison.groups;
    let name = |run: usize| {
        let group = groups.iter().position(|group| group.runs.contains(&run));
        group.map_or("counted already", |group| kernels.names[group].as_str())
    };
    (0..kernels.runs.len())
        .map(|run| format!("{} ({})", run_name(kernels, run), name(run)))
        .collect()
}

fn runs(kernels: &Kernels<'_>, names: &[String]) -> Markup {
    html! {
        div class="scroll" {
            table {
                thead { tr {
                    @for head in ["run", "outcome", "name"] { th scope="col" { (head) } }
                    @for head in ["replicate", "seed", "phase"] { th scope="col" class="n" { (head) } }
                } }
                tbody { @for (loaded, name) in kernels.runs.iter().zip(names) {
                    @let run = &loaded.run;
                    tr {
                        th scope="row" { (name) }
                        td class=(class(run.verdict.outcome)) { (words::run_outcome(run)) }
                        td { (words::clean(&run.run_id)) }
                        (number(run.replicate.map_or_else(|| "–".to_owned(), |number| number.to_string())))
                        (number(run.board.lab.as_ref().map_or_else(|| "–".to_owned(), |lab| lab.seed.to_string())))
                        (number(words::duration(run.phase_ns)))
                    }
                } }
            }
        }
    }
}

/// Every command line once, with the names of the runs that it made.
fn commands<'a>(kernels: &Kernels<'a>) -> Vec<(&'a LoadedRun, String)> {
    let mut found: Vec<(&LoadedRun, Vec<String>)> = Vec::new();
    for (number, run) in kernels.runs.iter().enumerate() {
        let same = |other: &LoadedRun| {
            other.run.tool == run.run.tool && other.run.plan.name == run.run.plan.name
        };
        let known = found.iter().position(|(other, _)| same(other)).unwrap_or(found.len());
        if known == found.len() {
            found.push((run, Vec::new()));
        }
        found[known].1.push(run_name(kernels, number));
    }
    let all = kernels.runs.len();
    let label = |names: Vec<String>| {
        if names.len() == all { "all runs".to_owned() } else { names.join(", ") }
    };
    found.into_iter().map(|(run, names)| (run, label(names))).collect()
}
