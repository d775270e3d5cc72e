//! What a program can leave on a machine: processes, mounts, control groups,
//! folders, journals, changed settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{Place, until};

/// A machine before a test.
pub struct Before {
    things: BTreeSet<String>,
    settings: BTreeMap<PathBuf, String>,
}

impl Before {
    pub fn look() -> Self {
        Self { things: things(), settings: settings() }
    }

    /// Checks that a test has left nothing, within two seconds after its end.
    #[track_caller]
    pub fn still(&self, place: &Place) {
        let left = || -> Vec<String> {
            let new = things().difference(&self.things).cloned().collect::<Vec<_>>();
            [place.living(), new].concat()
        };
        until(Duration::from_secs(2), || left().is_empty());
        assert_eq!(left(), Vec::<String>::new(), "left behind");
        for (path, now) in settings() {
            if let Some(before) = self.settings.get(&path) {
                assert_eq!(&now, before, "{} was changed", path.display());
            }
        }
    }
}

/// Mounts, and everything that has the name of punctual where it may make things.
fn things() -> BTreeSet<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut all: BTreeSet<String> = mounts.lines().map(str::to_owned).collect();
    let folders = ["/tmp", "/var/tmp", "/run", "/run/punctual", "/dev/shm"].map(PathBuf::from);
    for folder in folders.into_iter().chain(groups(Path::new("/sys/fs/cgroup"), 3)) {
        for path in entries(&folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The folders of tests, this one's too, are theirs to remove.
            if (name.contains("punctual") && !name.starts_with("punctual-test"))
                || name.ends_with(".journal")
            {
                all.insert(path.display().to_string());
            }
        }
    }
    all
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// A folder of control groups and those below it.
fn groups(folder: &Path, depth: u32) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    if depth > 0 {
        let below = entries(folder).into_iter().filter(|path| path.is_dir());
        all.extend(below.flat_map(|path| groups(&path, depth - 1)));
    }
    all
}

/// Everything in /proc/sys that bears on scheduling, memory and the network's
/// echoes, and the governors. What the kernel itself changes is left out.
fn settings() -> BTreeMap<PathBuf, String> {
    const VOLATILE: [&str; 2] = ["ns_last_pid", "stat_refresh"];
    let mut all = BTreeMap::new();
    let mut folders: Vec<PathBuf> =
        ["/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/net/ipv4", "/sys/devices/system/cpu"]
            .map(PathBuf::from)
            .into();
    folders.extend(entries(Path::new("/sys/devices/system/cpu")).iter().map(|p| p.join("cpufreq")));
    for path in folders.iter().flat_map(|folder| entries(folder)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let current = name.ends_with("_cur_freq") || VOLATILE.contains(&name.as_str());
        if path.is_file()
            && !current
            && let Ok(text) = fs::read_to_string(&path)
        {
            all.insert(path, text);
        }
    }
    all
}
