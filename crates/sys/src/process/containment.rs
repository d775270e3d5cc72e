//! How a supervisor is started, and what contains its processes.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;

/// Descriptor of the shared memory in the supervisor.
pub const SHARED_FD: RawFd = 3;

/// What contains the processes of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// A PID namespace whose init is the supervisor: when the init ends, the kernel kills
    /// everything in it. Needs `CAP_SYS_ADMIN`.
    PidNamespace,
    /// The same inside a user namespace, for unprivileged users.
    UserNamespace,
    /// A cgroup v2 folder without controllers, ended through `cgroup.kill` by punctual, by the
    /// supervisor or by its watcher, a second process that sees punctual end. If all three are
    /// killed with SIGKILL at once, processes of a `cmd:` load survive.
    Cgroup,
    /// The supervisor adopts orphans and kills its descendants when the lifeline closes. If it
    /// is killed with punctual, its watcher kills what has the load's variable in its
    /// environment: processes of a `cmd:` load that have cleared it survive, and all of them if
    /// the watcher is killed too.
    Subreaper,
}

impl Containment {
    /// All of them, the strongest first.
    pub const ALL: [Self; 4] =
        [Self::PidNamespace, Self::UserNamespace, Self::Cgroup, Self::Subreaper];

    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PidNamespace => "pid-namespace",
            Self::UserNamespace => "user-namespace",
            Self::Cgroup => "cgroup",
            Self::Subreaper => "subreaper",
        }
    }

    /// The inverse of [`Containment::name`].
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether the kernel kills the processes when the supervisor ends.
    #[must_use]
    pub fn is_namespace(self) -> bool {
        matches!(self, Self::PidNamespace | Self::UserNamespace)
    }
}

/// What to start, and how.
#[derive(Debug, Clone, Copy)]
pub struct Spawn<'a> {
    /// The program, such as `/proc/self/exe`.
    pub executable: &'a Path,
    /// Its arguments, without the program's name.
    pub args: &'a [OsString],
    /// A variable to add to the environment.
    pub variable: (&'a str, &'a str),
    /// What contains its processes.
    pub containment: Containment,
    /// Folder of the cgroup to join.
    pub cgroup: Option<&'a Path>,
    /// Memory that the supervisor gets as [`SHARED_FD`].
    pub shared: BorrowedFd<'a>,
}
