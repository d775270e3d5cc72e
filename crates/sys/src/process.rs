//! Child processes: supervisors in separate namespaces, forks of single-threaded processes,
//! waiting and killing.

use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::{called, check, in_call};

mod child;
pub mod containment;
pub mod spawn;

/// A PID in the caller's PID namespace.
pub type Pid = libc::pid_t;

/// Exit status of a forked worker whose closure panicked; the same as Rust's.
pub const PANICKED: i32 = 101;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status, 0 to 255.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exited with status {code}"),
            Self::Signal(signal) => {
                let name = match signal {
                    libc::SIGKILL => "SIGKILL",
                    libc::SIGTERM => "SIGTERM",
                    libc::SIGINT => "SIGINT",
                    libc::SIGHUP => "SIGHUP",
                    libc::SIGSEGV => "SIGSEGV",
                    libc::SIGBUS => "SIGBUS",
                    libc::SIGABRT => "SIGABRT",
                    libc::SIGPIPE => "SIGPIPE",
                    libc::SIGXFSZ => "SIGXFSZ",
                    libc::SIGXCPU => "SIGXCPU",
                    _ => return write!(f, "killed by signal {signal}"),
                };
                write!(f, "killed by {name}")
            }
        }
    }
}

impl Exit {
    /// Whether it exited with status 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    fn from_status(status: libc::c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(libc::WTERMSIG(status))
        } else {
            Self::Code(libc::WEXITSTATUS(status))
        }
    }
}

fn waitpid(pid: Pid, flags: libc::c_int) -> io::Result<Option<(Pid, Exit)>> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for an int.
        match check(unsafe { libc::waitpid(pid, &raw mut status, flags) }) {
            Ok(0) => return Ok(None),
            Ok(pid) => return Ok(Some((pid, Exit::from_status(status)))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Effective user ID of this process.
#[must_use]
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid(2) takes no argument and cannot fail.
    unsafe { libc::geteuid() }
}

/// Reaps the child `pid` if it has ended; `None` while it runs.
///
/// # Errors
/// `ECHILD` if there is no such child.
pub fn try_wait(pid: Pid) -> io::Result<Option<Exit>> {
    Ok(waitpid(pid, libc::WNOHANG)?.map(|(_, exit)| exit))
}

/// Reaps any child that has ended; `None` while all of them run.
///
/// # Errors
/// `ECHILD` if the process has no children.
pub fn try_wait_any() -> io::Result<Option<(Pid, Exit)>> {
    waitpid(-1, libc::WNOHANG)
}

/// Waits until some child ends and reaps it.
///
/// # Errors
/// `ECHILD` if the process has no children.
pub fn wait_any() -> io::Result<(Pid, Exit)> {
    waitpid(-1, 0)?.ok_or_else(|| io::Error::from(io::ErrorKind::Interrupted))
}

/// Waits until the child `pid` ends and reaps it.
///
/// # Errors
/// `ECHILD` if there is no such child.
pub fn wait(pid: Pid) -> io::Result<Exit> {
    waitpid(pid, 0)?
        .map(|(_, exit)| exit)
        .ok_or_else(|| io::Error::from(io::ErrorKind::Interrupted))
}

/// Sends SIGKILL to one process.
///
/// # Errors
/// `InvalidInput` for 0 and negative numbers, which name whole groups; otherwise those of kill(2).
pub fn kill(pid: Pid) -> io::Result<()> {
    if pid <= 0 {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: kill takes plain numbers.
    check(unsafe { libc::kill(pid, libc::SIGKILL) }).map(|_| ())
}

/// Sends SIGKILL to `pid` if `is_meant` still agrees once a pidfd refers to the process: a
/// reused PID is not hit. Kernels before 5.3 have no pidfd, so there the check and the kill
/// can race.
///
/// # Errors
/// `ESRCH` if the process has already ended; otherwise those of kill(2).
pub fn kill_if(pid: Pid, is_meant: impl FnOnce() -> bool) -> io::Result<()> {
    if pid <= 0 {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: pidfd_open takes plain numbers; the result is checked.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOSYS) if is_meant() => kill(pid),
            Some(libc::ENOSYS) => Ok(()),
            _ => Err(error),
        };
    }
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the descriptor was just made and nothing else owns it.
    let held = unsafe { OwnedFd::from_raw_fd(fd) };
    if !is_meant() {
        return Ok(());
    }
    // SAFETY: the descriptor is open; no siginfo is passed.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            held.as_raw_fd(),
            libc::SIGKILL,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Sends SIGKILL to every other process of the PID namespace whose init is the caller.
///
/// # Errors
/// `PermissionDenied` if the caller is not process 1 of its namespace, because the same call
/// would then hit every process of the user. Having nothing to kill (`ESRCH`) is not an error.
pub fn kill_rest_of_namespace() -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "not the init of a PID namespace",
        ));
    }
    // SAFETY: kill takes plain numbers; -1 spares the caller and, for an init, stays inside
    // its namespace.
    match check(unsafe { libc::kill(-1, libc::SIGKILL) }) {
        Err(error) if error.raw_os_error() != Some(libc::ESRCH) => Err(error),
        _ => Ok(()),
    }
}

