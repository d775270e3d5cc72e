//! The child of a supervisor's spawn, between clone and exec.
//!
//! Everything that allocates is prepared before: the child shares the memory of the caller, who
//! may have threads, so it may only make system calls until it execs.

use std::ffi::{CString, OsStr, c_char};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr;

use super::containment::{Containment, SHARED_FD, Spawn};
use crate::error::check;

/// The kernel's default timer slack, ns. A thread's default is the slack of the thread that
/// created it, so it must be set explicitly.
const TIMER_SLACK_NS: libc::c_ulong = 50_000;

/// Names of the child's steps that can fail, indexed by the number it reports.
pub(super) const STEPS: [&str; 6] = [
    "exec",
    "user namespace map",
    "joining the cgroup",
    "parent-death signal",
    "ordinary scheduling",
    "standard streams",
];
const EXEC: u8 = 0;
const USER_MAP: u8 = 1;
const CGROUP: u8 = 2;
const DEATH_SIGNAL: u8 = 3;
const SCHEDULING: u8 = 4;
const STREAMS: u8 = 5;

/// Descriptors that the child uses.
pub(super) struct Ends {
    pub(super) lifeline: RawFd,
    pub(super) lifeline_writer: RawFd,
    pub(super) status: RawFd,
    pub(super) shared: RawFd,
    pub(super) failure: RawFd,
}

/// Everything that the child needs, allocated before it is started.
pub(super) struct Prepared {
    executable: CString,
    // The pointers below point into these.
    _args: Vec<CString>,
    _environment: Vec<CString>,
    argv: Vec<*const c_char>,
    envp: Vec<*const c_char>,
    namespace: bool,
    user_map: Option<(CString, CString)>,
    cgroup: Option<CString>,
}

impl Prepared {
    pub(super) fn new(spec: &Spawn<'_>) -> io::Result<Self> {
        let executable = text(spec.executable.as_os_str())?;
        let mut args = vec![executable.clone()];
        for arg in spec.args {
            args.push(text(arg)?);
        }
        let (name, value) = spec.variable;
        let mut environment = vec![text(OsStr::new(&format!("{name}={value}")))?];
        for (key, value) in std::env::vars_os().filter(|(key, _)| key != name) {
            let mut entry = key.into_vec();
            entry.push(b'=');
            entry.extend(value.into_vec());
            environment.push(text(OsStr::from_bytes(&entry))?);
        }
        let user_map =
            (spec.containment == Containment::UserNamespace).then(user_map).transpose()?;
        let cgroup =
            spec.cgroup.map(|folder| text(folder.join("cgroup.procs").as_os_str())).transpose()?;
        Ok(Self {
            argv: pointers(&args),
            envp: pointers(&environment),
            executable,
            _args: args,
            _environment: environment,
            namespace: spec.containment.is_namespace(),
            user_map,
            cgroup,
        })
    }
}

/// Maps for the process's user and group, each to itself.
fn user_map() -> io::Result<(CString, CString)> {
    // SAFETY: both take no arguments and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let line = |id: u32| text(OsStr::new(&format!("{id} {id} 1\n")));
    Ok((line(user)?, line(group)?))
}

fn text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} contains a zero byte", text.display()),
        )
    })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    let ends = std::iter::once(ptr::null());
    strings.iter().map(|s| s.as_ptr()).chain(ends).collect()
}

/// Runs between clone and exec.
///
/// # Safety
/// Call it only in a child with a stack and descriptors of its own, while the caller waits. It makes
/// only system calls: no allocation, no lock.
pub(super) unsafe fn child(prepared: &Prepared, ends: &Ends) -> ! {
    // SAFETY: promised by the caller; every pointer comes from `prepared`, which outlives the
    // child's use of it.
    unsafe {
        // The lifeline cannot close while the child itself has this end open.
        libc::close(ends.lifeline_writer);
        libc::setsid();
        reset_signals();
        if let Some((users, groups)) = &prepared.user_map {
            step(USER_MAP, ends, write_file(c"/proc/self/setgroups", c"deny"));
            step(USER_MAP, ends, write_file(c"/proc/self/uid_map", users));
            step(USER_MAP, ends, write_file(c"/proc/self/gid_map", groups));
        }
        if let Some(cgroup) = &prepared.cgroup {
            step(CGROUP, ends, write_file(cgroup, c"0"));
        }
        if prepared.namespace {
            let set = libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            step(DEATH_SIGNAL, ends, check(set));
        }
        step(SCHEDULING, ends, reset_scheduling());
        // Workers have 1000: the OOM killer should prefer them to supervisors, which can
        // restart them.
        let _ = write_file(c"/proc/self/oom_score_adj", c"999");
        exit_if_orphan(ends.lifeline);
        step(STREAMS, ends, set_streams(ends));
        libc::execve(prepared.executable.as_ptr(), prepared.argv.as_ptr(), prepared.envp.as_ptr());
        step(EXEC, ends, Err(io::Error::last_os_error()));
        libc::_exit(127)
    }
}

