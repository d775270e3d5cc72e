//! Processes as /proc shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use punctual_sys::limits;
use punctual_sys::process::{self, Pid};

use crate::procfs::{Stat, values};

/// Variable in the environment of every process of a load.
pub(super) const MARKER: &str = "PUNCTUAL_LOAD";

/// Every process. One that ends during the reading is left out.
fn all(proc: &Path) -> BTreeMap<Pid, Stat> {
    let Ok(folder) = fs::read_dir(proc) else {
        return BTreeMap::new();
    };
    folder
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let pid: Pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, Stat::read(proc, pid)?))
        })
        .collect()
}

/// The descendants of `root`, without `root`.
fn below(root: Pid, all: &BTreeMap<Pid, Stat>) -> BTreeSet<Pid> {
    let mut found = BTreeSet::from([root]);
    loop {
        let before = found.len();
        for (pid, stat) in all {
            if found.contains(&stat.parent) {
                found.insert(*pid);
            }
        }
        if found.len() == before {
            found.remove(&root);
            return found;
        }
    }
}

/// The caller's PID as /proc numbers it: /proc may be mounted for another namespace.
fn own_pid() -> Option<Pid> {
    fs::read_link("/proc/self").ok()?.to_str()?.parse().ok()
}

/// What processes have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// CPU time.
    pub(crate) cpu: Duration,
    /// Bytes that system calls read and wrote, from whatever kind of file; 0 if the kernel does
    /// not count them (`CONFIG_TASK_IO_ACCOUNTING`).
    pub(crate) io_bytes: u64,
}

/// What all living descendants of the caller and the children they have reaped have used.
pub(crate) fn descendants_usage() -> Usage {
    let Some(own) = own_pid() else {
        return Usage::default();
    };
    let proc = Path::new("/proc");
    let all = all(proc);
    let descendants = below(own, &all);
    let ticks: u64 = descendants.iter().map(|pid| all[pid].cpu_ticks).sum();
    let io = descendants.iter().map(|pid| io_bytes(&proc.join(pid.to_string())));
    Usage {
        cpu: Duration::from_millis(ticks * 1000 / limits::clock_ticks_per_second()),
        io_bytes: io.fold(0, u64::saturating_add),
    }
}

/// I/O of the children that the caller has reaped, bytes: the kernel adds it to that of the
/// process, but not to that of its threads.
pub(crate) fn reaped_io_bytes() -> u64 {
    let own = Path::new("/proc/self");
    // Read first: the threads' own reading of /proc counts too.
    let process = io_bytes(own);
    let threads = fs::read_dir(own.join("task")).into_iter().flatten().flatten();
    threads.fold(process, |rest, thread| rest.saturating_sub(io_bytes(&thread.path())))
}

/// `rchar` and `wchar` of a process or thread (proc_pid_io(5)); 0 if they cannot be read.
fn io_bytes(folder: &Path) -> u64 {
    let text = fs::read_to_string(folder.join("io")).unwrap_or_default();
    let numbers = ["rchar", "wchar"].into_iter().flat_map(|key| values(&text, key));
    numbers.fold(0, |sum: u64, number| sum.saturating_add(number.parse().unwrap_or(0)))
}

/// Kills and reaps all descendants of the caller but `spared`, which has none itself. The
/// caller must be a subreaper and see its own PID namespace in /proc. False if any is still
/// alive after `limit`.
pub(super) fn kill_descendants(spared: Option<Pid>, limit: Duration) -> bool {
    let Some(own) = own_pid() else { return false };
    until(limit, || {
        while let Ok(Some(_)) = process::try_wait_any() {}
        let all = all(Path::new("/proc"));
        let mut left = false;
        for pid in below(own, &all) {
            if !all[&pid].ended && Some(pid) != spared {
                left = true;
                let same = || is_below(own, pid);
                let _ = process::kill_if(pid, same);
            }
        }
        !left
    })
}

/// Walks up the parents, which for one process is cheaper than collecting descendants.
fn is_below(root: Pid, pid: Pid) -> bool {
    let mut at = pid;
    while at > 1 {
        match Stat::read(Path::new("/proc"), at) {
            Some(stat) if stat.parent == root => return true,
            Some(stat) => at = stat.parent,
            None => return false,
        }
    }
    false
}

fn is_marked(pid: Pid, entry: &[u8]) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&b| b == 0).any(|one| one == entry)
}

/// Kills every process that has this value of [`MARKER`] in its environment, whatever its
/// parent is now. False if any is still alive after `limit`.
pub(super) fn kill_marked(value: &str, limit: Duration) -> bool {
    let entry = format!("{MARKER}={value}").into_bytes();
    let own = own_pid();
    until(limit, || {
        let mut left = false;
        for (pid, stat) in all(Path::new("/proc")) {
            if Some(pid) != own && !stat.ended && is_marked(pid, &entry) {
                left = true;
                let _ = process::kill_if(pid, || is_marked(pid, &entry));
            }
        }
        !left
    })
}

/// Repeats `done` every few milliseconds until it is true or `limit` has passed.
pub(super) fn until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if done() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descendants_are_found_at_any_depth() {
        let stat = |parent| Stat { parent, ended: false, cpu_ticks: 0, start_ticks: 0 };
        let parents = [(2, 1), (3, 9), (9, 2), (5, 3), (6, 1), (7, 6)];
        let all = parents.into_iter().map(|(pid, p)| (pid, stat(p))).collect();
        assert_eq!(below(2, &all), BTreeSet::from([3, 5, 9]));
        assert_eq!(below(8, &all), BTreeSet::new());
    }
}
