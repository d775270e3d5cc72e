//! The scheduler's settings, and the cgroups that this process is in.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cpu::values;
use super::root::FactsRoot;

/// What bounds real-time work.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Scheduler {
    /// Period of the real-time throttling, us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_period_us: Option<u64>,
    /// Time of each period that real-time work may use, us; -1 for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_runtime_us: Option<i64>,
    /// What the fair server takes from real-time work for the rest (Linux 6.12
    /// and later), by CPU; absent where debugfs cannot be read.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fair_server: BTreeMap<u32, FairServer>,
    /// Whether sessions are scheduled as groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autogroup: Option<bool>,
    /// Whether timers may move to other CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_migration: Option<bool>,
    /// Timer slack of this process, ns; real-time threads have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_slack_ns: Option<u64>,
    /// Every `kernel.sched_*` setting as it is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// The cgroup of this process by hierarchy: `unified` or the controllers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cgroups: BTreeMap<String, String>,
    /// Real-time budget of this process's cpu cgroup, us a period; there with
    /// `RT_GROUP_SCHED` and cgroup v1 alone. 0: FIFO is refused, even to root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_rt_runtime_us: Option<i64>,
}

/// The fair server of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FairServer {
    /// Time it takes in each period at most, ns; 0 when switched off.
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
            cgroups,
        }
    }
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
    let text = root.text("proc/self/cgroup").unwrap_or_default();
    text.lines()
        .filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let controllers = fields.next()?;
            let name = if controllers.is_empty() { "unified" } else { controllers };
            Some((name.to_owned(), fields.next()?.to_owned()))
        })
        .collect()
}

fn group_rt_runtime(root: &FactsRoot, cgroups: &BTreeMap<String, String>) -> Option<i64> {
    let is_cpu = |controllers: &str| controllers.split(',').any(|name| name == "cpu");
    let (_, group) = cgroups.iter().find(|(controllers, _)| is_cpu(controllers))?;
    let mount =
        mounts(root).into_iter().find(|mount| mount.kind == "cgroup" && is_cpu(&mount.options))?;
    // Inside a container the mount may begin below the root of the hierarchy.
    let below = group.strip_prefix(&mount.root).unwrap_or(group);
    let folder = format!("{}/{}", mount.point, below.trim_start_matches('/'));
    root.number(&format!("{folder}/cpu.rt_runtime_us"))
}

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// What of the file system is mounted.
    pub root: String,
    /// Where.
    pub point: String,
    /// File system type.
    pub kind: String,
    /// Options of the file system; of cgroup v1 the controllers.
    pub options: String,
}

pub(crate) fn mounts(root: &FactsRoot) -> Vec<Mount> {
    let text = root.text("proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(Mount::parse).collect()
}

impl Mount {
    /// See proc_pid_mountinfo(5): optional fields end with a single `-`.
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let mut file_system = file_system.split(' ');
        Some(Self {
            root: unescaped(mount.next()?),
            point: unescaped(mount.next()?),
            kind: file_system.next()?.to_owned(),
            options: file_system.nth(1).unwrap_or_default().to_owned(),
        })
    }
}

/// White space and backslashes are written as three octal digits.
fn unescaped(text: &str) -> String {
    let mut plain = text.to_owned();
    for (escape, letter) in [("\\040", " "), ("\\011", "\t"), ("\\012", "\n")] {
        plain = plain.replace(escape, letter);
    }
    plain.replace("\\134", "\\")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_with_spaces_and_optional_fields() {
        let line = "36 35 98:0 /sub /mnt\\040two rw,noatime master:1 shared:2 - ext3 /dev/root rw";
        let mount = Mount::parse(line).unwrap();
        assert_eq!(mount.root, "/sub");
        assert_eq!(mount.point, "/mnt two");
        assert_eq!((mount.kind.as_str(), mount.options.as_str()), ("ext3", "rw"));
        for damaged in ["", " - ", "1 2 3 - ext4"] {
            assert_eq!(Mount::parse(damaged), None, "{damaged:?}");
        }
    }
}
