//! Starts a supervisor: a copy of this program that contains the processes of one part of a
//! load and ends with them.
//!
//! `child` is the code between fork and exec.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use super::child::{Ends, Prepared, STEPS, child};
use super::containment::{Containment, SHARED_FD, Spawn};
use super::{Exit, Pid, kill, try_wait, wait};
use crate::error::{check, in_call};
use crate::fd::set_nonblocking;

/// A running supervisor. Killed and reaped on drop.
#[derive(Debug)]
pub struct Supervisor {
    pid: Pid,
    lifeline: Option<OwnedFd>,
    status: File,
    exit: Option<Exit>,
}

impl Supervisor {
    /// Its PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Closes the lifeline: the supervisor then ends its processes and itself.
    pub fn close_lifeline(&mut self) {
        self.lifeline = None;
    }

    /// Reads what it has written since the last call: `WouldBlock` if there is nothing, 0
    /// bytes once it has ended.
    ///
    /// # Errors
    /// Those of read(2).
    pub fn read_status(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.status.read(buffer)
    }

    /// How it ended, once it has; reaps it.
    ///
    /// # Errors
    /// Those of waitpid(2).
    pub fn try_wait(&mut self) -> io::Result<Option<Exit>> {
        if self.exit.is_none() {
            self.exit = try_wait(self.pid)?;
        }
        Ok(self.exit)
    }

    /// Sends SIGKILL, unless it has been reaped.
    ///
    /// # Errors
    /// Those of kill(2).
    pub fn kill(&mut self) -> io::Result<()> {
        if self.exit.is_some() {
            return Ok(());
        }
        kill(self.pid)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // What cannot be killed or reaped here has been reaped already.
        if self.exit.is_none() && self.kill().is_ok() {
            let _ = wait(self.pid);
        }
    }
}

/// Starts a supervisor. Its standard input is the lifeline, standard output the status pipe,
/// standard error `/dev/null`, and [`SHARED_FD`] the shared memory. It has a new session, no
/// blocked or ignored signals, `SCHED_OTHER` at nice 0 or above, 50 us timer slack, and
/// `oom_score_adj` 999.
///
/// Call it from the main thread: with a PID namespace the supervisor is killed when the
/// *thread* that started it ends, not when the process does.
///
/// # Errors
/// `InvalidInput` on any thread but the main one; otherwise the error of the step that failed,
/// with its name. `EPERM`, `ENOSPC` and `EINVAL` of clone mean that this containment is not
/// available here.
pub fn spawn(spec: &Spawn<'_>) -> io::Result<Supervisor> {
    // SAFETY: gettid has no arguments.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    if spec.containment.is_namespace() && thread != i64::from(std::process::id()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a supervisor must be started from the main thread",
        ));
    }
    let (lifeline_reader, lifeline) = pipe()?;
    let (status, status_writer) = pipe()?;
    let (failure, failure_writer) = pipe()?;
    let prepared = Prepared::new(spec)?;
    let ends = Ends {
        lifeline: lifeline_reader.as_raw_fd(),
        lifeline_writer: lifeline.as_raw_fd(),
        status: status_writer.as_raw_fd(),
        shared: spec.shared.as_raw_fd(),
        failure: failure_writer.as_raw_fd(),
    };
    let namespaces = match spec.containment {
        Containment::PidNamespace => libc::CLONE_NEWPID,
        Containment::UserNamespace => libc::CLONE_NEWUSER | libc::CLONE_NEWPID,
        Containment::Cgroup | Containment::Subreaper => 0,
    };
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    // SAFETY: without a stack and CLONE_VM this is a fork; the child makes only system calls,
    // on memory prepared above, and never returns.
    let pid = unsafe {
        let pid = libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize);
        if pid == 0 {
            child(&prepared, &ends);
        }
        pid
    };
    if pid < 0 {
        return Err(in_call("clone", &io::Error::last_os_error()));
    }
    let mut supervisor = Supervisor {
        pid: Pid::try_from(pid).map_err(io::Error::other)?,
        lifeline: Some(lifeline),
        status: File::from(status),
        exit: None,
    };
    drop((lifeline_reader, status_writer, failure_writer));
    report_failure(File::from(failure), spec)?;
    set_nonblocking(supervisor.status.as_fd())?;
    supervisor.try_wait()?;
    Ok(supervisor)
}

/// For a supervisor: a copy of the shared memory's descriptor. Programs that it starts no
/// longer inherit the original.
///
/// # Errors
/// `EBADF` if the process was not started by [`spawn`].
pub fn inherited_shared() -> io::Result<OwnedFd> {
    // SAFETY: fcntl with plain numbers; the copy is checked and owned by nothing else.
    unsafe {
        let copy = check(libc::fcntl(SHARED_FD, libc::F_DUPFD_CLOEXEC, SHARED_FD + 1))?;
        check(libc::fcntl(SHARED_FD, libc::F_SETFD, libc::FD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(copy))
    }
}

/// Waits for the exec, which closes the pipe, or for a step to fail.
fn report_failure(mut failure: File, spec: &Spawn<'_>) -> io::Result<()> {
    let mut message = Vec::new();
    failure.read_to_end(&mut message)?;
    let Some((&step, errno)) = message.split_first() else {
        return Ok(());
    };
    let errno = errno.try_into().map_or(0, i32::from_ne_bytes);
    let error = io::Error::from_raw_os_error(errno);
    let step = STEPS.get(usize::from(step)).copied().unwrap_or("start");
    Err(io::Error::new(error.kind(), format!("{step} of {}: {error}", spec.executable.display())))
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe().map_err(|error| in_call("pipe", &error))?;
    Ok((reader.into(), writer.into()))
}
