//! `punctual list`: what there is, from the registries.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use clap::ArgMatches;
use punctual_core::plan::Plan;
use punctual_core::units::human_ns;
use punctual_report::words;
use punctual_suite::loads::{self, LOADS, LoadEntry};
use punctual_suite::probes::{self, PROBES, ProbeEntry};
use punctual_suite::registry::{Need, Param, Planned};
use punctual_sys::clock::tsc;
use punctual_sys::socket::LoopbackEcho;
use serde::Serialize;

use crate::ending::Ending;
use crate::{output, plans, store};

/// One thing of a list.
#[derive(Serialize)]
struct Entry {
    name: String,
    summary: String,
    help: String,
    parameters: Vec<Parameter>,
    needs: Vec<NeedState>,
    /// What only plans have.
    #[serde(flatten)]
    plan: Option<PlanParts>,
}

#[derive(Serialize)]
struct PlanParts {
    citation: Option<String>,
    kernels: Vec<String>,
    variants: Vec<String>,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    value: &'static str,
    default: &'static str,
    help: &'static str,
}

/// A need, and whether this machine meets it.
#[derive(Serialize)]
struct NeedState {
    /// The parameter that brings the need, as `clock=tsc`; none: always needed.
    with: Option<String>,
    need: &'static str,
    met: bool,
}

type Lister = fn() -> Vec<Entry>;

pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let json = matches.get_flag("json");
    let what = matches.get_one::<String>("what").map(String::as_str);
    let kinds: [(&str, &[(&str, Lister)]); 4] = [
        ("probes", &[("probes", all_probes), ("planned_probes", planned_probes)]),
        ("loads", &[("loads", all_loads), ("planned_loads", planned_loads)]),
        ("plans", &[("plans", all_plans)]),
        ("runs", &[("runs", all_runs)]),
    ];
    let kinds = match what {
        None => &kinds[..3],
        Some(name) => match kinds.iter().position(|(kind, _)| *kind == name) {
            Some(index) => &kinds[index..=index],
            None => return explain(name, json),
        },
    };
    let sections = kinds.iter().flat_map(|(_, sections)| *sections);
    let chosen: Vec<_> = sections.map(|(title, list)| (*title, list())).collect();
    if json {
        output::print_json(&chosen.into_iter().collect::<BTreeMap<_, _>>())?;
        return Ok(Ending::Done);
    }
    let sections: Vec<_> =
        chosen.iter().map(|(kind, entries)| section(title(kind), entries)).collect();
    output::print(&sections.join("\n"))?;
    Ok(Ending::Done)
}

/// The key of a list in JSON, in words.
fn title(kind: &str) -> &str {
    match kind {
        "planned_probes" => "probes that are planned, not in this version",
        "planned_loads" => "loads that are planned, not in this version",
        kind => kind,
    }
}

fn all_probes() -> Vec<Entry> {
    PROBES.iter().map(probe).collect()
}

fn all_loads() -> Vec<Entry> {
    LOADS.iter().map(load).collect()
}

fn planned_probes() -> Vec<Entry> {
    probes::planned::PLANNED.iter().map(planned).collect()
}

fn planned_loads() -> Vec<Entry> {
    loads::planned::PLANNED.iter().map(planned).collect()
}

fn all_plans() -> Vec<Entry> {
    plans::PLANS.iter().map(plan).collect()
}

fn probe(probe: &ProbeEntry) -> Entry {
    Entry {
        help: probe.help.to_owned(),
        parameters: probe.all_params().iter().map(parameter).collect(),
        needs: probe_needs(probe),
        ..entry(probe.name, probe.summary)
    }
}

fn load(load: &LoadEntry) -> Entry {
    Entry {
        help: load.help.to_owned(),
        parameters: load.params.iter().map(parameter).collect(),
        needs: load.needs.iter().map(|need| state(*need, None)).collect(),
        ..entry(load.name, load.summary)
    }
}

/// Something whose parameters and needs are not known yet.
fn planned(planned: &Planned) -> Entry {
    Entry {
        help: "Planned, not in this version: a cell with it is SKIPPED.".to_owned(),
        ..entry(planned.name, planned.summary)
    }
}

fn plan(built_in: &plans::BuiltIn) -> Entry {
    let parts = built_in.plan(None).ok().map(|plan| PlanParts {
        citation: plan.citation,
        kernels: plan.kernels,
        variants: Plan::variants(built_in.text).unwrap_or_default(),
    });
    Entry { help: built_in.text.to_owned(), plan: parts, ..entry(built_in.name, built_in.summary) }
}

fn entry(name: &str, summary: &str) -> Entry {
    Entry {
        name: name.to_owned(),
        summary: summary.to_owned(),
        help: String::new(),
        parameters: Vec::new(),
        needs: Vec::new(),
        plan: None,
    }
}

fn parameter(param: &Param) -> Parameter {
    let Param { name, value, default, help } = *param;
    Parameter { name, value, default, help }
}

