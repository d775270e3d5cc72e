//! Every fact is in the table of docs/run-format.md, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use punctual_suite::facts::cpu::Place;
use punctual_suite::facts::group_limits::GroupLimit;
use punctual_suite::facts::interrupts::Line;
use punctual_suite::facts::kernel_config::KernelConfig;
use punctual_suite::facts::power::{IdleState, IdleStates, Policy};
use punctual_suite::facts::scheduler::{FairServer, SchedExt};
use punctual_suite::facts::{Facts, Interrupts};

use crate::fixtures::Board;

type Keys = BTreeMap<String, BTreeSet<String>>;

/// The table in the section "Facts": the keys by group.
fn documented() -> Keys {
    let text = include_str!("../../../../docs/run-format.md");
    let (_, section) = text.split_once("\n### Facts\n").unwrap();
    let table = section.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = table.skip(1).take_while(|line| line.starts_with('|'));
    rows.flat_map(|row| {
        let mut columns = row.trim_matches('|').splitn(2, '|').map(in_backticks);
        let (groups, keys) = (columns.next().unwrap(), columns.next().unwrap());
        groups.into_iter().map(move |group| (group, keys.clone()))
    })
    .collect()
}

fn in_backticks(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names of fields, those of structures inside included. By Debug, since serde leaves
/// out what was not read.
fn fields(value: &dyn Debug) -> BTreeSet<String> {
    let text = format!("{value:#?}");
    let names = text.lines().filter_map(|line| line.trim_start().split_once(':'));
    let is_name = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase());
    names.map(|(name, _)| name.to_owned()).filter(|name| is_name(name)).collect()
}

/// Facts in which every list and map has an entry.
fn complete() -> Facts {
    let mut facts = Facts::read(&Board::new("firecracker").root_with(Some("KVMKVMKVM")));
    facts.config = Some(KernelConfig::default());
    facts.cpu.topology.insert(0, Place::default());
    facts.power.frequency.push(Policy::default());
    let state =
        IdleState { name: "C1".into(), exit_latency_us: 1, residency_us: None, disabled: false };
    facts.power.idle.push(IdleStates { cpus: Default::default(), states: vec![state] });
    facts.scheduler.fair_server.insert(0, FairServer { runtime_ns: 1, period_ns: 2 });
    let (group, value) = ("/".to_owned(), "1 2".to_owned());
    facts.scheduler.group_limits.push(GroupLimit { group, knob: "cpu.max", value });
    facts.scheduler.sched_ext = Some(SchedExt { state: "enabled".to_owned(), ops: None });
    facts.hardware.vendor = Some("ACME".to_owned());
    facts.image.build_id = Some("00".to_owned());
    facts
}

fn read() -> Keys {
    let facts = complete();
    // No "..": a new field of Facts is a group here, or is none.
    let Facts {
        name: _,
        kernel: _,
        preemption,
        config,
        image,
        cpu,
        power,
        clock,
        scheduler,
        limits,
        memory,
        hardware,
        virtualisation,
        activity,
        unread: _,
    } = &facts;
    let groups: [(&str, &dyn Debug); 12] = [
        ("activity", activity),
        ("clock", clock),
        ("config", config.as_ref().unwrap()),
        ("cpu", cpu),
        ("hardware", hardware),
        ("kernel", image),
        ("limits", limits),
        ("memory", memory),
        ("power", power),
        ("preemption", preemption),
        ("scheduler", scheduler),
        ("virtualisation", virtualisation),
    ];
    let mut keys: Keys = groups.map(|(name, group)| (name.to_owned(), fields(group))).into();
    assert!(facts.groups().keys().eq(keys.keys()), "{:?}", facts.groups().keys());

    let lines = Interrupts { lines: BTreeMap::from([("NMI".to_owned(), Line::default())]) };
    let mut of_lines = fields(&lines);
    // The map itself has no key.
    assert!(of_lines.remove("lines"));
    for when in ["before", "during", "after"] {
        keys.insert(format!("interrupts_{when}"), of_lines.clone());
    }
    keys.insert("engine".to_owned(), engine());
    keys
}

/// The group that the engine adds, by its JSON Schema, which real runs are checked against.
fn engine() -> BTreeSet<String> {
    let schema = include_str!("../../../../docs/run.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let properties = schema["$defs"]["engine"]["properties"].as_object().unwrap();
    properties.keys().cloned().collect()
}

#[test]
fn every_fact_is_documented_and_no_other() {
    let (documented, mut read) = (documented(), read());
    // One row stands for the two readings before and after, and one refers to it.
    read.insert("interrupts_during".to_owned(), BTreeSet::new());
    for (group, keys) in &read {
        let empty = BTreeSet::new();
        let in_table = documented.get(group).unwrap_or(&empty);
        let missing: Vec<_> = keys.difference(in_table).collect();
        assert!(missing.is_empty(), "docs/run-format.md lacks {missing:?} in facts of {group}");
        let unknown: Vec<_> = in_table.difference(keys).collect();
        assert!(unknown.is_empty(), "docs/run-format.md has {unknown:?} in facts of {group}");
    }
    assert!(documented.keys().eq(read.keys()), "{:?}", documented.keys());
}

#[test]
fn what_is_written_is_what_was_checked() {
    let documented = documented();
    for board in ["firecracker", "rpi4", "nosmt", "server", "debian-rt"] {
        for (group, value) in Facts::read(&Board::new(board).root()).groups() {
            for key in value.as_object().unwrap().keys() {
                assert!(documented[&group].contains(key), "{board}: {group}.{key}");
            }
        }
    }
}
