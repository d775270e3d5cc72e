//! Starts a supervisor: a copy of this program that contains the processes of one part of a
//! load and ends with them.
//!
//! `child` is the code between clone and exec.

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
    let pid = start(&prepared, &ends, namespaces)?;
    let mut supervisor =
        Supervisor { pid, lifeline: Some(lifeline), status: File::from(status), exit: None };
    drop((lifeline_reader, status_writer, failure_writer));
    report_failure(File::from(failure), spec)?;
    set_nonblocking(supervisor.status.as_fd())?;
    supervisor.try_wait()?;
    Ok(supervisor)
}

/// Stack of the child until its exec; it needs a few hundred bytes, and a path on its way.
const CHILD_STACK: usize = 64 * 1024;

/// Starts the child and returns when it has replaced itself or failed.
///
/// It shares the caller's memory until then (as posix_spawn has it) and is no fork: that would
/// make every page of the caller copied when it is next written, by threads that measure.
fn start(prepared: &Prepared, ends: &Ends, namespaces: libc::c_int) -> io::Result<Pid> {
    extern "C" fn entry(argument: *mut libc::c_void) -> libc::c_int {
        // SAFETY: `start` passes these, and waits in clone while they are used.
        unsafe {
            let (prepared, ends) = *argument.cast::<(&Prepared, &Ends)>();
            child(prepared, ends)
        }
    }
    let mut stack = vec![0_u128; CHILD_STACK / size_of::<u128>()];
    let mut argument = (prepared, ends);
    let flags = namespaces | libc::SIGCHLD | libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: the sets are filled before they are read. The child has a stack of its own, aligned
    // and alive until clone returns, which it does once the child has called exec or _exit; until
    // then it makes only system calls, on memory prepared above. No signal handler of this
    // process can run in it: all signals are blocked until it has reset them.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
        let top = stack.as_mut_ptr_range().end.cast();
        let pid = libc::clone(entry, top, flags, (&raw mut argument).cast());
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        if pid < 0 { Err(in_call("clone", &error)) } else { Ok(pid) }
    }
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
