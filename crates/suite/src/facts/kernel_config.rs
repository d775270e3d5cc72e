//! The kernel's configuration.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use punctual_core::hash::sha256;
use punctual_core::kconfig;
use serde::Serialize;

use super::root::FactsRoot;

/// A configuration has about 300 kB; anything that unpacks to more is not one.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// The options that affect latency; the hash covers the rest.
const OPTIONS: [&str; 21] = [
    "CPU_FREQ",
    "CPU_IDLE",
    "CPU_ISOLATION",
    "FAIR_GROUP_SCHED",
    "FUNCTION_TRACER",
    "HIGH_RES_TIMERS",
    "HOTPLUG_CPU",
    "HZ",
    "IRQ_FORCED_THREADING",
    "IRQ_TIME_ACCOUNTING",
    "NO_HZ",
    "NO_HZ_FULL",
    "NO_HZ_IDLE",
    "HZ_PERIODIC",
    "NUMA_BALANCING",
    "RCU_BOOST",
    "RCU_NOCB_CPU",
    "RT_GROUP_SCHED",
    "SCHED_AUTOGROUP",
    "SMP",
    "TRANSPARENT_HUGEPAGE",
];

/// Debugging options that slow the kernel down far beyond production use: they track locks,
/// check memory or time preemption.
pub(super) const DEBUG_OPTIONS: [&str; 16] = [
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_KMEMLEAK",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "DEBUG_PREEMPT",
    "DEBUG_RT_MUTEXES",
    "DEBUG_SPINLOCK",
    "IRQSOFF_TRACER",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "LOCK_STAT",
    "PREEMPT_TRACER",
    "PROVE_LOCKING",
    "SLUB_DEBUG_ON",
];

/// What the kernel was built with.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KernelConfig {
    /// The file it was read from.
    pub source: String,
    /// SHA-256 of its text, hexadecimal.
    pub sha256: String,
    /// The options that affect latency and are set, without `CONFIG_`.
    pub options: BTreeMap<String, String>,
}

impl KernelConfig {
    /// Reads the first readable one of `/proc/config.gz`, `/boot/config-<release>` and
    /// `/lib/modules/<release>/config`; `None` if there is none.
    #[must_use]
    pub fn read(root: &FactsRoot, release: &str) -> Option<Self> {
        let running = || {
            let source = "/proc/config.gz";
            Some((source.to_owned(), unpacked(&root.bytes(source)?)?))
        };
        // A release becomes part of a path, so it must be a single file name.
        let named = !release.is_empty() && !release.contains('/');
        let installed = || {
            [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]
                .into_iter()
                .filter(|_| named)
                .find_map(|source| Some((source.clone(), root.bytes(&source)?)))
        };
        let (source, text) = running().or_else(installed)?;
        let sha256 = sha256(&text);
        // What is valid is checked many bytes at a time, and made valid one by one.
        let text = String::from_utf8(text)
            .unwrap_or_else(|other| String::from_utf8_lossy(other.as_bytes()).into_owned());
        Some(Self { source, sha256, options: kept(&text) })
    }

    /// Whether an option is built in.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.options.get(option).is_some_and(|value| value == "y")
    }
}

fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut reader = GzDecoder::new(bytes).take(MAX_CONFIG_BYTES);
    reader.read_to_end(&mut text).ok()?;
    Some(text)
}

/// The options that affect latency.
fn kept(text: &str) -> BTreeMap<String, String> {
    let bears = |name: &str| {
        name.starts_with("PREEMPT")
            || name.starts_with("CPU_FREQ_DEFAULT_GOV_")
            || OPTIONS.contains(&name)
            || DEBUG_OPTIONS.contains(&name)
    };
    kconfig::options(text)
        .filter(|(name, _)| bears(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_bears_on_latency() {
        let text = "# CONFIG_PREEMPT_RT is not set\nCONFIG_PREEMPT=y\nCONFIG_HZ=250\n\
                    CONFIG_USB=y\nCONFIG_HZ_250=y\nCONFIG_PROVE_LOCKING=y\nCONFIG_\nCONFIG_HZ\n";
        let kept = kept(text);
        let names: Vec<_> = kept.keys().map(String::as_str).collect();
        assert_eq!(names, ["HZ", "PREEMPT", "PROVE_LOCKING"]);
        assert_eq!(kept["HZ"], "250");
    }

    #[test]
    fn damaged_archives_are_no_configuration() {
        assert_eq!(unpacked(b"CONFIG_HZ=250"), None);
        assert_eq!(unpacked(&[0x1f, 0x8b, 8, 0]), None);
    }
}
