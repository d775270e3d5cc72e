//! The loads: one file each, and one line each in [`LOADS`]. [`crate::harness`] starts,
//! contains and ends them.
//!
//! Architecture invariants: a load counts its work in shared memory and never
//! reports in any other way while it runs; it never ends by itself; it never
//! asks for real-time scheduling; it sends nothing beyond the loopback addresses.

use crate::registry::load::LoadEntry;

mod blockio;
mod cache;
mod caches;
mod cmd;
pub(crate) mod compile;
mod console;
mod copy;
mod disk;
mod dohell;
mod faults;
mod flood;
mod hackbench;
mod membw;
mod memory;
mod mitsubishi;
mod none;
mod oom;
mod osadl;
mod paper;
mod process;
mod signals;
mod syscalls;
mod timers;
mod tlb;
mod tree;
mod untar;
mod worst;

/// Every load, in the order of lists.
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
    untar::ENTRY,
    memory::ENTRY,
    blockio::ENTRY,
    tlb::ENTRY,
    cache::ENTRY,
    membw::ENTRY,
    timers::ENTRY,
    signals::ENTRY,
    console::ENTRY,
    oom::ENTRY,
    syscalls::ENTRY,
    cmd::ENTRY,
    paper::ENTRY,
    dohell::ENTRY,
    osadl::ENTRY,
    mitsubishi::STABLE,
    mitsubishi::DYNAMIC_PROCESS,
    mitsubishi::DYNAMIC_MEMORY,
    mitsubishi::BLOCK_IO,
    worst::ENTRY,
];

/// The entry of a load.
#[must_use]
pub fn find(name: &str) -> Option<&'static LoadEntry> {
    LOADS.iter().find(|entry| entry.name == name)
}
