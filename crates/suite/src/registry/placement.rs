//! Parameters that every load has: on which CPUs its processes run, how they are scheduled, and
//! in which control group.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::Path;

use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::error;
use punctual_sys::sched::{self, Policy};

use super::param::{Choice, Default, Kind, Param, Value, any_text};
use super::values::Values;
use crate::facts::{FactsRoot, cpu};

const INHERITED: &str = "inherited";
const ALL: &str = "all";
const PROBE: &str = "probe";
const OTHERS: &str = "others";
const SIBLINGS: &str = "siblings";

/// Highest real-time priority of a load: below the default of probes, and of interrupt threads.
const MAX_PRIORITY: u64 = 49;

/// Parameters of every load that has processes.
pub const PLACE_PARAMS: &[Param] = &[
    Param {
        name: "cpus",
        kind: Kind::Or(
            &[
                Choice::of(INHERITED, "those that punctual was started on, without isolated ones"),
                Choice::of(ALL, "every CPU that is online, isolated ones too"),
                Choice::of(PROBE, "those that the probe's threads are bound to"),
                Choice::of(OTHERS, "the inherited ones without those of the probe"),
                Choice::of(SIBLINGS, "SMT siblings of the probe's CPUs"),
            ],
            &Kind::Cpus,
        ),
        default: Default::Value(INHERITED),
        help: "where it runs, such as 0-3+8",
    },
    Param {
        name: "nice",
        kind: Kind::Count { low: 0, high: 19 },
        default: Default::Value("0"),
        help: "nice value",
    },
    Param {
        name: "policy",
        kind: Kind::Choice(&[
            Choice::of("other", ""),
            Choice::of("batch", ""),
            Choice::of("idle", ""),
            Choice::of("fifo", ""),
            Choice::of("rr", ""),
        ]),
        default: Default::Value("other"),
        help: "scheduling policy; fifo and rr only with RT throttling, which leaves time to end them",
    },
    Param {
        name: "priority",
        kind: Kind::Count { low: 1, high: MAX_PRIORITY },
        default: Default::Value("1"),
        help: "real-time priority, with fifo and rr",
    },
    Param {
        name: "cgroup",
        kind: Kind::Text { value: "DIR", check: any_text },
        default: Default::Value(""),
        help: "an existing control group, whose limits then hold for it",
    },
];

/// What the words of the parameters stand for on this machine.
#[derive(Debug, Clone)]
pub struct Placing {
    /// CPUs that punctual was started on, without those that the kernel keeps other work off.
    inherited: CpuSet,
    /// CPUs that threads can be bound to.
    reachable: CpuSet,
    /// CPUs without load balancing.
    isolated: CpuSet,
    /// CPUs that threads of the probe are bound to.
    probe: CpuSet,
    /// Their SMT siblings, without themselves.
    siblings: CpuSet,
}

