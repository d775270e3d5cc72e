//! What a supervisor is started as, and what holds its processes together.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;

/// Number under which the supervisor finds the shared memory.
pub const SHARED_FD: RawFd = 3;

/// What holds the processes of a load together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// A PID namespace whose init is the supervisor: the kernel kills all of it
    /// when the init ends. Needs `CAP_SYS_ADMIN`.
    PidNamespace,
    /// The same inside a user namespace, for a user without privileges.
    UserNamespace,
    /// A cgroup v2 folder without controllers, ended through `cgroup.kill`.
    Cgroup,
    /// The supervisor adopts orphans and kills its descendants when the
    /// lifeline closes. If punctual and the supervisor are both killed with
    /// SIGKILL at once, processes of a `cmd:` load survive.
    Subreaper,
}

impl Containment {
    /// All of them, the strongest first.
    pub const ALL: [Self; 4] =
        [Self::PidNamespace, Self::UserNamespace, Self::Cgroup, Self::Subreaper];

    /// Its name in a run's record.
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
    /// The program, as `/proc/self/exe`.
    pub executable: &'a Path,
    /// Its arguments, without the name of the program.
    pub args: &'a [OsString],
    /// Variable added to the environment.
    pub variable: (&'a str, &'a str),
    /// What holds its processes together.
    pub containment: Containment,
    /// Folder of the cgroup to join.
    pub cgroup: Option<&'a Path>,
    /// CPUs it may run on, one bit each, the lowest first; `None` leaves the
    /// calling thread's.
    pub affinity: Option<&'a [u64]>,
    /// Memory that the supervisor finds as [`SHARED_FD`].
    pub shared: BorrowedFd<'a>,
}
