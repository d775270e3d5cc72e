//! Names that are values: of probes, loads, costs, plans, runs, and their parameters.

use std::path::Path;

use punctual_core::layout::RUNS;
use punctual_lab::device::DEVICES;
use punctual_suite::registry::placement::PLACE_PARAMS;
use punctual_suite::registry::{Choice, Kind, Param};
use punctual_suite::{costs, loads, metrics, probes};

use super::Candidate;
use crate::{plans, store};

/// A registry entry: name, summary, parameters.
type Registered = (&'static str, &'static str, Vec<Param>);

/// What can stand for `word` as the value of the option or word `id`; empty if its values have
/// no names.
pub fn of(id: &str, word: &str) -> Vec<Candidate> {
    match id {
        "probes" => listed(word, &[','], &measurable()),
        "metrics" => listed(word, &[','], &metric_names(&[])),
        "cost" => listed(
            word,
            &[','],
            &metric_names(&[("summary", "all that is in the table"), ("all", "every metric")]),
        ),
        "load-cpus" => {
            let param = PLACE_PARAMS.iter().find(|param| param.name == "cpus");
            param.map(|param| starting(word, words(choices(&param.kind)))).unwrap_or_default()
        }
        "load" => listed(word, &[',', '+'], &load_entries()),
        "plan" => starting(word, plans::PLANS.iter().map(|plan| (plan.name, plan.summary))),
        "runs" | "continue" => runs(word),
        "what" => {
            let kinds =
                ["probes", "loads", "costs", "plans", "runs"].map(|kind| (kind, "all of them"));
            let entries = measurable().into_iter().chain(load_entries());
            let entries = entries.map(|(name, summary, _)| (name, summary));
            let plans = plans::PLANS.iter().map(|plan| (plan.name, plan.summary));
            starting(word, kinds.into_iter().chain(entries).chain(plans))
        }
        "kernel" | "kernels" => {
            let models =
                ["debian:none", "debian:voluntary", "debian:full", "debian:lazy", "debian:rt"];
            let (before, last) = split(word, &[',']);
            let found = starting(
                last,
                models.map(|name| (name, "the distribution's kernel of this model")),
            );
            after(before, found)
        }
        "device" => {
            let (before, last) = split(word, &[',']);
            after(before, starting(last, DEVICES.iter().map(|device| (device.name, ""))))
        }
        id => {
            let params = probes::there().flat_map(|probe| probe.all_params());
            let choices = params.filter(|param| param.name == id).map(|param| choices(&param.kind));
            choices.take(1).flat_map(|choices| starting(word, words(choices))).collect()
        }
    }
}

fn measurable() -> Vec<Registered> {
    let probes = probes::there().map(|probe| (probe.name, probe.summary, probe.all_params()));
    probes.chain(cost_entries()).collect()
}

fn cost_entries() -> impl Iterator<Item = Registered> {
    costs::COSTS.iter().map(|cost| (cost.name, cost.summary, cost.all_params()))
}

/// What a cost may be called, and words besides. Names with spaces would be several words.
fn metric_names(words: &[(&'static str, &'static str)]) -> Vec<Registered> {
    let families = metrics::families().into_iter().map(|family| (family, "all of the family"));
    let columns =
        metrics::aliases().into_iter().map(|(column, _)| (column, "a column of the table"));
    let plain = words.iter().copied().chain(families).chain(columns);
    let plain = plain.filter(|(name, _)| !name.contains(' '));
    cost_entries().chain(plain.map(|(name, help)| (name, help, Vec::new()))).collect()
}

fn load_entries() -> Vec<Registered> {
    loads::LOADS.iter().map(|load| (load.name, load.summary, load.all_params())).collect()
}

fn starting<'a>(word: &str, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Candidate> {
    let names = names.into_iter().filter(|(name, _)| name.starts_with(word));
    names.map(|(name, help)| Candidate::new(name, help)).collect()
}

/// The word up to the last separator, that included, and the rest.
fn split<'a>(word: &'a str, separators: &[char]) -> (&'a str, &'a str) {
    word.split_at(word.rfind(separators).map_or(0, |at| at + 1))
}

/// The candidates, each after `before`.
pub fn after(before: &str, candidates: Vec<Candidate>) -> Vec<Candidate> {
    let whole = |found: Candidate| Candidate { word: format!("{before}{}", found.word), ..found };
    candidates.into_iter().map(whole).collect()
}

/// Entries of a list, and parameters after the colon of the last of them.
fn listed(word: &str, separators: &[char], entries: &[Registered]) -> Vec<Candidate> {
    // A comma after a colon separates parameters, unless a name follows it.
    let (before, last) = match word.rfind(':') {
        Some(colon) => split(&word[..colon], separators),
        None => split(word, separators),
    };
    let entry = |name: &str| entries.iter().find(|(known, ..)| *known == name);
    let Some((name, text)) = word[before.len()..].split_once(':') else {
        return after(before, starting(last, entries.iter().map(|(name, help, _)| (*name, *help))));
    };
    let Some((_, _, params)) = entry(name) else {
        return Vec::new();
    };
    let (given, text) = split(text, &[',', '+']);
    let before_params = format!("{before}{name}:{given}");
    if let Some((key, value)) = text.split_once('=') {
        let param = params.iter().find(|param| param.name == key);
        let found =
            param.map_or_else(Vec::new, |param| starting(value, words(choices(&param.kind))));
        return after(&format!("{before_params}{key}="), found);
    }
    let keys = params.iter().filter(|param| param.name.starts_with(text));
    let keys = keys.map(|param| Candidate::new(format!("{}=", param.name), param.help));
    after(&before_params, keys.collect())
}

fn choices(kind: &Kind) -> &'static [Choice] {
    match kind {
        Kind::Choice(choices) | Kind::Or(choices, _) => choices,
        _ => &[],
    }
}

fn words(choices: &[Choice]) -> impl Iterator<Item = (&str, &str)> {
    choices.iter().map(|choice| (choice.value, choice.help))
}

/// Runs by their names below [`RUNS`], sets included, and the latest as `last`.
fn runs(word: &str) -> Vec<Candidate> {
    let mut found = Vec::new();
    for path in store::all() {
        let Ok(name) = path.strip_prefix(RUNS) else {
            continue;
        };
        let set = name.parent().filter(|set| *set != Path::new(""));
        for name in set.into_iter().chain([name]).filter_map(Path::to_str) {
            let help = if set.is_some_and(|set| set.to_str() == Some(name)) {
                "a set of runs"
            } else {
                ""
            };
            let candidate = Candidate::new(name, help);
            if name.starts_with(word) && !found.contains(&candidate) {
                found.push(candidate);
            }
        }
    }
    found.extend(starting(word, [("last", "the latest run")]));
    found
}
