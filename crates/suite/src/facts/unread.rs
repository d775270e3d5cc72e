//! What /proc and /sys do not tell although every kernel has it there: masked in a container, not
//! mounted, or `subset=pid`. What is not known must not look as if it were fine.

use super::cpu_times::CpuTimes;
use super::root::FactsRoot;

/// A file or folder that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unread {
    /// Where it is.
    pub path: &'static str,
    /// What cannot be known without it, as the subject of "is not known".
    pub what: &'static str,
}

type Check = fn(&FactsRoot) -> bool;

const STAT: &str = "/proc/stat";

/// What every kernel with /proc and /sys has, the most important first; each with the test that it
/// could be read.
const ALL: [(&str, &str, Check); 9] = [
    (STAT, "whether the machine was idle", |root| {
        CpuTimes::open(root).and_then(|times| times.read()).is_ok()
    }),
    ("/proc/loadavg", "how busy it was before the start", |root| has_text(root, "proc/loadavg")),
    ("/sys/devices/system/cpu", "which CPUs are isolated or share a core", |root| {
        has_text(root, "sys/devices/system/cpu/online")
    }),
    ("/proc/cpuinfo", "the model of the CPUs", |root| has_text(root, "proc/cpuinfo")),
    // It may be a blank line.
    ("/proc/cmdline", "how the kernel was booted", |root| {
        root.bytes("proc/cmdline").is_some_and(|bytes| !bytes.is_empty())
    }),
    ("/proc/sys/kernel", "whether real-time threads are throttled", |root| {
        has_text(root, "proc/sys/kernel/sched_rt_runtime_us")
    }),
    ("/proc/meminfo", "whether swap is in use", |root| has_text(root, "proc/meminfo")),
    ("/proc/interrupts", "which interrupts came", |root| has_text(root, "proc/interrupts")),
    ("/sys/devices/system/clocksource", "the clock source", |root| {
        has_text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource")
    }),
];

/// The limits of control groups are below it, in kernels that have them.
const GROUPS: Unread =
    Unread { path: "/sys/fs", what: "whether control groups limit real-time threads" };

/// What could not be read of all that. `configured`: whether the kernel's configuration is known,
/// which tells too whether real-time threads have budgets.
#[must_use]
pub(super) fn unread(root: &FactsRoot, configured: bool) -> Vec<Unread> {
    let lacking = ALL.iter().filter(|(.., could)| !could(root));
    let mut found: Vec<Unread> = lacking.map(|(path, what, _)| Unread { path, what }).collect();
    if !configured && !root.exists("sys/fs") {
        found.push(GROUPS);
    }
    found
}

fn has_text(root: &FactsRoot, path: &str) -> bool {
    root.text(path).is_some()
}

/// One sentence about all of it; `None` if there is nothing.
pub(super) fn sentence(unread: &[Unread]) -> Option<String> {
    let paths: Vec<&str> = unread.iter().map(|one| one.path).collect();
    let whats: Vec<&str> = unread.iter().map(|one| one.what).collect();
    let verb = if whats.len() == 1 { "is" } else { "are" };
    (!unread.is_empty()).then(|| {
        format!(
            "{} cannot be read: {} {verb} not known (masked or not mounted, as in a container; run \
             outside of it, or mount all of /proc and /sys)",
            listed(&paths),
            listed(&whats)
        )
    })
}

/// `a, b and c`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