/// Reports a failure to the parent and ends the child.
unsafe fn step(number: u8, ends: &Ends, result: io::Result<libc::c_int>) {
    let Err(error) = result else { return };
    let errno = error.raw_os_error().unwrap_or(0).to_ne_bytes();
    let message = [number, errno[0], errno[1], errno[2], errno[3]];
    // SAFETY: the array is valid for its length; _exit ends the child.
    unsafe {
        libc::write(ends.failure, message.as_ptr().cast(), message.len());
        libc::_exit(127)
    }
}

/// Ignored signals survive an exec, and Rust programs ignore SIGPIPE.
unsafe fn reset_signals() {
    // SAFETY: SIG_DFL needs no handler; unknown signals are refused; the set is filled before
    // it is read.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
    }
}

unsafe fn write_file(path: &std::ffi::CStr, content: &std::ffi::CStr) -> io::Result<libc::c_int> {
    // SAFETY: both strings are NUL-terminated; the length is that of the content.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC))?;
        let written = libc::write(fd, content.as_ptr().cast(), content.count_bytes());
        let error = io::Error::last_os_error();
        libc::close(fd);
        if written < 0 { Err(error) } else { Ok(0) }
    }
}

/// Real-time scheduling is not passed on; a nice value above 0 is, as the user wanted it.
unsafe fn reset_scheduling() -> io::Result<libc::c_int> {
    // SAFETY: plain system calls on valid places of the right sizes.
    unsafe {
        // The raw system call returns 20 - nice, so errors stay below 0.
        let nice = 20 - libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0);
        let mut attr: libc::sched_attr = std::mem::zeroed();
        attr.size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(48);
        attr.sched_policy = libc::SCHED_OTHER as u32;
        attr.sched_nice = nice.clamp(0, 19) as i32;
        // The raw call: musl's sched_setscheduler is not implemented.
        if libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) < 0 {
            let error = io::Error::last_os_error();
            let policy = libc::syscall(libc::SYS_sched_getscheduler, 0) & 0xff;
            let real_time = [libc::SCHED_FIFO, libc::SCHED_RR, libc::SCHED_DEADLINE];
            if real_time.iter().any(|&one| i64::from(one) == policy) {
                return Err(error);
            }
        }
        // After the policy, because the slack of a real-time thread is always 0.
        libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
        Ok(0)
    }
}

/// The parent may have ended before the death signal was requested.
unsafe fn exit_if_orphan(lifeline: RawFd) {
    let mut polled = libc::pollfd { fd: lifeline, events: 0, revents: 0 };
    // SAFETY: one valid structure; _exit ends the child.
    unsafe {
        if libc::poll(&raw mut polled, 1, 0) > 0 && polled.revents & libc::POLLHUP != 0 {
            libc::_exit(0);
        }
    }
}

unsafe fn set_streams(ends: &Ends) -> io::Result<libc::c_int> {
    // SAFETY: plain system calls on open descriptors.
    unsafe {
        check(libc::dup2(ends.lifeline, libc::STDIN_FILENO))?;
        check(libc::dup2(ends.status, libc::STDOUT_FILENO))?;
        let null = check(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR))?;
        check(libc::dup2(null, libc::STDERR_FILENO))?;
        if ends.failure == SHARED_FD {
            // Impossible: the shared memory or a pipe was opened before it.
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        if ends.shared == SHARED_FD {
            check(libc::fcntl(SHARED_FD, libc::F_SETFD, 0))?;
        } else {
            check(libc::dup2(ends.shared, SHARED_FD))?;
        }
        // Kernels before 5.11 lack close_range's flag. There the program only inherits what
        // the caller opened without close-on-exec.
        let first = (SHARED_FD + 1) as libc::c_uint;
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    Ok(0)
}
