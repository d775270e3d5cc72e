//! The registries are sound: what an entry says is what takes effect and what is recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use punctual_core::units::BareNumber;
use punctual_sys::affinity::CpuSet;
use punctual_sys::shared::COUNTERS;

use super::load::{Form, Machine, Owns};
use super::probe::{ProbeEntry, Stage, State};
use super::{Default, Kind, Param, Value, Values};
use crate::costs::COSTS;
use crate::engine::threads::{Reach, ThreadsPlan};
use crate::facts::FactsRoot;
use crate::harness::spec::LoadSpec;
use crate::knobs::Journal;
use crate::loads::{self, LOADS};
use crate::probes::{self, PROBES};

type Read = Box<dyn Fn(&BTreeMap<String, String>) -> Result<Values, String>>;

/// Everything that takes parameters: its name, its parameters, and how they are read.
fn all() -> Vec<(String, Vec<Param>, Read)> {
    let mut all: Vec<(String, Vec<Param>, Read)> = Vec::new();
    for entry in probes::there() {
        all.push((entry.name.to_owned(), entry.all_params(), Box::new(|given| entry.read(given))));
    }
    for entry in loads::LOADS {
        all.push((entry.name.to_owned(), entry.all_params(), Box::new(|given| entry.read(given))));
    }
    for entry in COSTS {
        all.push((entry.name.to_owned(), entry.all_params(), Box::new(|given| entry.read(given))));
    }
    all
}

/// Required parameters, with a valid value.
fn required(params: &[Param]) -> BTreeMap<String, String> {
    let required = params.iter().filter(|param| matches!(param.default, Default::Required));
    required.map(|param| (param.name.to_owned(), some_text(param.name))).collect()
}

fn some_text(name: &str) -> String {
    match name {
        "values" => "3us*2/7us".to_owned(),
        "model" => "yield".to_owned(),
        _ => "/etc/hostname".to_owned(),
    }
}

/// The kind of its values without the words.
fn inner(param: &Param) -> Kind {
    match param.kind {
        Kind::Or(_, kind) => *kind,
        kind => kind,
    }
}

/// Valid values that are not the default.
fn others(param: &Param) -> Vec<String> {
    let mut found: Vec<String> =
        param.kind.words().iter().map(|word| word.value.to_owned()).collect();
    let kind = inner(param);
    found.push(match kind {
        Kind::Count { low, high } => (low + 3).min(high).to_string(),
        Kind::Time { low, .. } => format!("{}ns", low + 12_345),
        Kind::Size { low } => super::size::text(low + 4096),
        Kind::Percent { high } => format!("{}%", high / 2),
        Kind::Cpus => "0".to_owned(),
        Kind::Text { .. } => some_text(param.name),
        Kind::Choice(_) | Kind::Or(..) => return found,
    });
    found
}

/// Invalid values.
fn wrong(param: &Param) -> Option<String> {
    let kind = inner(param);
    match kind {
        Kind::Count { high: u64::MAX, .. } => Some("-1".to_owned()),
        // One more than the largest may be a word.
        Kind::Count { high, .. } => Some((high + 2).to_string()),
        Kind::Time { high, .. } if high < u64::MAX => Some(format!("{}ns", high + 1)),
        Kind::Percent { high } => Some(format!("{}%", high + 1)),
        Kind::Text { .. } => None,
        _ => Some("no such thing".to_owned()),
    }
}

#[test]
fn names_are_told_once_and_explained() {
    let probes = PROBES.iter().map(|entry| (entry.name, entry.summary, entry.help));
    let loads = LOADS.iter().map(|entry| (entry.name, entry.summary, entry.help));
    let costs = COSTS.iter().map(|entry| (entry.name, entry.summary, entry.help));
    for names in [probes.collect::<Vec<_>>(), loads.collect(), costs.collect()] {
        for (i, (name, summary, help)) in names.iter().enumerate() {
            assert!(names[..i].iter().all(|(other, ..)| other != name), "{name} is told twice");
            assert!(!summary.is_empty() && summary.chars().count() <= 80, "{name}: {summary}");
            assert!(help.len() > 20, "{name}");
        }
    }
}

#[test]
fn a_default_takes_effect_and_is_recorded_and_so_is_another_value() {
    for (name, params, read) in all() {
        let required = required(&params);
        let values = read(&required).unwrap();
        for param in &params {
            let text = |values: &Values| values.effective().get(param.name).cloned();
            if let Default::Value(default) = param.default {
                let value = param.kind.parse(default);
                let value = value.unwrap_or_else(|error| panic!("{name}: {}: {error}", param.name));
                assert_eq!(text(&values), Some(param.kind.text(&value)), "{name}: {}", param.name);
                assert_eq!(param.kind.text(&value), default, "{name}: help writes it otherwise");
            }
            for other in others(param) {
                let mut given = required.clone();
                given.insert(param.name.to_owned(), other.clone());
                let read = match read(&given) {
                    Ok(read) => read,
                    // A word that needs another parameter says so.
                    Err(error) => {
                        assert!(error.contains("needs"), "{name}: {error}");
                        continue;
                    }
                };
                let expected = param.kind.text(&param.kind.parse(&other).unwrap());
                assert_eq!(text(&read).as_ref(), Some(&expected), "{name}: {}", param.name);
                let changed = !matches!(param.default, Default::Value(text) if text == expected);
                assert_eq!(read.canonical().contains_key(param.name), changed, "{name}: {other}");
            }
            if let Some(wrong) = wrong(param) {
                let mut given = required.clone();
                given.insert(param.name.to_owned(), wrong.clone());
                let error = read(&given).unwrap_err();
                assert!(error.contains(&format!("{}={wrong}", param.name)), "{error}");
            }
        }
    }
}

