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