/// What a probe needs with its defaults and with each value that the help of a
/// parameter names.
fn probe_needs(entry: &ProbeEntry) -> Vec<NeedState> {
    let with = |params: BTreeMap<String, String>| {
        probes::read(entry.name, &params).map_or(&[][..], |(_, values)| (entry.needs)(&values))
    };
    let always = with(BTreeMap::new());
    let mut needs: Vec<_> = always.iter().map(|need| state(*need, None)).collect();
    for param in entry.params {
        let word = |c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-';
        for value in param.help.split(word).filter(|value| !value.is_empty()) {
            let given = BTreeMap::from([(param.name.to_owned(), value.to_owned())]);
            for need in with(given).iter().filter(|need| !always.contains(need)) {
                needs.push(state(*need, Some(format!("{}={value}", param.name))));
            }
        }
    }
    needs
}

fn state(need: Need, with: Option<String>) -> NeedState {
    let met = match need {
        Need::Tsc => tsc::is_invariant(),
        Need::IcmpSocket => LoopbackEcho::open(Duration::from_secs(1)).is_ok(),
    };
    NeedState { with, need: need.text(), met }
}

fn all_runs() -> Vec<Entry> {
    let of_run = |path: &std::path::PathBuf| {
        let name = path.strip_prefix(store::RUNS).unwrap_or(path).to_string_lossy().into_owned();
        let summary = match store::read_run(path) {
            Ok(run) => {
                let cells = run.cells.len();
                let worst = run.cells.iter().filter_map(|cell| cell.stats.max_ns).max();
                let worst =
                    worst.map_or("no samples".to_owned(), |max| format!("max {}", human_ns(max)));
                format!(
                    "{}  {worst}  {cells} {}  plan {}",
                    words::outcome(run.verdict.outcome),
                    if cells == 1 { "cell" } else { "cells" },
                    words::clean(&run.plan.name),
                )
            }
            Err(error) => format!("{error:#}"),
        };
        entry(&name, &summary)
    };
    store::all().iter().map(of_run).collect()
}

fn section(kind: &str, entries: &[Entry]) -> String {
    let width = entries.iter().map(|entry| entry.name.chars().count()).max().unwrap_or(0);
    let mut out = format!("{kind}\n");
    if entries.is_empty() {
        out.push_str(&format!("  none in ./{}\n", store::RUNS));
    }
    for entry in entries {
        out.push_str(&format!("  {:width$}  {}\n", entry.name, entry.summary));
        for need in entry.needs.iter() {
            out.push_str(&format!("  {:width$}  {}\n", "", need_text(need)));
        }
        for line in entry.plan.iter().flat_map(plan_lines) {
            out.push_str(&wrapped(&line, &format!("  {:width$}    ", "")));
        }
    }
    out
}

/// What a plan follows, compares and can be varied to, a line each.
fn plan_lines(plan: &PlanParts) -> Vec<String> {
    let list = |what: &str, names: &[String]| {
        (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
    };
    let citation = plan.citation.as_ref().map(|text| format!("follows {text}"));
    let lines = [citation, list("kernels", &plan.kernels), list("variants", &plan.variants)];
    lines.into_iter().flatten().collect()
}

fn need_text(need: &NeedState) -> String {
    let with = need.with.as_ref().map_or_else(String::new, |with| format!("{with} "));
    let met = if need.met { "met here" } else { "NOT met here: cells with it are SKIPPED" };
    format!("{with}needs {}: {met}", need.need)
}

/// Everything about one probe, load or plan.
fn explain(name: &str, json: bool) -> anyhow::Result<Ending> {
    let found: Vec<Entry> = probes::find(name)
        .map(probe)
        .into_iter()
        .chain(loads::find(name).map(load))
        .chain(probes::planned::find(name).map(planned))
        .chain(loads::planned::find(name).map(planned))
        .chain(plans::find(name).map(plan))
        .collect();
    if found.is_empty() {
        bail!("there is no probe, load or plan \"{name}\"; `punctual list` names them all");
    }
    if json {
        output::print_json(&found)?;
        return Ok(Ending::Done);
    }
    let texts: Vec<_> = found.iter().map(details).collect();
    output::print(&texts.join("\n"))?;
    Ok(Ending::Done)
}

fn details(entry: &Entry) -> String {
    let mut out = format!("{}: {}\n\n", entry.name, entry.summary);
    let lines: String = entry.plan.iter().flat_map(plan_lines).map(|l| wrapped(&l, "")).collect();
    if !lines.is_empty() {
        out.push_str(&format!("{lines}\n"));
    }
    // A plan's help is its file.
    let verbatim = entry.help.contains('\n');
    let help = if verbatim { entry.help.clone() } else { wrapped(&entry.help, "") };
    out.push_str(&help);
    if !entry.parameters.is_empty() {
        out.push_str("\nparameters\n");
    }
    for param in &entry.parameters {
        let default = if param.default.is_empty() { "none" } else { param.default };
        out.push_str(&format!("  {}={}  [default: {default}]\n", param.name, param.value));
        out.push_str(&wrapped(param.help, "      "));
    }
    for need in &entry.needs {
        out.push_str(&format!("\n{}\n", need_text(need)));
    }
    out
}

/// Wrapped at the width of the terminal, every line behind `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let width = output::width().min(100).saturating_sub(indent.len()).max(20);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| format!("{indent}{line}\n")).collect()
}
