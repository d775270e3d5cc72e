//! What a run recorded besides its numbers, as texts for tables and lists.

use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{
    BoardIdentity, Cell, CellStrain, Lab, Placement, Pressure, Thread, What,
};
use punctual_core::units::{SECOND_NS, human_ns};
use serde_json::Value;

use crate::words;

/// Duration, period, utilisation and warm-up of a cell, one text each.
#[must_use]
pub fn circumstances(cell: &Cell) -> Vec<String> {
    let mut parts = vec![format!("measured {}", words::duration(cell.duration_ns))];
    if let Some(interval) = cell.interval_ns() {
        let dithered = if cell.is_dithered() { ", dithered" } else { "" };
        parts.push(format!("interval {}{dithered}", words::duration(interval)));
    }
    if let Some(share) = cell.cpu_utilisation {
        parts.push(format!("CPUs busy {:.1} %", share * 100.0));
    }
    if let Some(steal) = cell.steal.filter(|steal| *steal > 0.0) {
        parts.push(format!("steal {:.2} %", steal * 100.0));
    }
    parts.extend(cell.strain.iter().flat_map(strain));
    if let Some(warmup) = cell.latency().and_then(|latency| latency.warmup_max_ns) {
        parts.push(format!("warm-up max {} (excluded)", human_ns(warmup)));
    }
    parts.extend(sides(&cell.what));
    let said = |name: &str| name == "interval" && cell.interval_ns().is_some();
    for (name, value) in cell.params().iter().filter(|(name, _)| !said(name)) {
        parts.push(format!("{}={}", words::clean(name), words::clean(value)));
    }
    parts
}

/// That the hypervisor may have been the cause of what happened at an instant, ns after the start of
/// the cell: a clause if it gave time to others in that second. Of the last second of a cell only the
/// time of the whole cell is recorded.
#[must_use]
pub fn steal_then(cell: &Cell, data: &CellData, at: u64) -> Option<String> {
    let second = at / SECOND_NS;
    let then = data.system.iter().find(|one| one.second == second);
    let (share, when) = match then {
        Some(one) => (f64::from(one.steal) / 1e3, "in that second"),
        None => (cell.steal?, "in this cell"),
    };
    (share > 0.0).then(|| {
        format!(
            "{when} the hypervisor gave {:.1} % of the CPUs' time to others (steal): it is a \
             possible cause",
            share * 100.0
        )
    })
}

/// What strained the machine: `pressure: CPU 98 %, memory 0 %, I/O 4 %`, `12 k interrupts/s`.
#[must_use]
pub fn strain(strain: &CellStrain) -> Vec<String> {
    let Pressure { cpu, memory, io } = &strain.pressure;
    let known = [("CPU", cpu), ("memory", memory), ("I/O", io)].into_iter();
    let known = known.filter_map(|(name, share)| Some((name, (*share)?)));
    let shares: Vec<_> =
        known.map(|(name, share)| format!("{name} {:.0} %", share * 100.0)).collect();
    let pressure = (!shares.is_empty()).then(|| format!("pressure: {}", shares.join(", ")));
    let rate = |name, count: Option<f64>| count.map(|count| words::rate(name, count));
    let rates = [
        rate("interrupts", strain.interrupts_per_second),
        rate("context switches", strain.switches_per_second),
    ];
    pressure.into_iter().chain(rates.into_iter().flatten()).collect()
}

/// Which machines took part in a cell of two, and how long their line takes.
fn sides(what: &What) -> Vec<String> {
    let What::Response(response) = what else {
        return Vec::new();
    };
    let mut parts: Vec<_> = response
        .sides
        .iter()
        .map(|side| {
            let (board, kernel) = (words::clean(&side.board), words::clean(&side.kernel));
            format!("{} {board} (Linux {kernel})", side.role.name())
        })
        .collect();
    parts.extend(response.line_ns.map(|ns| format!("the line takes {}", words::duration(ns))));
    parts
}

