//! Power management of the CPUs: frequency scaling and idle states.

use std::collections::BTreeMap;

use punctual_sys::affinity::CpuSet;
use serde::Serialize;

use super::root::FactsRoot;

const CPUS: &str = "sys/devices/system/cpu";

/// Frequency scaling and idle states.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Power {
    /// Frequency policies; each governs CPUs that change together.
    pub frequency: Vec<Policy>,
    /// Whether frequencies above the nominal one are allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boost: Option<bool>,
    /// Driver of the idle states (`intel_idle`, `acpi_idle`, `psci_idle`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_driver: Option<String>,
    /// Governor that chooses the idle state (`menu`, `teo`, `haltpoll`, …).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_governor: Option<String>,
    /// CPUs grouped by idle states and their settings.
    pub idle: Vec<IdleStates>,
}

/// One frequency policy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// CPUs that it governs.
    pub cpus: CpuSet,
    /// Driver, such as `intel_pstate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Governor, such as `performance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Lowest frequency allowed now, kHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_khz: Option<u64>,
    /// Highest frequency allowed now, kHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_khz: Option<u64>,
    /// Lowest frequency of the hardware, kHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_min_khz: Option<u64>,
    /// Highest frequency of the hardware, kHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_max_khz: Option<u64>,
    /// Energy-performance preference, if the hardware chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_preference: Option<String>,
}

impl Policy {
    fn read(root: &FactsRoot, folder: &str, only_cpu: Option<u32>) -> Self {
        let text = |name: &str| root.text(&format!("{folder}/{name}"));
        let number = |name: &str| root.number(&format!("{folder}/{name}"));
        // Separated by spaces; empty while all its CPUs are offline.
        let affected = format!("{folder}/affected_cpus");
        let listed = || CpuSet::parse(&text("affected_cpus").unwrap_or_default().replace(' ', ","));
        let cpus = match root.exists(&affected) {
            true => listed().unwrap_or_default(),
            false => only_cpu.into_iter().collect(),
        };
        Self {
            cpus,
            driver: text("scaling_driver"),
            governor: text("scaling_governor"),
            min_khz: number("scaling_min_freq"),
            max_khz: number("scaling_max_freq"),
            hardware_min_khz: number("cpuinfo_min_freq"),
            hardware_max_khz: number("cpuinfo_max_freq"),
            energy_preference: text("energy_performance_preference"),
        }
    }

    /// Whether the frequency can change while the machine runs.
    #[must_use]
    pub fn scales(&self) -> bool {
        let steady = ["performance", "userspace"];
        let governed = self.governor.as_deref().is_some_and(|governor| !steady.contains(&governor));
        let pinned = self.min_khz.is_some() && self.min_khz == self.max_khz;
        governed && !pinned
    }
}

/// CPUs with the same idle states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdleStates {
    /// The CPUs.
    pub cpus: CpuSet,
    /// The states, from the shallowest to the deepest.
    pub states: Vec<IdleState>,
}

/// One idle state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct IdleState {
    /// Name, such as `C6`.
    pub name: String,
    /// Longest time to leave it, us, according to its driver.
    pub exit_latency_us: u64,
    /// Shortest stay that pays off (target residency), us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residency_us: Option<u64>,
    /// Switched off by the user or by the driver.
    pub disabled: bool,
}

impl Power {
    /// Reads `cpufreq` and `cpuidle` below `/sys/devices/system/cpu`.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let cpus = root.numbered(CPUS, "cpu");
        // Which of the two exists depends on whether the governor may be changed.
        let idle_governor = || {
            ["current_governor", "current_governor_ro"]
                .iter()
                .find_map(|name| root.text(&format!("{CPUS}/cpuidle/{name}")))
        };
        let not = |turbo_off: bool| !turbo_off;
        Self {
            frequency: policies(root, &cpus),
            boost: root.flag(&format!("{CPUS}/cpufreq/boost")).or_else(|| {
                let no_turbo = format!("{CPUS}/intel_pstate/no_turbo");
                root.flag(&no_turbo).map(not)
            }),
            idle_driver: root.text(&format!("{CPUS}/cpuidle/current_driver")),
            idle_governor: idle_governor(),
            idle: idle_states(root, &cpus),
        }
    }
}

fn policies(root: &FactsRoot, cpus: &[u32]) -> Vec<Policy> {
    let folder = format!("{CPUS}/cpufreq");
    let numbers = root.numbered(&folder, "policy");
    if !numbers.is_empty() {
        let policy = |number| Policy::read(root, &format!("{folder}/policy{number}"), None);
        // A policy whose CPUs are all offline governs nothing.
        return numbers.into_iter().map(policy).filter(|policy| !policy.cpus.is_empty()).collect();
    }
    // Before Linux 4.3 each CPU had a separate folder.
    cpus.iter()
        .map(|&cpu| (cpu, format!("{CPUS}/cpu{cpu}/cpufreq")))
        .filter(|(_, folder)| root.exists(folder))
        .map(|(cpu, folder)| Policy::read(root, &folder, Some(cpu)))
        .collect()
}

fn idle_states(root: &FactsRoot, cpus: &[u32]) -> Vec<IdleStates> {
    let mut by_states: BTreeMap<Vec<IdleState>, Vec<u32>> = BTreeMap::new();
    for &cpu in cpus {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        let states: Vec<IdleState> = root
            .numbered(&folder, "state")
            .into_iter()
            .filter_map(|number| {
                let state = format!("{folder}/state{number}");
                Some(IdleState {
                    name: root.text(&format!("{state}/name"))?,
                    exit_latency_us: root.number(&format!("{state}/latency"))?,
                    residency_us: root.number(&format!("{state}/residency")),
                    disabled: root.number(&format!("{state}/disable")).unwrap_or(0) != 0u64,
                })
            })
            .collect();
        if !states.is_empty() {
            by_states.entry(states).or_default().push(cpu);
        }
    }
    let mut groups: Vec<IdleStates> = by_states
        .into_iter()
        .map(|(states, cpus)| IdleStates { cpus: CpuSet::from_iter(cpus), states })
        .collect();
    groups.sort_by_key(|group| group.cpus.iter().next());
    groups
}
