//! Clock sources, memory, and the activity before the start.

use std::collections::BTreeMap;

use serde::Serialize;

use super::root::{FactsRoot, marked_word};
use crate::procfs::meminfo_bytes;

/// The kernel's clocks.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Clock {
    /// The clock source in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Available clock sources, the best first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub available: Vec<String>,
    /// Clock event device of the first CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_device: Option<String>,
    /// Resolution of timers, ns: 1 with high-resolution timers, else a tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_resolution_ns: Option<u64>,
}

impl Clock {
    /// Reads `/sys/devices/system/clocksource` and `clockevents`.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let source = "sys/devices/system/clocksource/clocksource0";
        let available = root.text(&format!("{source}/available_clocksource"));
        Self {
            source: root.text(&format!("{source}/current_clocksource")),
            available: available
                .iter()
                .flat_map(|names| names.split_whitespace())
                .map(str::to_owned)
                .collect(),
            event_device: root.text("sys/devices/system/clockevents/clockevent0/current_device"),
            timer_resolution_ns: root.native().timer_resolution_ns,
        }
    }
}

/// Memory before the start, in bytes.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Memory {
    /// Memory that the kernel manages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// Memory available without swapping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_bytes: Option<u64>,
    /// Swap space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_total_bytes: Option<u64>,
    /// Free swap space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap_free_bytes: Option<u64>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparent_huge_pages: Option<String>,
    /// `vm.overcommit_memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overcommit: Option<u32>,
    /// `vm.swappiness`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swappiness: Option<u32>,
    /// Whether NUMA balancing moves pages between nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<u32>,
}

impl Memory {
    /// Reads `/proc/meminfo` and the settings of the memory management.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let meminfo = root.text("proc/meminfo").unwrap_or_default();
        let bytes = |key| meminfo_bytes(&meminfo, key);
        Self {
            total_bytes: bytes("MemTotal"),
            available_bytes: bytes("MemAvailable"),
            swap_total_bytes: bytes("SwapTotal"),
            swap_free_bytes: bytes("SwapFree"),
            transparent_huge_pages: root
                .text("sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|text| marked_word(&text).map(str::to_owned)),
            overcommit: root.number("proc/sys/vm/overcommit_memory"),
            swappiness: root.number("proc/sys/vm/swappiness"),
            numa_balancing: root.number("proc/sys/kernel/numa_balancing"),
        }
    }
}

/// Activity of the machine before the start.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Activity {
    /// Average number of runnable and blocked tasks over 1, 5 and 15 minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_average: Option<[f64; 3]>,
    /// Time since boot, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uptime_s: Option<f64>,
    /// Bits of `kernel.tainted`; see the kernel's tainted-kernels document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tainted: Option<u64>,
    /// Active tracer; `nop` for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracer: Option<String>,
    /// Whether the trace buffer is being written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracing_on: Option<bool>,
    /// Active trace events: `0` none, `1` all, `X` some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_events: Option<String>,
    /// Watchdogs, which interrupt every CPU, by their `kernel.` setting.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub watchdogs: BTreeMap<String, String>,
    /// Default CPUs of interrupts, as a mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_irq_affinity: Option<String>,
}

impl Activity {
    /// Where tracefs is, below the root folder.
    #[must_use]
    pub fn tracing_folder(root: &FactsRoot) -> Option<&'static str> {
        // The second one exists before Linux 4.1 and if only debugfs is mounted.
        ["sys/kernel/tracing", "sys/kernel/debug/tracing"]
            .into_iter()
            .find(|folder| root.exists(&format!("{folder}/current_tracer")))
    }

    /// Reads `/proc` and tracefs.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let tracing = Self::tracing_folder(root);
        let trace = |name: &str| root.text(&format!("{}/{name}", tracing?));
        let watchdogs = ["nmi_watchdog", "soft_watchdog", "watchdog_cpumask"];
        Self {
            load_average: load_average(&root.text("proc/loadavg").unwrap_or_default()),
            uptime_s: root
                .text("proc/uptime")
                .and_then(|text| text.split_whitespace().next()?.parse().ok()),
            tainted: root.number("proc/sys/kernel/tainted"),
            tracer: trace("current_tracer"),
            tracing_on: trace("tracing_on").map(|on| on == "1"),
            trace_events: trace("events/enable"),
            watchdogs: watchdogs
                .into_iter()
                .filter_map(|name| {
                    let value = root.text(&format!("proc/sys/kernel/{name}"))?;
                    Some((name.to_owned(), value))
                })
                .collect(),
            default_irq_affinity: root.text("proc/irq/default_smp_affinity"),
        }
    }

    /// Whether anything is being traced.
    #[must_use]
    pub fn traces(&self) -> bool {
        let tracer = self.tracer.as_deref().is_some_and(|name| name != "nop");
        let events = self.trace_events.as_deref().is_some_and(|on| on != "0");
        self.tracing_on == Some(true) && (tracer || events)
    }
}

fn load_average(text: &str) -> Option<[f64; 3]> {
    let mut words = text.split_whitespace().map(str::parse);
    let mut next = || words.next()?.ok().filter(|average: &f64| average.is_finite());
    Some([next()?, next()?, next()?])
}
