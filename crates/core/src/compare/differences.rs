//! What differs between runs besides their results.

use std::collections::BTreeSet;

use serde::Serialize;

use super::boards;
use super::groups::build_id;
use super::matching::Match;
use super::settings::SETTINGS;
use crate::schema::{BoardIdentity, Cell, Latency, Run};
use crate::units::exact_duration;

/// One thing in which the runs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs, such as `kernel release` or `load work`.
    pub what: String,
    /// Whether it is what is compared, or a confounder.
    pub role: Bearing,
    /// The cell, if it concerns one.
    pub cell: Option<String>,
    /// Its value in each run, in their order; `-` if a run has none.
    pub values: Vec<String>,
}

/// What a difference means for a comparison of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Bearing {
    /// What is compared: the kernel, its configuration, its command line.
    Subject,
    /// A setting of the machine or the group of a run, which make sides as the kernel does.
    Setting,
    /// Something else that moves latencies.
    Confounder,
}

/// By what factor the work of a load may differ before it counts as a different
/// load. A matter of judgement: loads drive themselves, so they do somewhat less
/// on a kernel that costs throughput.
const WORK_APART: f64 = 1.25;

const NONE: &str = "-";

/// What runs were measured as, such as one `lab run`.
const GROUP: &str = "group";

/// What a board is called, which moves no latency.
const NAME_OF_BOARD: &str = "name of the board";

