//! The control groups that this process is in (cgroups(7)).

use std::fs;
use std::path::{Path, PathBuf};

use punctual_sys::{error, storage};
use serde::{Deserialize, Serialize};

use crate::procfs::{self, Mount};

/// The versions of control groups, which name their files differently
/// (Documentation/admin-guide/cgroup-v2.rst, and cgroup-v1/memory.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CgroupVersion {
    /// A hierarchy for each controller.
    V1,
    /// One hierarchy.
    V2,
}

/// What `/proc` says of this process's control groups.
#[derive(Debug, Clone)]
pub(crate) struct OwnCgroups {
    cgroup: Vec<u8>,
    mountinfo: Vec<u8>,
}

impl OwnCgroups {
    /// Reads it.
    ///
    /// # Errors
    /// `/proc` cannot be read; the text names the file.
    pub(crate) fn read() -> Result<Self, String> {
        let read =
            |path: &str| fs::read(path).map_err(|error| format!("{path}: {}", error::text(&error)));
        Ok(Self { cgroup: read("/proc/self/cgroup")?, mountinfo: read("/proc/self/mountinfo")? })
    }

    /// What was read before, of any machine.
    pub(crate) fn new(cgroup: Vec<u8>, mountinfo: Vec<u8>) -> Self {
        Self { cgroup, mountinfo }
    }

    /// For each of some controllers, its group and those above it, as far as they are mounted: path
    /// in the hierarchy, folder and version. In a cgroup namespace these end with what is its root.
    pub(crate) fn with_parents<const N: usize>(
        &self,
        controllers: [&str; N],
    ) -> [Vec<(PathBuf, PathBuf, CgroupVersion)>; N] {
        // Thousands of other mounts are nothing unusual on hosts of containers.
        let mounts = Mount::all(&self.mountinfo);
        controllers.map(|controller| self.groups_of(controller, &mounts))
    }

    fn groups_of(
        &self,
        controller: &str,
        mounts: &[Mount],
    ) -> Vec<(PathBuf, PathBuf, CgroupVersion)> {
        let has = |list: &str| list.split(',').any(|name| name == controller);
        let v1 = |mount: &Mount| mount.kind == "cgroup" && has(&mount.options);
        let (mount, version) = match mounts.iter().find(|mount| v1(mount)) {
            Some(mount) => (Some(mount), CgroupVersion::V1),
            None => (mounts.iter().find(|mount| mount.kind == "cgroup2"), CgroupVersion::V2),
        };
        let is_its = |controllers: &str| match version {
            CgroupVersion::V1 => has(controllers),
            CgroupVersion::V2 => controllers.is_empty(),
        };
        let mut groups = procfs::cgroups(&self.cgroup);
        let own = groups.find(|(controllers, _)| is_its(controllers)).map(|(_, path)| path);
        let (Some(mount), Some(own)) = (mount, own) else { return Vec::new() };
        let folders = own.ancestors().map_while(|path| {
            let folder = mount.cgroup(path)?;
            Some((path.to_owned(), folder, version))
        });
        folders.collect()
    }

    /// The folder of its group in version 2.
    pub(crate) fn unified(&self) -> Option<PathBuf> {
        self.folder(|mount| mount.kind == "cgroup2", str::is_empty)
    }

    /// The groups in which one with a limit of memory can be made if this user may, the best first.
    pub(crate) fn with_memory(&self) -> Vec<(PathBuf, CgroupVersion)> {
        let has_memory = |list: &str| list.split(',').any(|name| name == "memory");
        let is_v1 = |mount: &Mount| mount.kind == "cgroup" && has_memory(&mount.options);
        let v1 = self.folder(is_v1, has_memory).map(|path| (path, CgroupVersion::V1));
        // In version 2 a group that contains processes, except the root, has no controllers for
        // those below it: the next one up has.
        let v2 = self.unified().into_iter().flat_map(|own| {
            let chain: Vec<_> = own.ancestors().map(Path::to_owned).collect();
            chain
                .into_iter()
                .filter(|path| gives_memory(path))
                .map(|path| (path, CgroupVersion::V2))
        });
        v1.into_iter().chain(v2).collect()
    }

    /// The least that a limit of memory of its group, or of one above it, leaves, bytes. `None` if
    /// there is no limit.
    pub(crate) fn memory_left(&self) -> Option<u64> {
        let [groups] = self.with_parents(["memory"]);
        let of = |(_, folder, version): (PathBuf, PathBuf, CgroupVersion)| {
            left_in(
                &folder,
                match version {
                    CgroupVersion::V1 => ["memory.limit_in_bytes", "memory.usage_in_bytes"],
                    CgroupVersion::V2 => ["memory.max", "memory.current"],
                },
            )
        };
        groups.into_iter().filter_map(of).min()
    }

    /// Where the group of the controllers is in a mount.
    fn folder(
        &self,
        is_mount: impl Fn(&Mount) -> bool,
        are_controllers: impl Fn(&str) -> bool,
    ) -> Option<PathBuf> {
        let mut groups = procfs::cgroups(&self.cgroup);
        let (_, path) = groups.find(|(controllers, _)| are_controllers(controllers))?;
        let mounts = Mount::all(&self.mountinfo);
        mounts.iter().filter(|mount| is_mount(mount)).find_map(|mount| mount.cgroup(&path))
    }
}

