//! What the control groups of this process allow, and what that took from a cell. Groups of both
//! versions (Documentation/admin-guide/cgroup-v2.rst, scheduler/sched-bwc.rst and
//! cgroup-v1/memory.rst).

use std::path::PathBuf;

use punctual_core::schema::Condition;
use punctual_core::units::{human_ns, percent};
use serde::Serialize;

use super::root::FactsRoot;
use crate::cgroups::{CgroupVersion, OwnCgroups};

/// Name of the condition for programs.
const ID: &str = "group-limits";

/// Where version 1 has no limit it shows the largest number of pages, in bytes.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// A limit that is in effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupLimit {
    /// Path of the group in its hierarchy.
    pub group: String,
    /// The file that sets it, such as `cpu.max`.
    pub knob: &'static str,
    /// Its text; of `cpu.cfs_quota_us`, followed by the period, us.
    pub value: String,
}

/// What a knob limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resource {
    Cpu,
    Memory,
    /// Beyond it whoever allocates is slowed down.
    MemoryHigh,
}

/// One knob of one group, with what it has taken since the group was made.
#[derive(Debug, Clone)]
struct Account {
    of: Resource,
    group: String,
    knob: &'static str,
    /// `None` without a limit.
    value: Option<String>,
    /// How often it was reached; `None` if that cannot be read.
    times: Option<u64>,
    /// For how long it stopped something, ns: the sum over all CPUs.
    stopped_ns: u64,
}

/// One group with a controller.
#[derive(Debug)]
struct Group {
    controller: &'static str,
    version: CgroupVersion,
    /// Path in its hierarchy.
    path: String,
    folder: String,
}

/// The limits of the groups that this process is in, and of those above them.
#[derive(Debug)]
pub struct GroupLimits {
    root: FactsRoot,
    groups: Vec<Group>,
    before: Vec<Account>,
    after: Vec<Account>,
}

impl GroupLimits {
    /// Finds the groups below the root folder.
    #[must_use]
    pub fn find(root: &FactsRoot) -> Self {
        let groups = groups(root);
        Self { root: root.clone(), groups, before: Vec::new(), after: Vec::new() }
    }

    /// A cell begins.
    pub fn begin(&mut self) {
        self.before = self.groups.iter().flat_map(|one| one.accounts(&self.root)).collect();
        self.after.clear();
    }

    /// It ends.
    pub fn end(&mut self) {
        self.after = self.groups.iter().flat_map(|one| one.accounts(&self.root)).collect();
    }

    /// The condition that limits took something from what they `stopped`, such as "the load".
    #[must_use]
    pub fn told(&self, stopped: &str) -> Option<Condition> {
        let told: Vec<String> =
            self.after.iter().filter_map(|after| self.words(after, stopped)).collect();
        (!told.is_empty()).then(|| Condition {
            id: ID.to_owned(),
            text: format!("{}; raise it, or run in another control group", told.join("; ")),
        })
    }

    fn words(&self, after: &Account, stopped: &str) -> Option<String> {
        let is = |before: &&Account| (&before.group, before.knob) == (&after.group, after.knob);
        let before = self.before.iter().find(is)?;
        // One that was lifted meanwhile has taken what it took.
        let value = after.value.as_ref().or(before.value.as_ref())?;
        let allowed = format!("{} of {} allows {}", after.knob, after.group, after.of.words(value));
        let (Some(first), Some(last)) = (before.times, after.times) else {
            return Some(format!("{allowed}: what it took in this cell cannot be read"));
        };
        let times = last.saturating_sub(first);
        let time = i64::try_from(after.stopped_ns.saturating_sub(before.stopped_ns));
        let time = human_ns(time.unwrap_or(i64::MAX));
        let often = if times == 1 { "once".to_owned() } else { format!("{times} times") };
        (times > 0).then(|| match after.of {
            Resource::Cpu => format!(
                "{allowed}: {stopped} was throttled {often} in this cell, for {time} (the sum over \
                 all CPUs)"
            ),
            Resource::Memory => format!(
                "{allowed}: {stopped} reached it {often} in this cell, and waited for memory to be \
                 freed or was killed"
            ),
            Resource::MemoryHigh => format!(
                "{allowed} before it slows allocations down: {stopped} reached it {often} in this \
                 cell"
            ),
        })
    }
}

