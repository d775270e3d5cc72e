//! `punctual list`: what exists, from the registries.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::bail;
use clap::ArgMatches;
use punctual_report::text::push_wrapped;
use punctual_suite::registry::cost::CostEntry;
use punctual_suite::{costs, loads, metrics, probes};

use crate::ending::Ending;
use crate::{output, plans};

mod entry;
mod runs;
mod text;

use entry::{Entry, of_cost, of_load, of_plan, of_probe};

type Lister = fn() -> Vec<Entry>;

/// What can be listed: the key in JSON, which is also the title, and its content.
const KINDS: [(&str, Lister); 4] = [
    ("probes", || probes::there().map(of_probe).collect()),
    ("loads", || loads::LOADS.iter().map(of_load).collect()),
    ("costs", || costs::COSTS.iter().map(of_cost).collect()),
    ("plans", || plans::PLANS.iter().map(of_plan).collect()),
];

/// What is planned for a later version.
const PLANNED: [(&str, Lister); 1] =
    [("planned_probes", || probes::planned().map(of_probe).collect())];

/// Lists one kind, everything except runs, or what is planned; or explains one entry.
pub fn execute(matches: &ArgMatches) -> anyhow::Result<Ending> {
    let json = matches.get_flag("json");
    let what = matches.get_one::<String>("what").map(String::as_str);
    let folders: Vec<_> = matches.get_many("folders").into_iter().flatten().cloned().collect();
    if what == Some("runs") {
        return list_runs(&folders, json);
    }
    if let (Some(what), [folder, ..]) = (what, &folders[..]) {
        bail!("{}: only runs are listed by folder, not {what}", folder.display());
    }
    let kinds: Vec<_> = match what {
        _ if matches.get_flag("planned") => PLANNED.to_vec(),
        None => KINDS.to_vec(),
        Some(name) => match KINDS.iter().find(|(kind, _)| *kind == name) {
            Some(kind) => vec![*kind],
            None => return explain(name, json),
        },
    };
    let chosen: Vec<_> = kinds.iter().map(|(kind, list)| (*kind, list())).collect();
    if json {
        output::print_json(&chosen.into_iter().collect::<BTreeMap<_, _>>())?;
        return Ok(Ending::Done);
    }
    let mut sections: Vec<_> = chosen
        .iter()
        .map(|(kind, entries)| text::section(kind, entries, output::width()))
        .collect();
    if what.is_none() && !matches.get_flag("planned") {
        let count = probes::planned().count();
        let more = format!("{count} more probes are planned: punctual list --planned");
        let mut line = String::new();
        push_wrapped(&mut line, &more, "", 2, output::width());
        sections.push(line);
    }
    output::print(&sections.join("\n"))?;
    Ok(Ending::Done)
}

fn list_runs(folders: &[PathBuf], json: bool) -> anyhow::Result<Ending> {
    let found = runs::find(folders)?;
    if json {
        output::print_json(&BTreeMap::from([("runs", found)]))?;
    } else {
        output::print(&runs::section(&found, folders))?;
    }
    Ok(Ending::Done)
}

/// A cost by its key, or by the name of a column of the table of costs.
fn cost_named(name: &str) -> Option<&'static CostEntry> {
    costs::find(&metrics::named(name).ok()??.name).ok()
}

fn explain(name: &str, json: bool) -> anyhow::Result<Ending> {
    let found: Vec<Entry> = probes::find(name)
        .ok()
        .map(of_probe)
        .into_iter()
        .chain(loads::find(name).map(of_load))
        .chain(cost_named(name).map(of_cost))
        .chain(plans::find(name).map(of_plan))
        .collect();
    if found.is_empty() {
        bail!("there is no probe, load, cost or plan \"{name}\"; `punctual list` names them all");
    }
    if json {
        output::print_json(&found)?;
        return Ok(Ending::Done);
    }
    let texts: Vec<_> = found.iter().map(|entry| text::details(entry, output::width())).collect();
    output::print(&texts.join("\n"))?;
    Ok(Ending::Done)
}