impl Placing {
    /// Of this machine, with threads of a probe bound to these CPUs.
    ///
    /// # Errors
    /// The affinity of this thread is not known.
    pub fn beside(probe: CpuSet) -> Result<Self, String> {
        let known = |set: std::io::Result<CpuSet>| {
            set.map_err(|error| format!("sched_setaffinity: {}", error::text(&error)))
        };
        let (inherited, reachable) = (known(affinity::get())?, known(affinity::reachable())?);
        let live = FactsRoot::live();
        let read = |path: &str| CpuSet::parse(&live.text(path)?);
        let siblings =
            |cpu| read(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"));
        let siblings: CpuSet = probe
            .iter()
            .filter_map(siblings)
            .flat_map(|set| set.iter().collect::<Vec<_>>())
            .collect();
        Ok(Self {
            inherited: not_isolated(inherited, &cpu::kept_free(&live)),
            reachable,
            isolated: read("sys/devices/system/cpu/isolated").unwrap_or_default(),
            siblings: siblings.without(&probe),
            probe,
        })
    }

    /// Checks the parameters of a load against the machine and replaces words by CPUs. Returns how
    /// many CPUs it may use.
    ///
    /// # Errors
    /// The parameter, what is wrong with it, and what to do.
    pub fn resolve(&self, values: &mut Values) -> Result<u64, String> {
        let count = |set: &CpuSet| u64::try_from(set.len()).unwrap_or(1).max(1);
        if !is_placed(values) {
            return Ok(count(&self.inherited));
        }
        if values.word("policy").is_some_and(is_real_time) && throttling_is_off() {
            return Err(values.wrong_one(
                "policy",
                "it could keep everything else from running, since RT throttling is off (sysctl \
                 kernel.sched_rt_runtime_us=950000 turns it on)",
            ));
        }
        if !values.text("cgroup").is_empty() {
            let group =
                group(values.text("cgroup")).map_err(|why| values.wrong_one("cgroup", &why))?;
            values.set("cgroup", Value::Text(group));
        }
        let chosen = match values.word("cpus") {
            Some(INHERITED) => return Ok(count(&self.inherited)),
            Some(ALL) => Ok(self.reachable.clone()),
            Some(_) if self.probe.is_empty() => {
                Err("no thread of a probe is bound to a CPU (--affinity, or --threads per-cpu)")
            }
            Some(PROBE) => Ok(self.probe.clone()),
            Some(OTHERS) => some(self.inherited.without(&self.probe))
                .ok_or("threads of the probe are bound to each of them (--affinity)"),
            Some(_) => some(self.siblings.clone())
                .ok_or("there are none: the CPUs have one hardware thread each"),
            None => Ok(values.cpus("cpus").cloned().unwrap_or_default()),
        };
        let chosen = chosen.map_err(|why| values.wrong_one("cpus", why))?;
        if !chosen.without(&self.reachable).is_empty() {
            let why = format!("not all can be used (CPUs that can be: {})", self.reachable);
            return Err(values.wrong_one("cpus", &why));
        }
        let cpus = count(&chosen);
        values.set("cpus", Value::Cpus(chosen));
        Ok(cpus)
    }

    /// The CPUs of a load whose parameters do not say where it runs.
    #[must_use]
    pub fn inherited(&self) -> Vec<u32> {
        self.inherited.iter().collect()
    }

    /// The CPUs of a load whose jobs are to be bound to one each, in turn: the kernel's scheduler
    /// moves nothing to a CPU without load balancing.
    #[must_use]
    pub fn in_turn(&self, values: &Values) -> Vec<u32> {
        let Some(cpus) = values.cpus("cpus") else { return Vec::new() };
        let isolated = cpus.iter().any(|cpu| self.isolated.contains(cpu));
        if isolated && cpus.len() > 1 { cpus.iter().collect() } else { Vec::new() }
    }
}

/// The CPUs of loads that are not placed. Whoever starts punctual on isolated CPUs alone has placed
/// them there.
fn not_isolated(inherited: CpuSet, kept_free: &CpuSet) -> CpuSet {
    some(inherited.without(kept_free)).unwrap_or(inherited)
}

/// A command has none of the parameters: it can have them set by other commands.
fn is_placed(values: &Values) -> bool {
    values.is_known("cpus")
}

/// Moves this process where its parameters, once resolved, say, or else to the inherited CPUs: what
/// started it may be bound by now.
///
/// # Errors
/// The parameter that has no effect, and why.
pub fn settle(values: &Values, inherited: &[u32]) -> Result<(), String> {
    let inherited: CpuSet = inherited.iter().copied().collect();
    if affinity::get().is_ok_and(|now| now != inherited) {
        affinity::set(&inherited)
            .map_err(|error| format!("CPUs {inherited}: {}", error::text(&error)))?;
    }
    if !is_placed(values) {
        return Ok(());
    }
    let failed = |name: &str, error: &std::io::Error| values.wrong_one(name, &error::text(error));
    let group = values.text("cgroup");
    if !group.is_empty() {
        let file = Path::new(group).join("cgroup.procs");
        fs::write(file, "0").map_err(|error| failed("cgroup", &error))?;
    }
    if let Some(cpus) = values.cpus("cpus") {
        affinity::set(cpus).map_err(|error| failed("cpus", &error))?;
    }
    let nice: i32 = values.small("nice");
    if nice > 0 {
        sched::set_nice(nice).map_err(|error| failed("nice", &error))?;
    }
    let policy = match values.text("policy") {
        "batch" => Policy::Batch,
        "idle" => Policy::Idle,
        "fifo" => Policy::Fifo,
        "rr" => Policy::RoundRobin,
        _ => return Ok(()),
    };
    let priority = if policy.is_real_time() { values.small("priority") } else { 0 };
    sched::set(policy, priority).map_err(|error| failed("policy", &error))
}

/// The parameters of a load as they take effect, without those of the place that are as they are for
/// every load.
#[must_use]
pub fn recorded(values: &Values) -> BTreeMap<String, String> {
    let is_usual = |name: &String, text: &String| {
        let place = PLACE_PARAMS.iter().find(|param| param.name == name);
        place.is_some_and(|param| matches!(param.default, Default::Value(usual) if usual == text))
    };
    let mut params = values.effective();
    params.retain(|name, text| !is_usual(name, text));
    params
}

fn some(set: CpuSet) -> Option<CpuSet> {
    (!set.is_empty()).then_some(set)
}

fn is_real_time(policy: &'static str) -> bool {
    ["fifo", "rr"].contains(&policy)
}

fn throttling_is_off() -> bool {
    FactsRoot::live()
        .text("proc/sys/kernel/sched_rt_runtime_us")
        .is_some_and(|us| us.trim() == "-1")
}

/// The absolute path of a control group that processes can be moved to.
fn group(folder: &str) -> Result<String, String> {
    let wrong = |error: std::io::Error| error::text(&error);
    let path = fs::canonicalize(folder).map_err(wrong)?;
    let procs = path.join("cgroup.procs");
    if !procs.exists() {
        return Err("it is no control group: it has no cgroup.procs".to_owned());
    }
    OpenOptions::new().write(true).open(&procs).map_err(wrong)?;
    path.to_str().map(str::to_owned).ok_or_else(|| "not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(pairs: &[(&str, &str)]) -> Values {
        let given = pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        Values::read("load", PLACE_PARAMS, &given.collect()).unwrap()
    }

    fn place() -> Placing {
        let set = |text| CpuSet::parse(text).unwrap();
        Placing {
            inherited: set("0-3"),
            reachable: set("0-5"),
            isolated: set("4-5"),
            probe: set("1"),
            siblings: set("3"),
        }
    }

    #[test]
    fn words_stand_for_cpus() {
        for (text, cpus, count, in_turn) in [
            ("inherited", None, 4, false),
            ("all", Some("0-5"), 6, true),
            ("probe", Some("1"), 1, false),
            ("others", Some("0,2-3"), 3, false),
            ("siblings", Some("3"), 1, false),
            ("0+2", Some("0,2"), 2, false),
            ("5", Some("5"), 1, false),
            ("3-4", Some("3-4"), 2, true),
        ] {
            let mut values = values(&[("cpus", text)]);
            assert_eq!(place().resolve(&mut values), Ok(count), "{text}");
            let chosen = values.cpus("cpus").map(ToString::to_string);
            assert_eq!(chosen.as_deref(), cpus, "{text}");
            assert_eq!(!place().in_turn(&values).is_empty(), in_turn, "{text}");
        }
    }

    #[test]
    fn loads_keep_off_isolated_cpus_that_nobody_placed_them_on() {
        let set = |text| CpuSet::parse(text).unwrap();
        for (inherited, kept_free, used) in [
            ("0-3", "2-3", "0-1"),
            ("0-1", "2-3", "0-1"),
            ("2-3", "2-3", "2-3"),
            ("0-3", "", "0-3"),
        ] {
            assert_eq!(not_isolated(set(inherited), &set(kept_free)), set(used), "{inherited}");
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        let unbound = Placing { probe: CpuSet::default(), ..place() };
        let everywhere = Placing { probe: place().inherited, ..place() };
        let alone = Placing { siblings: CpuSet::default(), ..place() };
        for (place, pairs, expected) in [
            (&unbound, ("cpus", "others"), "cpus=others: no thread of a probe is bound"),
            (&unbound, ("cpus", "siblings"), "no thread of a probe is bound"),
            (&everywhere, ("cpus", "others"), "bound to each of them"),
            (&alone, ("cpus", "siblings"), "there are none"),
            (&alone, ("cpus", "4-6"), "cpus=4-6: not all can be used (CPUs that can be: 0-5)"),
            (&alone, ("cgroup", "/"), "cgroup=/: it is no control group"),
            (&alone, ("cgroup", "/nowhere"), "No such file or directory"),
        ] {
            let error = place.resolve(&mut values(&[pairs])).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn only_what_was_asked_for_is_recorded() {
        let mut values = values(&[("cpus", "probe"), ("nice", "0"), ("policy", "batch")]);
        place().resolve(&mut values).unwrap();
        let recorded = recorded(&values);
        let recorded: Vec<_> = recorded.iter().map(|(key, text)| format!("{key}={text}")).collect();
        assert_eq!(recorded, ["cpus=1", "policy=batch"]);
    }
}