impl Resource {
    /// What a limit comes to, in words.
    fn words(self, value: &str) -> String {
        if self != Self::Cpu {
            return match value.parse::<u64>() {
                Ok(bytes) if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
                Ok(bytes) => format!("{} KiB", bytes >> 10),
                Err(_) => value.to_owned(),
            };
        }
        let mut numbers = value.split(' ').map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(quota)), Some(Ok(period))) if period > 0.0 => {
                let share = (quota / period * 1e4).round() / 1e4;
                format!("{} % of a CPU", percent(share))
            }
            _ => value.to_owned(),
        }
    }
}

/// The limits in effect.
#[must_use]
pub fn group_limits(root: &FactsRoot) -> Vec<GroupLimit> {
    let limit = |Account { group, knob, value, .. }: Account| {
        Some(GroupLimit { group, knob, value: value? })
    };
    let accounts = groups(root).into_iter().flat_map(|one| one.accounts(root));
    accounts.filter_map(limit).collect()
}

fn groups(root: &FactsRoot) -> Vec<Group> {
    let read = |path: &str| root.bytes(path).unwrap_or_default();
    let own = OwnCgroups::new(read("proc/self/cgroup"), read("proc/self/mountinfo"));
    let controllers = ["cpu", "memory"];
    let found = controllers.into_iter().zip(own.with_parents(controllers));
    let group = |controller, (path, folder, version): (PathBuf, PathBuf, CgroupVersion)| {
        let folder = folder.into_os_string().into_string().ok()?;
        let path = path.to_string_lossy().into_owned();
        Some(Group { controller, version, path, folder })
    };
    found.flat_map(|(of, all)| all.into_iter().filter_map(move |one| group(of, one))).collect()
}

impl Group {
    fn accounts(&self, root: &FactsRoot) -> Vec<Account> {
        let account = |of, knob, value: Option<String>, times, stopped_ns: Option<u64>| Account {
            of,
            group: self.path.clone(),
            knob,
            value,
            times,
            stopped_ns: stopped_ns.unwrap_or(0),
        };
        let text = |file: &str| root.text(&format!("{}/{file}", self.folder));
        let keyed = |file: &str, key: &str| value_of(&text(file)?, key);
        match (self.controller, self.version) {
            ("cpu", CgroupVersion::V1) => {
                let knob = "cpu.cfs_quota_us";
                let quota = text(knob).filter(|text| !text.starts_with('-'));
                let value =
                    quota.and_then(|quota| Some(format!("{quota} {}", text("cpu.cfs_period_us")?)));
                let stopped_ns = keyed("cpu.stat", "throttled_time");
                let times = keyed("cpu.stat", "nr_throttled");
                vec![account(Resource::Cpu, knob, value, times, stopped_ns)]
            }
            ("cpu", CgroupVersion::V2) => {
                let knob = "cpu.max";
                let value = text(knob).filter(|text| !text.starts_with("max"));
                let stopped_us = keyed("cpu.stat", "throttled_usec");
                let stopped_ns = stopped_us.map(|us| us.saturating_mul(1_000));
                let times = keyed("cpu.stat", "nr_throttled");
                vec![account(Resource::Cpu, knob, value, times, stopped_ns)]
            }
            (_, CgroupVersion::V1) => {
                let knob = "memory.limit_in_bytes";
                let is_limit =
                    |text: &String| text.parse().is_ok_and(|bytes: u64| bytes < NO_LIMIT_BYTES);
                let value = text(knob).filter(is_limit);
                let times = text("memory.failcnt").and_then(|text| text.parse().ok());
                vec![account(Resource::Memory, knob, value, times, None)]
            }
            (_, CgroupVersion::V2) => {
                // Events of the group itself, since what a load's own group allows is no limit of
                // this one; before Linux 5.2 both are in one file.
                let files = ["memory.events.local", "memory.events"];
                let knobs = [
                    (Resource::Memory, "memory.max", "max"),
                    (Resource::MemoryHigh, "memory.high", "high"),
                ];
                let of = |(of, knob, event)| {
                    let value = text(knob).filter(|text| text != "max");
                    let times = files.into_iter().find_map(|file| keyed(file, event));
                    account(of, knob, value, times, None)
                };
                knobs.map(of).into()
            }
        }
    }
}

/// The number behind a key, in a text with lines of such.
fn value_of(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(name, _)| *name == key)?.1.trim().parse().ok()
}