/// Whether a group with a limit of memory can be made.
pub(crate) fn may_limit_memory() -> bool {
    let groups = OwnCgroups::read().map(|own| own.with_memory()).unwrap_or_default();
    groups.iter().any(|(path, _)| storage::may_write(path))
}

/// What the limit of a group leaves of what it takes, in these files; none if it has no limit, which
/// reads `max` or, in version 1, as nearly 2^63.
fn left_in(group: &Path, files: [&str; 2]) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let [limit, used] = files.map(number);
    Some(limit.filter(|limit| *limit < 1 << 62)?.saturating_sub(used.unwrap_or(0)))
}

fn gives_memory(group: &Path) -> bool {
    let controllers = fs::read_to_string(group.join("cgroup.subtree_control"));
    controllers.is_ok_and(|names| names.split_whitespace().any(|name| name == "memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(cgroup: &str, mountinfo: &str) -> OwnCgroups {
        OwnCgroups { cgroup: cgroup.into(), mountinfo: mountinfo.into() }
    }

    #[test]
    fn the_own_cgroup_is_found_wherever_it_is_mounted() {
        let hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        let unified = "25 1 0:22 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
        let container = "25 1 0:22 /docker/a\\040b /sys/fs/cgr\\134oup ro - cgroup2 cgroup rw\n";
        for (cgroup, mounts, expected) in [
            ("9:name=systemd:/x\n0::/\n", hybrid, Some("/sys/fs/cgroup/unified")),
            ("0::/user.slice/a b\n", unified, Some("/sys/fs/cgroup/user.slice/a b")),
            ("0::/docker/a b/c\n", container, Some("/sys/fs/cgr\\oup/c")),
            ("0::/elsewhere\n", container, None),
            ("4:cpu:/x\n", hybrid, None),
            ("0::/\n", "garbage - \n\n-", None),
        ] {
            let found = own(cgroup, mounts).unified();
            assert_eq!(found.as_deref(), expected.map(Path::new), "{cgroup}");
        }
    }

    #[test]
    fn the_least_that_any_group_leaves_counts() {
        let root = std::env::temp_dir().join(format!("punctual-left-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let at = root.display();
        let v2 = own("0::/a/b\n", &format!("25 1 0:22 / {at}/2 rw - cgroup2 cgroup2 rw\n"));
        assert_eq!(v2.memory_left(), None);
        write("2/a/b/memory.max", "max\n");
        write("2/a/b/memory.current", "5000000\n");
        assert_eq!(v2.memory_left(), None);
        write("2/a/memory.max", "9000000\n");
        write("2/a/memory.current", "5000000\n");
        assert_eq!(v2.memory_left(), Some(4_000_000));
        let mounts = format!("33 31 0:30 / {at}/1 rw - cgroup cgroup rw,memory\n");
        let v1 = own("4:memory:/c\n", &mounts);
        write("1/c/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(v1.memory_left(), None);
        write("1/c/memory.limit_in_bytes", "7000000\n");
        write("1/c/memory.usage_in_bytes", "8000000\n");
        assert_eq!(v1.memory_left(), Some(0));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_groups_above_the_own_one_end_where_the_mount_does() {
        let hybrid = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      41 31 0:38 /box /cg rw - cgroup2 cgroup2 rw\n";
        let groups = own("4:cpu,cpuacct:/a/b\n0::/box/x y\n", hybrid);
        let found = |controller: &str| -> Vec<(String, String)> {
            let [all] = groups.with_parents([controller]);
            let all = all.into_iter();
            all.map(|(path, folder, _)| (path.display().to_string(), folder.display().to_string()))
                .collect()
        };
        let pair = |path: &str, folder: &str| (path.to_owned(), folder.to_owned());
        assert_eq!(
            found("cpu"),
            [
                pair("/a/b", "/sys/fs/cgroup/cpu/a/b"),
                pair("/a", "/sys/fs/cgroup/cpu/a"),
                pair("/", "/sys/fs/cgroup/cpu/"),
            ]
        );
        assert_eq!(found("memory"), [pair("/box/x y", "/cg/x y"), pair("/box", "/cg/")]);
        assert_eq!(own("4:cpu:/a\n", "").with_parents(["cpu"]), [[]]);
        assert_eq!(own("", hybrid).with_parents(["cpu"]), [[]]);
    }

    #[test]
    fn the_group_of_version_1_is_found_wherever_it_is_mounted() {
        let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      33 31 0:30 /box /cg rw - cgroup cgroup rw,memory,hugetlb\n";
        for (cgroup, expected) in [
            ("9:name=systemd:/x\n4:hugetlb,memory:/box/a b\n0::/\n", Some("/cg/a b")),
            ("4:memory:/elsewhere\n", None),
            ("4:cpu:/box\n0::/box\n", None),
            ("4:memoryless:/box\n", None),
        ] {
            let found = own(cgroup, mounts).with_memory().pop().map(|(path, _)| path);
            assert_eq!(found.as_deref(), expected.map(Path::new), "{cgroup}");
        }
    }
}