/// When runs were made, how much of what, with which settings and by which version:
/// `2026-11-21 10:52 UTC`, `2 cells, 20 s`, `fifo 80, 1 ms`, `punctual 0.1.0`.
#[must_use]
pub fn made(runs: &[LoadedRun]) -> Vec<String> {
    let mut parts = Vec::new();
    let started = || runs.iter().map(|run| words::started_ns(&run.run)).filter(|ns| *ns > 0);
    let minute = |ns: u64| words::utc(ns).map(|text| format!("{} UTC", &text[..16]));
    if let Some(first) = started().min().and_then(minute) {
        let last = started().max().and_then(minute).filter(|last| *last != first);
        parts.push(last.map_or_else(|| first.clone(), |last| format!("{first} to {last}")));
    }
    let cells = || runs.iter().flat_map(|run| &run.run.cells);
    if cells().next().is_some() {
        let total = total_ns(cells());
        let noun = if cells().count() == 1 { "cell" } else { "cells" };
        parts.push(format!("{} {noun}, {}", cells().count(), extent(total)));
    }
    parts.extend(one_or_many(cells().flat_map(settings)));
    let tool = |run: &LoadedRun| {
        let tool = &run.run.tool;
        format!("{} {}", words::clean(&tool.name), words::clean(&tool.version))
    };
    parts.extend(one_or_many(runs.iter().map(tool)));
    parts
}

/// How long cells are to be measured in all, ns.
#[must_use]
pub fn total_ns<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> u64 {
    cells.into_iter().fold(0, |sum, cell| sum.saturating_add(cell.duration_ns))
}

/// A time that says how much was measured: to the minute if it takes several.
#[must_use]
pub fn extent(ns: u64) -> String {
    const MINUTE_NS: u64 = 60 * SECOND_NS;
    match ns / MINUTE_NS {
        0..=1 => words::duration(ns),
        minutes @ ..120 => format!("{minutes} min"),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// The scheduling and the interval of the threads of a cell: `fifo 80, 1 ms`.
fn settings(cell: &Cell) -> impl Iterator<Item = String> {
    let interval =
        cell.interval_ns().map_or_else(String::new, |ns| format!(", {}", words::duration(ns)));
    let of = move |thread: &Thread| format!("{}{interval}", policy(&thread.placement));
    cell.threads().iter().map(of)
}

/// What all have in common, or how many others there are; nothing of nothing.
fn one_or_many(texts: impl Iterator<Item = String>) -> Option<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts {
        if !found.contains(&text) {
            found.push(text);
        }
    }
    match found.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [one, others @ ..] => Some(format!("{one} and {} more", others.len())),
    }
}

/// Policy and priority of a thread: `fifo 80`.
#[must_use]
pub fn policy(placement: &Placement) -> String {
    let policy = placement.policy.name();
    if placement.priority > 0 {
        format!("{policy} {}", placement.priority)
    } else {
        policy.to_owned()
    }
}

/// Where and how a thread ran: `fifo 80 on CPUs 0-3`, and what of that changed.
#[must_use]
pub fn placed(placement: &Placement) -> String {
    let cpus = match words::clean(&placement.affinity) {
        cpus if cpus.is_empty() => "unknown CPUs".to_owned(),
        cpus => format!("CPUs {cpus}"),
    };
    let changed = placement.changed.as_deref().map(words::clean);
    let changed = changed.map_or_else(String::new, |changed| format!(" ({changed})"));
    format!("{} on {cpus}{changed}", policy(placement))
}

/// The worst samples of the primary series of a cell over its threads, the worst first: latency (ns),
/// time (ns after the cell's start), CPU.
#[must_use]
pub fn worst_samples(cell: &Cell, data: &CellData, most: usize) -> Vec<(i64, u64, String)> {
    let mut all: Vec<_> = data
        .threads
        .iter()
        .enumerate()
        .flat_map(|(i, thread)| thread.primary().outliers.iter().map(move |o| (o.latency, o.at, i)))
        .collect();
    all.sort_unstable_by_key(|(latency, at, _)| (std::cmp::Reverse(*latency), *at));
    all.truncate(most);
    let cpu = |i: usize| cell.threads().get(i).map_or_else(String::new, words::cpu_name);
    all.into_iter().map(|(latency, at, i)| (latency, at, cpu(i))).collect()
}

