//! What a program can leave on a machine: processes, mounts, control groups,
//! folders, journals, changed settings.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_harness::{Place, Tmpfs, root, until};

/// What a test may not leave another way than it was: the machine, and the mount namespace
/// of its place ([`Place::apart`]).
pub struct Before {
    mounts: BTreeSet<String>,
    settings: BTreeMap<PathBuf, String>,
}

impl Before {
    pub fn look(place: &Place) -> Self {
        Self { mounts: place.mounts().into_iter().collect(), settings: settings() }
    }

    /// Checks that a test has left nothing, within two seconds after its end.
    #[track_caller]
    pub fn still(&self, place: &Place) {
        until(Duration::from_secs(2), || self.left(place).is_empty());
        assert_eq!(self.left(place), Vec::<String>::new(), "left behind");
        for (path, now) in settings() {
            if let Some(before) = self.settings.get(&path) {
                assert_eq!(&now, before, "{} was changed", path.display());
            }
        }
    }

    fn left(&self, place: &Place) -> Vec<String> {
        let mounts = place.mounts().into_iter().filter(|mount| !self.mounts.contains(mount));
        [place.living(), mounts.collect(), made(place)].concat()
    }
}

/// A check that sees nothing would prove nothing.
#[test]
fn what_is_left_is_seen() {
    let place = Place::apart();
    let before = Before::look(&place);
    let mut child = place.through(&["sh", "-c", "exec sleep 60"], &[]).spawn().unwrap();
    // A neighbour's mount is not seen, one of the place is.
    let neighbour = root().is_ok().then(|| Tmpfs::mount(&place.path.join("neighbour"), "64k"));
    let mounted = place.namespace().map(|namespace| {
        fs::create_dir(place.path.join("own")).unwrap();
        let mut mount = namespace.enter(&place.path);
        mount.args(["mount", "-t", "tmpfs", "-o", "size=64k", "punctual-test", "own"]);
        assert!(mount.status().unwrap().success());
    });
    // While it changes from one program to the next its environment cannot be read.
    let sleeps = |line: &String| line.contains("sleep 60");
    until(Duration::from_secs(5), || place.living().iter().any(sleeps));
    place.run("list plans").with(0);
    let number = place.last_started();
    let folder = PathBuf::from(format!("/var/tmp/punctual-load-{number}-0"));
    fs::create_dir(&folder).unwrap();
    let left = before.left(&place);
    fs::remove_dir(&folder).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    if let Some(namespace) = place.namespace() {
        assert!(namespace.enter(&place.path).args(["umount", "own"]).status().unwrap().success());
    }
    drop(neighbour);
    assert_eq!(left.len(), 2 + usize::from(mounted.is_some()), "too much or too little: {left:?}");
    for part in ["sleep", "punctual-load"].into_iter().chain(mounted.map(|()| "/own")) {
        assert!(left.iter().any(|one| one.contains(part)), "{part}: {left:?}");
    }
    assert!(settings().len() > 50, "{}", settings().len());
    before.still(&place);
}

/// Folders, journals and control groups of the processes of a test.
fn made(place: &Place) -> Vec<String> {
    let folders = ["/tmp", "/var/tmp", "/run", "/run/punctual", "/dev/shm"].map(PathBuf::from);
    let groups = groups(Path::new("/sys/fs/cgroup"), 3);
    let all = folders.into_iter().chain(groups).flat_map(|folder| entries(&folder));
    all.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name.contains("punctual") || name.ends_with(".journal")) && place.has_made(&name)
    })
    .map(|path| path.display().to_string())
    .collect()
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
