//! Which costs were asked for.

use anyhow::{anyhow, bail};
use clap::ArgMatches;
use punctual_core::params::{Named, split_list};
use punctual_core::plan::{CellPlan, Plan, Subject};
use punctual_suite::{engine, metrics};

use super::{given, is_given, placed_loads, spelled};
use crate::cli::{DEFAULT_COST_NS, PROBE_OPTIONS};

/// The plan of `punctual cost`: the metrics that are named under every load, else the summary.
///
/// # Errors
/// A message that names what is unknown or may mean several things.
pub fn costs(matches: &ArgMatches) -> anyhow::Result<Plan> {
    let names = matches.get_many::<String>("metrics").into_iter().flatten();
    let names: Vec<_> = names.flat_map(|text| split_list(text)).collect();
    let named = match (names.is_empty(), matches.get_flag("all")) {
        (true, true) => Asked::whole(metrics::all()),
        (true, false) => Asked::whole(metrics::summary()),
        (false, _) => Asked::by_name(asked(&names)?),
    };
    let mut plan = Plan { warmup_ns: 0, ..Plan::new("cost") };
    plan.cells = cells(matches, named)?;
    plan.check()?;
    engine::canonical(&plan).map_err(|error| anyhow!(error))
}

/// Metrics that were asked for.
pub(super) struct Asked {
    metrics: Vec<Named>,
    /// Whether it is enough to measure those of them that the board can have: nobody asked for one
    /// by its name.
    available: bool,
}

impl Asked {
    fn whole(metrics: Vec<Named>) -> Self {
        Self { metrics, available: true }
    }

    fn by_name(metrics: Vec<Named>) -> Self {
        Self { metrics, available: false }
    }
}

/// The metrics of `--cost`.
pub(super) fn of_option(text: &str) -> anyhow::Result<Asked> {
    Ok(match text {
        "all" => Asked::whole(metrics::all()),
        "summary" => Asked::whole(metrics::summary()),
        names => Asked::by_name(asked(&split_list(names))?),
    })
}

/// The cells that these names stand for, each once.
fn asked(names: &[String]) -> anyhow::Result<Vec<Named>> {
    let mut cells: Vec<Named> = Vec::new();
    for name in names {
        let found = metrics::asked(name.trim()).map_err(|error| anyhow!(error))?;
        for cell in found {
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    Ok(cells)
}

/// The cells of these metrics under every load of the command line.
pub(super) fn cells(matches: &ArgMatches, costs: Asked) -> anyhow::Result<Vec<CellPlan>> {
    let Asked { metrics, available } = costs;
    let loads = placed_loads(matches)?;
    let duration_ns = given::<u64>(matches, "duration").copied().unwrap_or(DEFAULT_COST_NS);
    let under = |cost: Named| {
        let cell = move |load: &String| CellPlan {
            subject: Subject::Cost(cost.name.clone()),
            params: cost.params.clone(),
            load: load.clone(),
            duration_ns,
            samples: None,
            available,
        };
        loads.iter().map(cell).collect::<Vec<_>>()
    };
    Ok(metrics.into_iter().flat_map(under).collect())
}

/// A cost takes none of the options of probes.
pub(super) fn refuse_probe_options(matches: &ArgMatches) -> anyhow::Result<()> {
    let mut ids = PROBE_OPTIONS.iter().map(|option| option.name).chain(["smp", "loops"]);
    match ids.find(|id| is_given(matches, id)) {
        Some(id) => bail!("{} needs a probe, such as wakeup: a cost does not take it", spelled(id)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LAB, plan};
    use super::*;
    use crate::cli;

    fn read(words: &[&str]) -> anyhow::Result<Plan> {
        let words: Vec<_> = ["punctual"].iter().chain(words).map(Into::into).collect();
        let matches = cli::read(&words)?;
        let (name, matches) = matches.subcommand().unwrap();
        if name == "cost" { costs(matches) } else { plan(matches.subcommand().unwrap().1, &LAB) }
    }

    fn keys(words: &[&str]) -> Vec<String> {
        read(words).unwrap().cells.iter().map(CellPlan::key).collect()
    }

    #[test]
    fn each_cost_is_measured_once_under_every_load() {
        assert_eq!(keys(&["cost", "null call"]), ["lat.syscall @ none @ 1s"]);
        assert_eq!(
            keys(&["cost", "lat.syscall", "NULL CALL,lat.syscall:cpu=0", "--load", "none,copy"]),
            [
                "lat.syscall @ none @ 1s",
                "lat.syscall @ copy @ 1s",
                "lat.syscall:cpu=0 @ none @ 1s",
                "lat.syscall:cpu=0 @ copy @ 1s"
            ]
        );
        assert_eq!(keys(&["cost", "syscall", "-D", "3"]), ["lat.syscall @ none @ 3s"]);
        assert_eq!(keys(&["cost"]).len(), metrics::summary().len());
        assert_eq!(keys(&["cost", "--all"]).len(), metrics::all().len());
        assert_eq!(read(&["cost"]).unwrap().warmup_ns, 0);
        let error = read(&["cost", "no such"]).unwrap_err().to_string();
        assert!(error.starts_with("unknown cost \"no such\""), "{error}");
    }

    #[test]
    fn a_virtual_board_measures_costs_alone_or_besides() {
        let lab = |more: &[&str]| keys(&[&["lab", "run"], more].concat());
        assert_eq!(lab(&["--cost", "null call"]), ["lat.syscall @ none @ 1s"]);
        assert_eq!(lab(&["--cost", "syscall", "-D", "2"]), ["lat.syscall @ none @ 2s"]);
        assert_eq!(lab(&["--cost", "summary"]).len(), metrics::summary().len());
        assert_eq!(lab(&["--cost", "all"]).len(), metrics::all().len());
        let both = lab(&["wakeup", "--cost", "syscall", "-D", "2"]);
        assert_eq!(both, ["wakeup @ none @ 2s", "lat.syscall @ none @ 2s"]);
        let error = read(&["lab", "run", "--cost", "syscall", "-p", "80"]).unwrap_err().to_string();
        assert!(error.starts_with("-p needs a probe"), "{error}");
    }
}