/// What identifies a run and how it was made, as key and value.
#[must_use]
pub fn basics(run: &LoadedRun) -> Vec<(String, String)> {
    let r = &run.run;
    let mut list = vec![("run", r.run_id.clone())];
    list.extend(words::utc(words::started_ns(r)).map(|text| ("started", text)));
    let ended = r.ended.as_ref().and_then(|e| words::utc(e.realtime_ns));
    let ended = ended.unwrap_or_else(|| "not recorded".to_owned());
    match (&r.board.lab, words::utc(r.started.realtime_ns)) {
        (Some(_), Some(started)) => {
            list.push(("clock of the board", format!("{started} to {ended}")))
        }
        _ => list.push(("ended", ended)),
    }
    list.extend([
        ("tool", format!("{} {} ({})", r.tool.name, r.tool.version, r.tool.target)),
        ("command line", r.tool.command.join(" ")),
        ("plan", format!("{} ({})", r.plan.name, r.plan_hash)),
        ("board", format!("{} ({}, {})", r.board.name, r.board.kind.name(), r.board.fingerprint)),
    ]);
    let identity: Vec<_> = r.board.identity.iter().map(BoardIdentity::to_string).collect();
    if !identity.is_empty() {
        list.push(("identity of the board", identity.join(", ")));
    }
    list.extend([
        ("kernel", format!("{} {}", r.kernel.release, r.kernel.version)),
        ("machine", r.kernel.machine.clone()),
        ("kernel command line", r.kernel.command_line.clone()),
        ("privileged", yes_no(r.privileged)),
        ("virtual", yes_no(r.is_virtual)),
    ]);
    list.extend(r.board.lab.iter().flat_map(made_of));
    if let Some(group) = &r.group {
        list.push(("group", group.clone()));
    }
    if let Some(replicate) = r.replicate {
        list.push(("replicate", replicate.to_string()));
    }
    if r.phase_ns > 0 {
        list.push(("phase", words::duration(r.phase_ns)));
    }
    if let Some(dither) = &r.dither {
        list.push(("dither", dither.words()));
    }
    list.into_iter()
        .map(|(key, value)| (key.to_owned(), words::clean(&value).into_owned()))
        .collect()
}

/// What a virtual board was made of: where all four are the same, so are the nanoseconds of a seed.
fn made_of(lab: &Lab) -> [(&'static str, String); 4] {
    let known = |hash: Option<&String>| hash.map_or_else(|| "none".to_owned(), String::clone);
    [
        ("board program", lab.punctual_sha256.clone()),
        ("QEMU", format!("{} {}", known(lab.qemu_sha256.as_ref()), lab.qemu)),
        ("firmware", known(lab.firmware_sha256.as_ref())),
        ("kernel image", format!("{} {}", lab.kernel_sha256, lab.kernel)),
    ]
}

fn yes_no(so: bool) -> String {
    if so { "yes" } else { "no" }.to_owned()
}

/// The facts of a run, each as `group.key.key` and value.
#[must_use]
pub fn flat_facts(run: &LoadedRun) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (group, value) in &run.run.facts {
        flatten(&words::clean(group), value, &mut out);
    }
    out
}

fn flatten(path: &str, value: &Value, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                flatten(&format!("{path}.{}", words::clean(key)), value, out);
            }
        }
        Value::Array(list) if list.iter().any(|v| v.is_object() || v.is_array()) => {
            for (i, value) in list.iter().enumerate() {
                flatten(&format!("{path}.{i}"), value, out);
            }
        }
        Value::Array(list) => {
            let texts: Vec<_> = list.iter().map(scalar).collect();
            out.push((path.to_owned(), texts.join(", ")));
        }
        value => out.push((path.to_owned(), scalar(value))),
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => words::clean(text).into_owned(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}
