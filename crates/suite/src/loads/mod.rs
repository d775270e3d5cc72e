//! The loads: one file each, and one line each in [`LOADS`]. [`crate::harness`] starts,
//! contains and ends them.
//!
//! Architecture invariants: a load counts its work in shared memory and never
//! reports in any other way while it runs; it never ends by itself; it never
//! asks for real-time scheduling; it sends nothing beyond the loopback addresses.

use crate::registry::load::LoadEntry;

mod cmd;
pub(crate) mod compile;
mod copy;
mod disk;
mod faults;
mod flood;
mod hackbench;
mod none;
mod paper;
mod process;
mod tree;

/// Every load, in the order of lists; planned ones come last.
pub static LOADS: &[LoadEntry] = &[
    none::ENTRY,
    hackbench::ENTRY,
    compile::ENTRY,
    copy::ENTRY,
    disk::ENTRY,
    tree::ENTRY,
    flood::ENTRY,
    process::ENTRY,
    faults::ENTRY,
    cmd::ENTRY,
    paper::ENTRY,
    LoadEntry::planned("untar", "creates and deletes a tree of small files"),
    LoadEntry::planned("memory", "maps, touches, protects and unmaps memory"),
    LoadEntry::planned("blockio", "small synchronous reads and writes on a slow path"),
    LoadEntry::planned("tlb", "TLB shootdowns between threads on all CPUs"),
    LoadEntry::planned("cache", "walks working sets larger than each cache level"),
    LoadEntry::planned("membw", "streams through memory on every CPU"),
    LoadEntry::planned("timers", "thousands of high-resolution timers that expire in bursts"),
    LoadEntry::planned("signals", "signal and futex storms between threads"),
    LoadEntry::planned("console", "writes to the kernel log and a console"),
    LoadEntry::planned("syscalls", "wrong but harmless arguments to cheap system calls"),
    LoadEntry::planned("dohell", "disk copy, hackbench, flood and tree together"),
    LoadEntry::planned("osadl", "network, disk and memory in phases, as in OSADL's farm"),
    LoadEntry::planned("dynamic-process", "processes come and go (Mitsubishi's scenario)"),
    LoadEntry::planned("dynamic-memory", "memory comes and goes (Mitsubishi's scenario)"),
    LoadEntry::planned(
        "block-io",
        "programmed input and output on a slow disk (Mitsubishi's scenario)",
    ),
    LoadEntry::planned("stable", "work without change (Mitsubishi's scenario)"),
    LoadEntry::planned(
        "worst",
        "the load that finds the highest latencies fastest on virtual boards",
    ),
];

/// The entry of a load, planned ones included.
#[must_use]
pub fn find(name: &str) -> Option<&'static LoadEntry> {
    LOADS.iter().find(|entry| entry.name == name)
}

/// The loads of this version.
pub fn there() -> impl Iterator<Item = &'static LoadEntry> {
    LOADS.iter().filter(|entry| !entry.is_planned())
}

/// The loads planned for a later version.
pub fn planned() -> impl Iterator<Item = &'static LoadEntry> {
    LOADS.iter().filter(|entry| entry.is_planned())
}
