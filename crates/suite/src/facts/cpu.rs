//! The CPUs: model, masks, topology, mitigations.

use std::collections::{BTreeMap, BTreeSet};

use punctual_sys::affinity::CpuSet;
use serde::Serialize;

use super::root::FactsRoot;
use crate::procfs::values;

const CPUS: &str = "sys/devices/system/cpu";

/// The CPUs as the kernel describes them.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Cpu {
    /// Model as the kernel names it; several (big.LITTLE) are joined with ` + `.
    pub model: String,
    /// Microcode revisions in use (x86).
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub microcode: BTreeSet<String>,
    /// CPU features that affect timing.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub features: BTreeSet<String>,
    /// What CPUID tells of model and features, a line a leaf (x86).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpuid: Vec<String>,
    /// CPUs that can ever be present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub possible: Option<CpuSet>,
    /// CPUs that are present.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present: Option<CpuSet>,
    /// CPUs that are online.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub online: Option<CpuSet>,
    /// CPUs that are possible but offline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offline: Option<CpuSet>,
    /// CPUs without load balancing (`isolcpus=`, isolated cpusets).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolated: Option<CpuSet>,
    /// CPUs whose tick stops while one task runs (`nohz_full=`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nohz_full: Option<CpuSet>,
    /// CPUs that this process may use, by its affinity and cpuset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<CpuSet>,
    /// SMT control: `on`, `off`, `forceoff`, `notsupported` or `notimplemented`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt_control: Option<String>,
    /// Whether any core currently runs more than one thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt_active: Option<bool>,
    /// CPUs by core type (`cpu_core`, `cpu_atom`), if there are several types.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub core_types: BTreeMap<String, CpuSet>,
    /// Place and capacity of each CPU that is present.
    pub topology: BTreeMap<u32, Place>,
    /// Hardware vulnerabilities and what the kernel does about them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vulnerabilities: BTreeMap<String, String>,
}

/// Topology of one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Core within the package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// Package (socket).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<u32>,
    /// CPUs of the same core, including this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub siblings: Option<CpuSet>,
    /// Computing power relative to the strongest CPU, which has 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u32>,
    /// NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
}

/// The flags of `/proc/cpuinfo` that bear on timing.
const TIMING_FEATURES: [&str; 8] = [
    "arat",
    "constant_tsc",
    "hypervisor",
    "nonstop_tsc",
    "rdtscp",
    "tsc",
    "tsc_deadline_timer",
    "tsc_known_freq",
];

impl Cpu {
    /// Reads `/proc/cpuinfo` and `/sys/devices/system/cpu`.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
        let mask = |name: &str| CpuSet::parse(&root.text(&format!("{CPUS}/{name}"))?);
        let status = root.text("proc/self/status").unwrap_or_default();
        let vulnerabilities = format!("{CPUS}/vulnerabilities");
        Self {
            model: model(root, &cpuinfo),
            microcode: values(&cpuinfo, "microcode").map(str::to_owned).collect(),
            features: values(&cpuinfo, "flags")
                .flat_map(str::split_whitespace)
                .filter(|flag| TIMING_FEATURES.contains(flag))
                .map(str::to_owned)
                .collect(),
            cpuid: root.native().cpuid.clone(),
            possible: mask("possible"),
            present: mask("present"),
            online: mask("online").or_else(|| processors(&cpuinfo)),
            offline: mask("offline"),
            isolated: mask("isolated"),
            nohz_full: mask("nohz_full"),
            allowed: values(&status, "Cpus_allowed_list")
                .next()
                .and_then(CpuSet::parse)
                .or_else(|| root.native().allowed.clone()),
            smt_control: root.text(&format!("{CPUS}/smt/control")),
            smt_active: root.flag(&format!("{CPUS}/smt/active")),
            core_types: core_types(root),
            topology: root
                .numbered(CPUS, "cpu")
                .into_iter()
                .map(|cpu| (cpu, Place::read(root, cpu)))
                .collect(),
            vulnerabilities: root
                .list(&vulnerabilities)
                .into_iter()
                .filter_map(|name| {
                    let state = root.text(&format!("{vulnerabilities}/{name}"))?;
                    Some((name, state))
                })
                .collect(),
        }
    }

    /// Number of CPUs online, or if /proc and /sys do not tell, of those that this process may use;
    /// at least 1.
    #[must_use]
    pub fn online_count(&self) -> u32 {
        let online = self.online.as_ref().or(self.allowed.as_ref()).map_or(1, CpuSet::len);
        u32::try_from(online).unwrap_or(u32::MAX).max(1)
    }

    /// CPUs that the kernel keeps other work off: without load balancing or with a tick that stops.
    #[must_use]
    pub fn kept_free(&self) -> CpuSet {
        let known = |cpus: &Option<CpuSet>| cpus.clone().unwrap_or_default();
        known(&self.isolated).with(&known(&self.nohz_full))
    }
}

