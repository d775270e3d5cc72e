//! The scheduler's settings, and the cgroups that this process is in.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::group_limits::{GroupLimit, group_limits};
use super::root::FactsRoot;
use crate::procfs::{self, Mount, values};

/// What limits real-time work.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Scheduler {
    /// Period of the real-time throttling, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_period_us: Option<u64>,
    /// Time of each period that real-time work may use, us; -1 for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_runtime_us: Option<i64>,
    /// What the fair server takes from real-time work (Linux 6.12 and later), by CPU; absent
    /// if debugfs cannot be read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fair_server: BTreeMap<u32, FairServer>,
    /// Whether sessions are scheduled as groups (autogroup).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autogroup: Option<bool>,
    /// Whether timers may move to other CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_migration: Option<bool>,
    /// Timer slack of this process, ns; real-time threads have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<u64>,
    /// Every `kernel.sched_*` setting with its value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The cgroup of this process by hierarchy: `unified` or the controllers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroups: BTreeMap<String, String>,
    /// Real-time budget of this process's cpu cgroup, us per period; exists only with
    /// `RT_GROUP_SCHED` and cgroup v1. 0: FIFO is refused, even to root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_rt_runtime_us: Option<i64>,
    /// Quotas and limits of this process's cgroups and of those above them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub group_limits: Vec<GroupLimit>,
    /// Schedulers that are loaded as BPF programs; absent if the kernel has none (Linux 6.12 and
    /// later, `CONFIG_SCHED_CLASS_EXT`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sched_ext: Option<SchedExt>,
}

/// What `/sys/kernel/sched_ext` says (Documentation/scheduler/sched-ext.rst).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SchedExt {
    /// Such as `enabled` or `disabled`.
    pub state: String,
    /// Name of the scheduler that is loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ops: Option<String>,
}

/// The fair server of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FairServer {
    /// Longest time it takes in each period, ns; 0 if switched off.
    pub runtime_ns: u64,
    /// Its period, ns.
    pub period_ns: u64,
}

impl Scheduler {
    /// Reads `/proc/sys/kernel`, debugfs and the cgroups of this process.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let sysctl = "proc/sys/kernel";
        let cgroups = cgroups(root);
        Self {
            rt_period_us: root.number(&format!("{sysctl}/sched_rt_period_us")),
            rt_runtime_us: root.number(&format!("{sysctl}/sched_rt_runtime_us")),
            fair_server: fair_servers(root),
            autogroup: root.flag(&format!("{sysctl}/sched_autogroup_enabled")),
            timer_migration: root.flag(&format!("{sysctl}/timer_migration")),
            timer_slack_ns: root.number("proc/self/timerslack_ns"),
            settings: root
                .list(sysctl)
                .into_iter()
                .filter(|name| name.starts_with("sched_"))
                .filter_map(|name| Some((name.clone(), root.text(&format!("{sysctl}/{name}"))?)))
                .collect(),
            group_rt_runtime_us: group_rt_runtime(root, &cgroups),
            group_limits: group_limits(root),
            sched_ext: sched_ext(root),
            cgroups,
        }
    }
}

fn sched_ext(root: &FactsRoot) -> Option<SchedExt> {
    let folder = "sys/kernel/sched_ext";
    // In one text it would look like the home of whoever built the program.
    let ops = [folder, "root", "ops"].join("/");
    Some(SchedExt { state: root.text(&format!("{folder}/state"))?, ops: root.text(&ops) })
}

fn fair_servers(root: &FactsRoot) -> BTreeMap<u32, FairServer> {
    let folder = "sys/kernel/debug/sched/fair_server";
    let cpus = root.numbered(folder, "cpu").into_iter();
    cpus.filter_map(|cpu| {
        let server = FairServer {
            runtime_ns: root.number(&format!("{folder}/cpu{cpu}/runtime"))?,
            period_ns: root.number(&format!("{folder}/cpu{cpu}/period"))?,
        };
        Some((cpu, server))
    })
    .collect()
}

fn cgroups(root: &FactsRoot) -> BTreeMap<String, String> {
    procfs::cgroups(&root.bytes("proc/self/cgroup").unwrap_or_default())
        .map(|(controllers, path)| {
            let name = if controllers.is_empty() { "unified".to_owned() } else { controllers };
            (name, path.to_string_lossy().into_owned())
        })
        .collect()
}

fn group_rt_runtime(root: &FactsRoot, cgroups: &BTreeMap<String, String>) -> Option<i64> {
    let is_cpu = |controllers: &str| controllers.split(',').any(|name| name == "cpu");
    let (_, group) = cgroups.iter().find(|(controllers, _)| is_cpu(controllers))?;
    let mounts = Mount::all(&root.bytes("proc/self/mountinfo")?);
    let mount = mounts.iter().find(|mount| mount.kind == "cgroup" && is_cpu(&mount.options))?;
    let folder = mount.cgroup(Path::new(group))?;
    root.number(&format!("{}/cpu.rt_runtime_us", folder.to_str()?))
}

/// Limits and capabilities of this process.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Limits {
    /// Highest real-time priority without `CAP_SYS_NICE` (`RLIMIT_RTPRIO`, soft).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_priority: Option<String>,
    /// Memory that may be locked without `CAP_IPC_LOCK`, bytes or `unlimited`
    /// (`RLIMIT_MEMLOCK`, soft).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locked_memory_bytes: Option<String>,
    /// Whether `CAP_SYS_NICE` is in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_sys_nice: Option<bool>,
    /// Whether `CAP_IPC_LOCK` is in effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap_ipc_lock: Option<bool>,
}

/// Numbers of the capabilities in `linux/capability.h`.
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_NICE: u32 = 23;

impl Limits {
    /// Reads `/proc/self/limits` and `/proc/self/status`.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let limits = root.text("proc/self/limits").unwrap_or_default();
        let soft = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next().map(str::to_owned)
        };
        let status = root.text("proc/self/status").unwrap_or_default();
        let effective =
            values(&status, "CapEff").next().and_then(|mask| u64::from_str_radix(mask, 16).ok());
        let capability = |number: u32| effective.map(|mask| mask & (1 << number) != 0);
        Self {
            rt_priority: soft("Max realtime priority"),
            locked_memory_bytes: soft("Max locked memory"),
            cap_sys_nice: capability(CAP_SYS_NICE),
            cap_ipc_lock: capability(CAP_IPC_LOCK),
        }
    }
}
