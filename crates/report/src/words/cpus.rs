//! The CPUs that threads were on, and their types.

use std::collections::{BTreeMap, BTreeSet};

use punctual_core::run::{CellData, LoadedRun};
use punctual_core::schema::{Latency, Run, Stats, Thread};
use punctual_core::stats::{Recorded, summarise};
use serde_json::Value;

use super::clean;
use super::names::cpu_name;

type Cpus = BTreeSet<u32>;

/// The largest NR_CPUS of a kernel, and one more: a higher number is damage.
const CPUS_END: u32 = 8_192;

/// A row of a table for the threads of one type of cores.
pub struct CoreTypeRow {
    /// The type, as the kernel names it, or the computing power of its cores.
    pub name: String,
    /// The CPUs of its threads.
    pub cpus: String,
    /// What its threads found.
    pub stats: Stats,
}

/// Where the threads of a cell were: the CPU of a single one, or the list of their CPUs. `all` is
/// said only if those are all CPUs that were online.
#[must_use]
pub fn cpus_name(run: &Run, threads: &[Thread]) -> String {
    if let [one] = threads {
        return cpu_name(one);
    }
    let Some(cpus) = threads.iter().map(cpus_of).collect::<Option<Vec<_>>>() else {
        return "unknown".to_owned();
    };
    let cpus: Cpus = cpus.into_iter().flatten().collect();
    let online = fact(run, "online").and_then(Value::as_str).and_then(parse);
    if !cpus.is_empty() && online.is_some_and(|online| online == cpus) {
        return "all".to_owned();
    }
    if cpus.is_empty() { "-".to_owned() } else { list(&cpus) }
}

/// What the threads on each type of cores found, if the cell has threads on several types.
#[must_use]
pub fn core_type_rows(run: &LoadedRun, latency: &Latency, data: &CellData) -> Vec<CoreTypeRow> {
    let row = |(name, cpus): (String, Cpus)| {
        let is_on = |thread: &&Thread| thread.placement.cpu.is_some_and(|cpu| cpus.contains(&cpu));
        let threads: Vec<&Thread> = latency.threads.iter().filter(is_on).collect();
        let recorded = |thread: &&Thread| {
            let data = data.threads.get(usize::try_from(thread.thread).ok()?)?;
            Some(Recorded::of(data.primary()))
        };
        let recorded = threads.iter().map(recorded).collect::<Option<Vec<_>>>()?;
        let used = threads.iter().filter_map(|thread| thread.placement.cpu).collect();
        let stats = summarise(&recorded);
        (stats.samples > 0).then(|| CoreTypeRow { name, cpus: list(&used), stats })
    };
    let rows: Vec<_> = core_types(&run.run).into_iter().filter_map(row).collect();
    if rows.len() > 1 { rows } else { Vec::new() }
}

/// The types of cores with their CPUs, the strongest first, as far as the kernel tells.
fn core_types(run: &Run) -> Vec<(String, Cpus)> {
    let named = fact(run, "core_types").and_then(Value::as_object).into_iter().flatten();
    let mut types: Vec<(String, Cpus)> = named
        .filter_map(|(name, cpus)| Some((clean(name).into_owned(), parse(cpus.as_str()?)?)))
        .collect();
    // cpu_core, cpu_atom, cpu_lowpower
    types.sort_by_key(|(name, _)| (name != "cpu_core", name.clone()));
    if types.is_empty() { by_capacity(run) } else { types }
}

/// On Arm cores are told apart by their computing power.
fn by_capacity(run: &Run) -> Vec<(String, Cpus)> {
    let places = fact(run, "topology").and_then(Value::as_object).into_iter().flatten();
    let mut types: BTreeMap<u64, Cpus> = BTreeMap::new();
    for (cpu, place) in places {
        if let (Ok(cpu), Some(capacity)) = (cpu.parse(), place["capacity"].as_u64()) {
            types.entry(capacity).or_default().insert(cpu);
        }
    }
    types.into_iter().rev().map(|(capacity, cpus)| (format!("capacity {capacity}"), cpus)).collect()
}

fn fact<'r>(run: &'r Run, key: &str) -> Option<&'r Value> {
    run.facts.get("cpu")?.get(key)
}

fn cpus_of(thread: &Thread) -> Option<Cpus> {
    match thread.placement.cpu {
        Some(cpu) => Some(Cpus::from([cpu])),
        None => parse(&thread.placement.affinity).filter(|cpus| !cpus.is_empty()),
    }
}

/// The CPUs of a list such as `0-3,8`; `None` for anything else.
fn parse(text: &str) -> Option<Cpus> {
    let mut cpus = Cpus::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= CPUS_END {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn list(cpus: &Cpus) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*cpu) => *last = *cpu,
            _ => ranges.push((*cpu, *cpu)),
        }
    }
    let range = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for text in ["0-3,8", "1", "0,2,4-5", ""] {
            assert_eq!(list(&parse(text).unwrap()), text);
        }
        for damaged in ["(null)", "3-1", "0-4294967295", "8192", "a", "1-", "0x"] {
            assert_eq!(parse(damaged), None, "{damaged}");
        }
    }
}
