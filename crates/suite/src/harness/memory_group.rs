//! A control group with a limit of memory, in which the kernel ends what exceeds it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use punctual_sys::error;
use serde::{Deserialize, Serialize};

use super::procs::until;
use crate::cgroups::{CgroupVersion, OwnCgroups};
use crate::knobs::Journal;

/// A killed process leaves its group when its memory has been freed.
const EMPTIES: Duration = Duration::from_secs(2);

/// A control group of this process, below one that has the memory controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryGroup {
    path: PathBuf,
    version: CgroupVersion,
}

impl MemoryGroup {
    /// Makes one with a limit of so many bytes. The journal removes it with all that is in it.
    ///
    /// # Errors
    /// No group with the memory controller, or the group that cannot be made, with why.
    pub(super) fn make(limit: u64, journal: &mut Journal) -> Result<Self, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-load-{}-m{number}", std::process::id());
        let mut refused = "no control group with the memory controller".to_owned();
        for (parent, version) in OwnCgroups::read()?.with_memory() {
            let group = Self { path: parent.join(&name), version };
            match journal.cgroup_dir(&group.path) {
                Ok(()) => match group.limit_to(limit) {
                    Ok(()) => return Ok(group),
                    Err(error) => {
                        group.remove()?;
                        refused = format!("{}: {}", group.path.display(), error::text(&error));
                    }
                },
                Err(error) => refused = error::text(&error),
            }
        }
        Err(refused)
    }

    fn limit_to(&self, bytes: u64) -> io::Result<()> {
        fs::write(self.path.join(limit_of(self.version)), bytes.to_string())?;
        let (file, text) = without_swap(self.version, bytes);
        match self.path.join(file) {
            file if file.exists() => fs::write(file, text),
            _ => Ok(()),
        }
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the calling process into it, and in version 2 out of the group that contains the
    /// load: it is to be one that is killed when its parent ends.
    ///
    /// # Errors
    /// Those of writing to `cgroup.procs`.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // 0 is the process that writes, whatever its number in another PID namespace.
        fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// How many processes the kernel has killed in it since it was made.
    ///
    /// # Errors
    /// The file cannot be read, or the kernel does not count.
    pub(crate) fn kills(&self) -> io::Result<u64> {
        let text = fs::read_to_string(self.path.join(events_of(self.version)))?;
        kills_in(&text).ok_or_else(|| io::Error::other("no line oom_kill (Linux 4.13)"))
    }

    /// Removes it once it is empty.
    ///
    /// # Errors
    /// Why it is still there.
    pub(super) fn remove(&self) -> Result<(), String> {
        let mut last = Ok(());
        until(EMPTIES, || {
            last = match fs::remove_dir(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
            last.is_ok()
        });
        last.map_err(|error| {
            format!("cannot remove {}: {}", self.path.display(), error::text(&error))
        })
    }
}

/// The file of the limit, bytes.
fn limit_of(version: CgroupVersion) -> &'static str {
    match version {
        CgroupVersion::V1 => "memory.limit_in_bytes",
        CgroupVersion::V2 => "memory.max",
    }
}

/// The file that keeps its memory from being swapped out, with what says so if memory is
/// limited to so many bytes. It is there only if the kernel accounts for swap.
fn without_swap(version: CgroupVersion, limit: u64) -> (&'static str, String) {
    match version {
        CgroupVersion::V1 => ("memory.memsw.limit_in_bytes", limit.to_string()),
        CgroupVersion::V2 => ("memory.swap.max", "0".to_owned()),
    }
}

/// The file with the line `oom_kill N` (version 1 since Linux 4.13).
fn events_of(version: CgroupVersion) -> &'static str {
    match version {
        CgroupVersion::V1 => "memory.oom_control",
        CgroupVersion::V2 => "memory.events",
    }
}

fn kills_in(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_those_of_processes() {
        let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n";
        let v2 = "low 0\nhigh 0\nmax 31\noom 5\noom_kill 4\noom_group_kill 1\n";
        assert_eq!([v1, v2, "oom_kill_disable 0\n"].map(kills_in), [Some(7), Some(4), None]);
    }
}