/// Opens a probe with these parameters; returns the parameters that no code asked for.
fn unasked(entry: &ProbeEntry, given: &BTreeMap<String, String>) -> BTreeSet<&'static str> {
    let Ok(mut values) = entry.read(given) else {
        return entry.all_params().iter().map(|param| param.name).collect();
    };
    let reach = Reach {
        cpus: CpuSet::of(0),
        inherited: CpuSet::of(0),
        per_cpu: Ok(CpuSet::of(0)),
        clock_cost_ns: 30,
        force: true,
    };
    let threads = ThreadsPlan::read(&mut values, entry.pace, &reach).unwrap();
    let State::There(open) = entry.state else { panic!("{} is planned", entry.name) };
    let mut journal = Journal::in_folder(&std::env::temp_dir()).unwrap();
    let mut stage = Stage {
        threads: u32::try_from(threads.threads.len()).unwrap(),
        bound: threads.bound_cpus(),
        scheduling: (threads.policy, threads.priority),
        interval_ns: threads.interval_ns,
        dither: None,
        break_ns: i64::MAX,
        journal: &mut journal,
        root: &FactsRoot::live(),
    };
    let _ = open(&values, &mut stage);
    values.unasked()
}

#[test]
fn every_parameter_of_every_probe_is_asked_for() {
    for entry in probes::there().filter(|entry| !["exercise", "stamped"].contains(&entry.name)) {
        let params = entry.all_params();
        let required = required(&params);
        let mut idle = unasked(entry, &required);
        // Some matter only with a certain word of another parameter.
        for param in &params {
            for word in param.kind.words() {
                let mut given = required.clone();
                given.insert(param.name.to_owned(), word.value.to_owned());
                if word.value == "list" {
                    given.insert("values".to_owned(), some_text("values"));
                }
                idle = &idle & &unasked(entry, &given);
            }
        }
        assert_eq!(idle, BTreeSet::new(), "{}: parameters without effect", entry.name);
    }
}

#[test]
fn every_parameter_of_every_load_is_used_by_its_file() {
    // A load reads its parameters in another process: its source shows that it does.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/loads");
    for entry in loads::LOADS.iter().filter(|entry| !entry.params.is_empty()) {
        let source = std::fs::read_to_string(folder.join(format!("{}.rs", entry.name))).unwrap();
        let (_, code) = source.split_once("fn run(").unwrap();
        for param in entry.params {
            let asked = code.contains(&format!("\"{}\"", param.name));
            let of_folder = param.name == "dir" && source.contains("Owns::ScratchFolder");
            let of_group = param.name == "limit" && source.contains("Owns::MemoryGroup");
            let of_room = param.name == "reserve" && code.contains("room::keep(");
            assert!(
                asked || of_folder || of_group || of_room,
                "{}: {} is without effect",
                entry.name,
                param.name
            );
        }
    }
}

#[test]
fn what_the_machine_decides_is_known_once_resolved() {
    let machine = Machine { cpus: 2, memory: 4 << 30, scratch_parent: std::env::temp_dir() };
    for entry in loads::LOADS {
        let Form::Part(part) = entry.form else { continue };
        let mut values = entry.read(&required(entry.params)).unwrap();
        (part.resolve)(&mut values, &machine).unwrap();
        let known = values.effective();
        let missing: Vec<_> =
            entry.params.iter().filter(|param| !known.contains_key(param.name)).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", entry.name);
        // What is recorded starts the same load again.
        assert_eq!(entry.read(&known).unwrap().effective(), known, "{}", entry.name);
    }
}

#[test]
fn the_loads_are_sound() {
    for entry in LOADS {
        let name = entry.name;
        assert!(entry.counters.len() <= COUNTERS, "{name}");
        let main = entry.main_param;
        let known = |key| entry.params.iter().any(|param| param.name == key);
        assert!(main.is_empty() || known(main), "{name}");
        match entry.form {
            Form::Idle => assert!(entry.counters.is_empty(), "{name}"),
            Form::Part(part) => {
                assert!(!entry.counters.is_empty(), "{name}");
                assert!(part.owns != Owns::ScratchFolder || known("dir"), "{name}");
            }
            Form::Composite(parts) => {
                assert!(!parts.is_empty() && entry.params.is_empty(), "{name}");
                assert_eq!(LoadSpec::parse(name).unwrap().parts().len(), parts.len(), "{name}");
            }
        }
    }
}

#[test]
fn a_time_with_words_reads_both() {
    const WORDS: &[super::Choice] = &[super::Choice::of("spread", "")];
    let kind = Kind::Or(
        WORDS,
        &Kind::Time { bare: BareNumber::Microseconds, low: 0, high: 1_000_000_000 },
    );
    assert_eq!(kind.parse("15"), Ok(Value::Number(15_000)));
    assert_eq!(kind.parse("spread"), Ok(Value::Word("spread")));
}