/// The same of the machine below this root folder, by two files; empty if they cannot be read.
#[must_use]
pub fn kept_free(root: &FactsRoot) -> CpuSet {
    let read = |name| CpuSet::parse(&root.text(&format!("{CPUS}/{name}"))?);
    let (isolated, nohz_full) = (read("isolated"), read("nohz_full"));
    Cpu { isolated, nohz_full, ..Cpu::default() }.kept_free()
}

impl Place {
    fn read(root: &FactsRoot, cpu: u32) -> Self {
        let folder = format!("{CPUS}/cpu{cpu}");
        // Kernels before 5.3 have only thread_siblings_list.
        let siblings = ["core_cpus_list", "thread_siblings_list"];
        Self {
            core: root.number(&format!("{folder}/topology/core_id")),
            package: root.number(&format!("{folder}/topology/physical_package_id")),
            siblings: siblings
                .iter()
                .find_map(|name| root.text(&format!("{folder}/topology/{name}")))
                .and_then(|text| CpuSet::parse(&text)),
            capacity: root.number(&format!("{folder}/cpu_capacity")),
            node: root.numbered(&folder, "node").first().copied(),
        }
    }
}

fn processors(cpuinfo: &str) -> Option<CpuSet> {
    let cpus: CpuSet =
        values(cpuinfo, "processor").filter_map(|number| number.parse().ok()).collect();
    (!cpus.is_empty()).then_some(cpus)
}

/// Keys under which architectures name the CPU: x86 and some others, MIPS,
/// PowerPC, RISC-V.
const MODEL_KEYS: [&str; 4] = ["model name", "cpu model", "cpu", "uarch"];

fn model(root: &FactsRoot, cpuinfo: &str) -> String {
    let named = MODEL_KEYS
        .iter()
        .map(|key| joined(values(cpuinfo, key).map(str::to_owned)))
        .find(|model| !model.is_empty());
    let from_tree = || joined(device_tree_cpus(root).into_iter());
    let from_registers = || joined(arm_registers(cpuinfo).into_iter());
    named
        .or_else(|| Some(from_tree()).filter(|model| !model.is_empty()))
        .or_else(|| Some(from_registers()).filter(|model| !model.is_empty()))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn joined(names: impl Iterator<Item = String>) -> String {
    let distinct: BTreeSet<String> = names.collect();
    distinct.into_iter().collect::<Vec<_>>().join(" + ")
}

/// arm64 has no model name in `/proc/cpuinfo`; its device tree does (`arm,cortex-a72`).
fn device_tree_cpus(root: &FactsRoot) -> Vec<String> {
    let nodes = root.list("proc/device-tree/cpus").into_iter();
    nodes
        .filter(|name| name.starts_with("cpu@"))
        .filter_map(|name| {
            let compatible = root.text(&format!("proc/device-tree/cpus/{name}/compatible"))?;
            Some(compatible.split('\0').next()?.to_owned())
        })
        .collect()
}

/// Servers with ACPI have no device tree; only the ID registers tell.
fn arm_registers(cpuinfo: &str) -> Vec<String> {
    let implementers = values(cpuinfo, "CPU implementer");
    implementers
        .zip(values(cpuinfo, "CPU part"))
        .map(|(implementer, part)| format!("implementer {implementer} part {part}"))
        .collect()
}

/// On hybrid x86, perf's CPU devices tell the core types apart.
fn core_types(root: &FactsRoot) -> BTreeMap<String, CpuSet> {
    ["cpu_core", "cpu_atom", "cpu_lowpower"]
        .into_iter()
        .filter_map(|name| {
            let cpus = CpuSet::parse(&root.text(&format!("sys/devices/{name}/cpus"))?)?;
            Some((name.to_owned(), cpus))
        })
        .collect()
}
