//! The costs: throughput of the kernel's basic operations. One file per family, one line per
//! metric in [`COSTS`]. [`crate::engine`]'s body of a cost cell times them.

use crate::registry::cost::CostEntry;
use crate::registry::near;

mod apart;
mod area;
mod bandwidth;
mod basics;
mod calls;
mod clock;
mod connect;
mod ctx;
mod disk;
mod disk_files;
#[cfg(test)]
mod documented;
mod exchange;
mod files;
mod futex;
mod hackbench;
mod joined;
mod latency;
mod mapping;
mod process;
mod reread;
mod roundtrip;
mod rpc;
mod signal;
mod stream;
mod syscall;
#[cfg(test)]
mod testing;

/// Every metric.
pub static COSTS: &[CostEntry] = &[
    syscall::GETPPID,
    calls::IO,
    calls::SELECT,
    signal::SIGNAL,
    signal::PROTFAULT,
    process::FORK,
    process::EXEC,
    process::SH,
    process::RATE,
    ctx::CTX,
    futex::FUTEX,
    files::STAT,
    files::OPEN,
    files::CREATE,
    files::DELETE,
    mapping::MMAP,
    mapping::PAGEFAULT,
    roundtrip::PIPE,
    roundtrip::UNIX,
    roundtrip::UDP,
    roundtrip::TCP,
    rpc::RPC,
    connect::CONNECT,
    stream::PIPE,
    stream::UNIX,
    stream::TCP,
    reread::FILE,
    reread::MAPPED,
    bandwidth::COPY,
    bandwidth::MEMORY,
    clock::CLOCK,
    basics::LINE,
    basics::TLB,
    basics::PARALLELISM,
    latency::MEMORY,
    hackbench::HACKBENCH,
    disk::WRITE,
    disk::REWRITE,
    disk::READ,
    disk_files::CREATE,
    disk_files::DELETE,
];

/// The metric of that name.
///
/// # Errors
/// A message that lists the known metrics and suggests the one that may have been meant.
pub fn find(name: &str) -> Result<&'static CostEntry, String> {
    COSTS.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let known: Vec<_> = COSTS.iter().map(|entry| entry.name).collect();
        near::unknown("cost", name, &known)
    })
}

/// An empty folder for a test.
#[cfg(test)]
fn testing_folder(name: &str) -> std::path::PathBuf {
    let temporary = std::env::temp_dir().canonicalize().unwrap();
    let path = temporary.join(format!("punctual-costs-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir(&path).unwrap();
    path
}