/// Forks a worker that runs `body` and exits with its result, or with [`PANICKED`]. The worker
/// is killed when its parent ends and has no blocked signals. Destructors of the parent's
/// values do not run in it.
///
/// # Errors
/// `InvalidInput` in a process with several threads, because a fork would copy their locks in
/// any state; otherwise those of fork(2), with the name of the step.
pub fn fork_worker(body: impl FnOnce() -> i32) -> io::Result<Pid> {
    let parent = std::process::id();
    fork_watcher(|| {
        if die_with_parent().is_err() {
            return PANICKED;
        }
        // The parent may have ended before the signal was requested.
        if std::os::unix::process::parent_id() != parent {
            return PANICKED;
        }
        body()
    })
}

/// Like [`fork_worker`], but the child lives on when its parent ends.
///
/// # Errors
/// Those of [`fork_worker`].
pub fn fork_watcher(body: impl FnOnce() -> i32) -> io::Result<Pid> {
    refuse_threads()?;
    // SAFETY: the caller is the only thread, so the child's memory and locks are in the state
    // that the caller sees.
    let pid = called("fork", unsafe { libc::fork() })?;
    if pid != 0 {
        return Ok(pid);
    }
    let code = catch_unwind(AssertUnwindSafe(|| {
        if unblock_signals().is_err() {
            return PANICKED;
        }
        body()
    }))
    .unwrap_or(PANICKED);
    // SAFETY: ends this process; buffers and destructors belong to the parent.
    unsafe { libc::_exit(code) }
}

/// Refuses a process with several threads.
fn refuse_threads() -> io::Result<()> {
    if is_single_threaded()? {
        return Ok(());
    }
    let reason = "a process with several threads cannot fork a worker";
    Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
}

/// Whether the calling thread is the only one of its process.
pub(crate) fn is_single_threaded() -> io::Result<bool> {
    // The kernel refuses this otherwise harmless call in a process with threads.
    // SAFETY: unshare takes flags only.
    let threads = match check(unsafe { libc::unshare(libc::CLONE_THREAD) }) {
        Ok(_) => 1,
        Err(error) => match error.raw_os_error() {
            Some(libc::EINVAL) => 2,
            // Containers refuse unshare as such: Docker allows it with CAP_SYS_ADMIN only.
            Some(libc::EPERM | libc::ENOSYS) => std::fs::read_dir("/proc/self/task")
                .map_err(|error| in_call("/proc/self/task", &error))?
                .count(),
            _ => return Err(in_call("unshare", &error)),
        },
    };
    Ok(threads == 1)
}

pub(crate) fn unblock_signals() -> io::Result<()> {
    // SAFETY: a zeroed set is valid memory for sigemptyset, which fills it before sigprocmask
    // reads it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()))?;
    }
    Ok(())
}

/// Requests SIGKILL when the parent *thread* ends. An exec that gains capabilities or a change
/// of user clears this.
///
/// # Errors
/// Those of prctl(2).
pub fn die_with_parent() -> io::Result<()> {
    // SAFETY: prctl with plain numbers.
    let done = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    called("prctl(PR_SET_PDEATHSIG)", done).map(|_| ())
}

/// Ends a command with SIGKILL when the calling thread ends, and keeps the terminal's signals
/// from it, so that this process can pass them on. Signals that are blocked here are unblocked
/// there, which lets it be ended separately.
pub fn bind_to_this(command: &mut std::process::Command) {
    use std::os::unix::process::CommandExt;

    let parent = std::process::id();
    let bind = move || {
        unblock_signals()?;
        die_with_parent()?;
        // This process may have ended before the kernel was told.
        // SAFETY: getppid(2) takes no argument and cannot fail.
        let now = unsafe { libc::getppid() };
        if u32::try_from(now) == Ok(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::Interrupted.into())
        }
    };
    // SAFETY: between fork and exec only sigprocmask(2), prctl(2) and getppid(2) are called,
    // which are async-signal-safe; nothing is allocated.
    unsafe { command.process_group(0).pre_exec(bind) };
}

/// Leaves the terminal's foreground: its signals go to the parent, which tells this process when
/// to end. Only for a process that was forked and not replaced since.
pub fn leave_terminal() {
    // SAFETY: takes no argument; it fails for leaders of a group, which a fork is not.
    unsafe { libc::setsid() };
}

/// Makes this process the parent of every descendant whose parent ends.
///
/// # Errors
/// Those of prctl(2).
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: prctl with plain numbers.
    let done = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    called("prctl(PR_SET_CHILD_SUBREAPER)", done).map(|_| ())
}

/// Blocks SIGCHLD and returns a descriptor that is readable after a child has ended. Drain it
/// with [`crate::fd::drain`], then reap until no ended child is left.
///
/// # Errors
/// Those of signalfd(2).
pub fn child_events() -> io::Result<OwnedFd> {
    // SAFETY: the set is filled before it is read; the new descriptor is
    // checked and owned by nothing else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let fd = called("signalfd", libc::signalfd(-1, &raw const set, flags))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_single_processes_are_killed() {
        for pid in [0, -1, -2] {
            assert_eq!(kill(pid).unwrap_err().kind(), io::ErrorKind::InvalidInput);
            let error = kill_if(pid, || panic!("asked about {pid}")).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
        assert!(kill_rest_of_namespace().is_err());
    }

    #[test]
    fn a_process_with_threads_does_not_fork() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let error = fork_worker(|| 0).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            });
        });
    }

    #[test]
    fn kill_if_spares_what_is_not_meant() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = Pid::try_from(child.id()).unwrap();
        kill_if(pid, || false).unwrap();
        assert_eq!(try_wait(pid).unwrap(), None);
        kill_if(pid, || true).unwrap();
        assert!(!child.wait().unwrap().success());
        assert!(kill_if(pid, || true).is_err());
    }
}
