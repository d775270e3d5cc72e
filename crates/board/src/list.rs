//! `punctual-board list`: what there is, from the registries.

use anyhow::bail;
use punctual_suite::registry::Param;
use punctual_suite::{costs, loads, probes};

use crate::ending::Ending;
use crate::numbers::say;

/// What is listed of an entry.
struct Entry {
    name: &'static str,
    summary: String,
    params: Vec<Param>,
}

type Kind = (&'static str, fn() -> Vec<Entry>);

const KINDS: [Kind; 3] = [
    ("probes", || {
        let of = |entry: &'static punctual_suite::registry::probe::ProbeEntry| Entry {
            name: entry.name,
            summary: entry.summary.to_owned(),
            params: entry.all_params(),
        };
        probes::there().map(of).collect()
    }),
    ("loads", || {
        let of = |entry: &punctual_suite::registry::load::LoadEntry| Entry {
            name: entry.name,
            summary: entry.summary.to_owned(),
            params: entry.all_params(),
        };
        loads::LOADS.iter().map(of).collect()
    }),
    ("costs", || {
        let of = |entry: &punctual_suite::registry::cost::CostEntry| Entry {
            name: entry.name,
            summary: entry.summary.to_owned(),
            params: entry.all_params(),
        };
        costs::COSTS.iter().map(of).collect()
    }),
];

/// Lists all, one kind, or the parameters of one entry.
pub fn execute(words: &[String]) -> anyhow::Result<Ending> {
    let mut out = String::new();
    let word = match words {
        [] => None,
        [word] => Some(word.as_str()),
        _ => bail!("list takes one name"),
    };
    for (kind, entries) in KINDS {
        let whole = word.is_none_or(|word| word == kind);
        if whole {
            out.push_str(&format!("{kind}\n"));
        }
        for entry in entries() {
            if whole {
                out.push_str(&format!("  {:14}  {}\n", entry.name, entry.summary));
            } else if word == Some(entry.name) {
                out.push_str(&format!("{}: {}\n", entry.name, entry.summary));
                for param in &entry.params {
                    let (name, help) = (param.name, param.full_help());
                    out.push_str(&format!("  {name:10}  {help} [{}]\n", param.default));
                }
            }
        }
    }
    if out.is_empty() {
        bail!("there is no probe, load or cost \"{}\"", word.unwrap_or_default());
    }
    say(&out).map(|()| Ending::Done)
}