type Field = (&'static str, Bearing, fn(&Run) -> String);

const FIELDS: &[Field] = &[
    ("kernel release", Bearing::Subject, |r| r.kernel.release.clone()),
    ("kernel version", Bearing::Subject, |r| r.kernel.version.clone()),
    ("preemption model", Bearing::Subject, |r| r.kernel.preemption.to_string()),
    ("kernel configuration", Bearing::Subject, |r| or_none(r.kernel.config_sha256.as_deref())),
    ("kernel build ID", Bearing::Subject, |r| or_none(build_id(r))),
    ("kernel image", Bearing::Subject, |r| {
        or_none(r.board.lab.as_ref().map(|lab| lab.kernel_sha256.as_str()))
    }),
    ("kernel command line", Bearing::Subject, |r| r.kernel.command_line.clone()),
    ("board", Bearing::Confounder, |r| r.board.fingerprint.clone()),
    (NAME_OF_BOARD, Bearing::Confounder, |r| r.board.name.clone()),
    ("kind of board", Bearing::Confounder, |r| r.board.kind.name().to_owned()),
    ("CPUs online", Bearing::Confounder, |r| r.board.cpus.to_string()),
    ("virtual machine", Bearing::Confounder, |r| r.is_virtual.to_string()),
    ("hypervisor", Bearing::Confounder, |r| or_none(r.board.hypervisor.as_deref())),
    ("privileges", Bearing::Confounder, |r| {
        if r.privileged { "real-time" } else { "not real-time" }.to_owned()
    }),
    ("clock source", Bearing::Confounder, |r| {
        let source = r.facts.get("clock").and_then(|clock| clock.get("source"));
        or_none(source.and_then(|source| source.as_str()))
    }),
    ("deadline", Bearing::Confounder, |r| {
        r.plan.deadline_ns.map_or_else(|| NONE.to_owned(), exact_duration)
    }),
    ("warm-up", Bearing::Confounder, |r| exact_duration(r.plan.warmup_ns)),
    ("version of punctual", Bearing::Confounder, |r| r.tool.version.clone()),
    ("conditions", Bearing::Confounder, conditions),
];

fn or_none(text: Option<&str>) -> String {
    text.unwrap_or(NONE).to_owned()
}

fn conditions(run: &Run) -> String {
    let mut ids: Vec<&str> = run.conditions.iter().map(|c| c.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() { NONE.to_owned() } else { ids.join(", ") }
}

/// Every difference between the runs and between their matched cells.
pub(super) fn between(runs: &[&Run], cells: &[Match<'_>]) -> Vec<Difference> {
    let mut found = Vec::new();
    for setting in SETTINGS {
        let values = runs.iter().map(|run| setting.of(run)).collect();
        found.extend(known(format!("setting {}", setting.name), values));
    }
    found.extend(known(GROUP.to_owned(), runs.iter().map(|run| run.group.clone()).collect()));
    found.extend(identities(runs));
    let are_several = boards::are_several(runs);
    for (what, role, read) in FIELDS {
        let values: Vec<_> = runs.iter().map(|run| read(run)).collect();
        let counts = are_several || *what != NAME_OF_BOARD;
        if counts && values.iter().any(|value| *value != values[0]) {
            found.push(Difference { what: (*what).to_owned(), role: *role, cell: None, values });
        }
    }
    for cell in cells {
        let confounder = |what: &str, values: Vec<Option<String>>| Difference {
            what: what.to_owned(),
            role: Bearing::Confounder,
            cell: Some(cell.key.clone()),
            values: values
                .into_iter()
                .map(|value| value.unwrap_or_else(|| NONE.to_owned()))
                .collect(),
        };
        for (what, read) in
            [("scheduling", scheduling as fn(&Latency) -> String), ("interval", interval)]
        {
            let values = by_run(runs.len(), cell, read);
            let mut known = values.iter().flatten();
            let first = known.next();
            if known.any(|value| Some(value) != first) {
                found.push(confounder(what, values));
            }
        }
        found.extend(work(runs.len(), cell).map(|values| confounder("load work", values)));
    }
    found
}

/// That serial numbers, UUIDs or MAC addresses are those of several boards.
fn identities(runs: &[&Run]) -> Option<Difference> {
    let value = |run: &&Run| {
        let known: Vec<_> = run.board.identity.iter().map(BoardIdentity::to_string).collect();
        if known.is_empty() { NONE.to_owned() } else { known.join(", ") }
    };
    boards::differ_in_hardware(runs).then(|| Difference {
        what: "identity of the board".to_owned(),
        role: Bearing::Confounder,
        cell: None,
        values: runs.iter().map(value).collect(),
    })
}

/// A difference of what makes sides, if those that could be read differ.
fn known(what: String, values: Vec<Option<String>>) -> Option<Difference> {
    let mut known = values.iter().flatten();
    let first = known.next();
    known.any(|value| Some(value) != first).then(|| Difference {
        what,
        role: Bearing::Setting,
        cell: None,
        values: values.iter().map(|value| or_none(value.as_deref())).collect(),
    })
}

/// What tells runs apart as sides, in a word each: the kernel, its command line, board, group and
/// settings.
pub(super) fn telling(runs: &[&Run]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for Difference { what, role, .. } in between(runs, &[]) {
        let word = match role {
            Bearing::Setting => what.strip_prefix("setting ").unwrap_or(&what),
            Bearing::Subject => what.strip_prefix("kernel ").map_or("kernel", |of| match of {
                "command line" => of,
                _ => "kernel",
            }),
            Bearing::Confounder if what.contains("board") => "board",
            Bearing::Confounder => continue,
        };
        if !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// What `read` gives for each run's latencies; none for runs without them.
fn by_run<T: Clone>(
    runs: usize,
    found: &Match<'_>,
    read: impl Fn(&Latency) -> T,
) -> Vec<Option<T>> {
    let mut values = vec![None; runs];
    for (run, _, cell) in &found.cells {
        values[*run] = cell.latency().map(&read);
    }
    values
}

/// Effective policies and priorities: what took effect, not what was asked for.
fn scheduling(latency: &Latency) -> String {
    let placements = latency.threads.iter().map(|thread| &thread.placement);
    let mut kinds: Vec<_> =
        placements.map(|at| format!("{} {}", at.policy.name(), at.priority)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    format!("{} threads, {}", latency.threads.len(), kinds.join(" and "))
}

fn interval(latency: &Latency) -> String {
    let dithered = if latency.dithered { ", dithered" } else { "" };
    let interval = |ns| format!("{}{dithered}", exact_duration(ns));
    latency.interval_ns.map_or_else(|| NONE.to_owned(), interval)
}

/// The first counter of the load whose rates differ too much. A load that one of
/// the measured cells lacks did nothing there.
fn work(runs: usize, found: &Match<'_>) -> Option<Vec<Option<String>>> {
    let measured = || {
        let cells = found.cells.iter();
        cells.filter(|(.., cell)| cell.is_measured())
    };
    let names: BTreeSet<_> = measured().flat_map(|(.., cell)| counters(cell)).collect();
    names.into_iter().find_map(|(load, counter)| {
        let mut rates = vec![None; runs];
        for (run, _, cell) in measured() {
            rates[*run] = Some(rate(cell, load, counter));
        }
        let known = || rates.iter().flatten().copied();
        let low = known().fold(f64::INFINITY, f64::min);
        let high = known().fold(0.0, f64::max);
        (high > WORK_APART * low).then(|| {
            let text = |rate| format!("{load} {rate:.0} {counter}/s");
            rates.iter().map(|rate| rate.map(text)).collect()
        })
    })
}

/// The names of what the parts of a cell's load count.
fn counters(cell: &Cell) -> impl Iterator<Item = (&str, &str)> {
    cell.load_work.iter().flat_map(|work| {
        let counters = work.counters.iter();
        counters.map(|counter| (work.load.as_str(), counter.name.as_str()))
    })
}

/// What all parts of a load counted under one name, per second.
fn rate(cell: &Cell, load: &str, counter: &str) -> f64 {
    let parts = cell.load_work.iter().filter(|work| work.load == load);
    parts
        .flat_map(|work| &work.counters)
        .filter(|c| c.name == counter)
        // An empty sum of floats is -0.
        .fold(0.0, |sum, c| sum + c.per_second)
}
