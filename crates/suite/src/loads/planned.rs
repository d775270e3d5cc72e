//! The loads that later versions bring. A load that arrives leaves this table.

use crate::registry::Planned;

const fn planned(name: &'static str, summary: &'static str) -> Planned {
    Planned { name, summary, device: None }
}

/// Every load that is named already and not there yet.
pub static PLANNED: &[Planned] = &[
    planned("untar", "creates and deletes a tree of small files"),
    planned("memory", "maps, touches, protects and unmaps memory"),
    planned("blockio", "small synchronous reads and writes on a slow path"),
    planned("faults", "page faults on fresh and swapped-out pages"),
    planned("tlb", "TLB shootdowns between threads on all CPUs"),
    planned("cache", "walks working sets larger than each cache level"),
    planned("membw", "streams through memory on every CPU"),
    planned("timers", "thousands of high-resolution timers that expire in bursts"),
    planned("signals", "signal and futex storms between threads"),
    planned("console", "writes to the kernel log and a console"),
    planned("syscalls", "wrong but harmless arguments to cheap system calls"),
    planned("dohell", "disk copy, hackbench, flood and tree together"),
    planned("osadl", "network, disk and memory in phases, as OSADL's farm has them"),
    planned("dynamic-process", "processes come and go (Mitsubishi's scenario)"),
    planned("dynamic-memory", "memory comes and goes (Mitsubishi's scenario)"),
    planned("block-io", "programmed input and output on a slow disk (Mitsubishi's scenario)"),
    planned("stable", "work without change (Mitsubishi's scenario)"),
    planned("worst", "what finds the highest latency in the least time on virtual boards"),
];

/// The planned load of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Planned> {
    PLANNED.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_planned_or_there_and_told_once() {
        for (i, entry) in PLANNED.iter().enumerate() {
            let name = entry.name;
            assert!(crate::loads::find(name).is_none(), "{name} is there: take it out of PLANNED");
            assert!(PLANNED[..i].iter().all(|other| other.name != name), "{name}");
            assert!(!entry.summary.is_empty() && entry.summary.len() <= 80, "{name}");
        }
    }
}
