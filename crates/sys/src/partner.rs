//! A second process for what takes two: forked from a thread that measures, and gone with it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::affinity::{self, CpuSet};
use crate::error::{called, in_call};
use crate::process::{self, Exit, Pid};

/// Exit status of one whose body panicked; no errno is as large.
const PANICKED: i32 = 255;
/// Most descriptors that one can keep.
const KEPT_MAX: usize = 16;
/// Descriptors up to here are closed one by one where the kernel cannot close a range.
const CLOSED_ONE_BY_ONE: RawFd = 4096;
/// How long one that has closed its ends may take to end.
const ENDING: Duration = Duration::from_millis(500);

/// A process that was forked from this one. Reaped on drop, and killed before that unless it is to
/// outlive this one.
#[derive(Debug)]
pub struct Partner {
    pid: Pid,
    outlives: bool,
}

impl Partner {
    /// Forks a process that runs `body` and ends, bound to `cpus`. All of its descriptors but
    /// `kept`, of which there may be 16, are closed: it sees the end of what it reads when the
    /// parent closes that, and holds nothing else open. It has the signal mask of the calling
    /// thread, a process group of its own in the same session, and is killed when that thread
    /// ends.
    ///
    /// The caller may be one thread of many. Whatever locks the others hold stay locked in the
    /// process, so `body` should only make system calls on what was prepared before. It may
    /// allocate: glibc and musl (since 1.2.2) leave their allocator usable in a fork. What it
    /// must not do is print or read the environment.
    ///
    /// # Errors
    /// Those of fork(2) and sched_setaffinity(2), with their names; `InvalidInput` for too many
    /// descriptors.
    pub fn fork(
        kept: &[BorrowedFd<'_>],
        cpus: &CpuSet,
        body: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Self> {
        let partner = Self::start(kept, false, body)?;
        affinity::set_of(partner.pid, cpus)?;
        Ok(partner)
    }

    /// The same of a process that nothing ends but itself, on the CPUs of the calling thread and
    /// in a session of its own: it must see when it is to end. Dropping waits for that.
    ///
    /// # Errors
    /// Those of [`Partner::fork`].
    pub fn fork_outliving(
        kept: &[BorrowedFd<'_>],
        body: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Self> {
        Self::start(kept, true, body)
    }

    fn start(
        kept: &[BorrowedFd<'_>],
        outlives: bool,
        body: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<Self> {
        let mut keep = [RawFd::MAX; KEPT_MAX];
        if kept.len() > KEPT_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (place, fd) in keep.iter_mut().zip(kept) {
            *place = fd.as_raw_fd();
        }
        keep.sort_unstable();
        let parent = std::process::id();
        // SAFETY: the child runs only the code below, which ends it; what it may do is said above.
        let pid = called("fork", unsafe { libc::fork() })?;
        if pid != 0 {
            return Ok(Self { pid, outlives });
        }
        let status = catch_unwind(AssertUnwindSafe(|| {
            // The parent may have ended before the kernel was told.
            let bound = || {
                process::die_with_parent().is_ok() && std::os::unix::process::parent_id() == parent
            };
            if !outlives && !bound() {
                return PANICKED;
            }
            if outlives {
                process::leave_terminal();
            } else {
                leave_group();
            }
            close_all_but(&keep);
            body().map_or_else(|error| status_of(&error), |()| 0)
        }));
        // SAFETY: ends this process; buffers and destructors belong to the parent.
        unsafe { libc::_exit(status.unwrap_or(PANICKED)) }
    }

    /// Its PID.
    #[must_use]
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// What has ended it, in words, if it has or soon does: what `error`, of a call on what joins
    /// the two, comes from. Otherwise that error itself. Too many open files are `QuotaExceeded`.
    #[must_use]
    pub fn explain(&self, error: io::Error) -> io::Error {
        let from = std::time::Instant::now();
        while from.elapsed() < ENDING {
            match self.ending() {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                Ok(Some(Exit::Code(PANICKED))) => {
                    return io::Error::other("the other process panicked");
                }
                Ok(Some(Exit::Code(errno))) if errno > 0 => {
                    let why = io::Error::from_raw_os_error(errno);
                    return in_call("the other process", &why);
                }
                Ok(Some(exit)) => return io::Error::other(format!("the other process {exit}")),
                Err(_) => break,
            }
        }
        error
    }

    /// How it has ended; it is not reaped, so that its PID stays its own until this is dropped.
    fn ending(&self) -> io::Result<Option<Exit>> {
        let id = libc::id_t::try_from(self.pid).map_err(io::Error::other)?;
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: a zeroed siginfo is valid, and the kernel fills it.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            called("waitid", libc::waitid(libc::P_PID, id, &raw mut info, flags))?;
            if info.si_pid() == 0 {
                return Ok(None);
            }
            let status = info.si_status();
            let exited = info.si_code == libc::CLD_EXITED;
            Ok(Some(if exited { Exit::Code(status) } else { Exit::Signal(status) }))
        }
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        // What cannot be killed or reaped here has been reaped already.
        if !self.outlives {
            let _ = process::kill(self.pid);
        }
        let _ = process::wait(self.pid);
    }
}

/// Keeps the signals of the terminal from this process, as [`process::leave_terminal`] does, but
/// stays in the session: the scheduler gives each session a task group (`sched_autogroup_enabled`),
/// and a switch from one group to another costs more than what is timed here.
fn leave_group() {
    // SAFETY: takes numbers; it fails for leaders of a session, which a fork is not.
    unsafe { libc::setpgid(0, 0) };
}

/// The errno as an exit status, which has 8 bits.
fn status_of(error: &io::Error) -> i32 {
    let errno = error.raw_os_error().unwrap_or(match error.kind() {
        // Errors that name their call have lost it.
        io::ErrorKind::WouldBlock => libc::EAGAIN,
        io::ErrorKind::OutOfMemory => libc::ENOMEM,
        io::ErrorKind::PermissionDenied => libc::EPERM,
        _ => libc::EIO,
    });
    if (1..PANICKED).contains(&errno) { errno } else { libc::EIO }
}

/// Closes every descriptor that is not among these, which are in ascending order.
fn close_all_but(kept: &[RawFd]) {
    let mut first = 0;
    for &fd in kept {
        close_range(first, fd.saturating_sub(1));
        if fd == RawFd::MAX {
            return;
        }
        first = fd + 1;
    }
    close_range(first, RawFd::MAX);
}

fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: nothing in this process uses those descriptors any more.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) == 0 {
            return;
        }
        for fd in first..=last.min(CLOSED_ONE_BY_ONE) {
            libc::close(fd);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    fn echo(mut from: &io::PipeReader, mut to: &io::PipeWriter) -> io::Result<()> {
        let mut byte = [0];
        while from.read(&mut byte)? > 0 {
            to.write_all(&byte)?;
        }
        Ok(())
    }

    #[test]
    fn it_keeps_what_it_is_told_to_and_ends_with_what_it_reads() {
        let ((there_in, mut there), (mut here, here_out)) =
            (io::pipe().unwrap(), io::pipe().unwrap());
        let cpus = affinity::get().unwrap();
        let kept = [there_in.as_fd(), here_out.as_fd()];
        let partner = Partner::fork(&kept, &cpus, || echo(&there_in, &here_out)).unwrap();
        drop((there_in, here_out));
        there.write_all(&[7]).unwrap();
        let mut byte = [0];
        here.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [7]);
        let open = std::fs::read_dir(format!("/proc/{}/fd", partner.pid())).unwrap().count();
        assert_eq!(open, 2, "it holds others open");
        // The fork has no copy of this end, so closing it here is seen there.
        drop(there);
        assert_eq!(here.read(&mut byte).unwrap(), 0);
        let said = partner.explain(io::ErrorKind::BrokenPipe.into()).to_string();
        assert_eq!(said, "the other process exited with status 0");
        let pid = partner.pid();
        drop(partner);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "it was not reaped");
    }

    #[test]
    fn why_it_ended_is_told() {
        let cpus = affinity::get().unwrap();
        let explained = |body: fn() -> io::Result<()>| {
            let partner = Partner::fork(&[], &cpus, body).unwrap();
            partner.explain(io::ErrorKind::BrokenPipe.into()).to_string()
        };
        let full = || Err(io::Error::from_raw_os_error(libc::ENOSPC));
        assert!(explained(full).starts_with("the other process: No space left on device"));
        for errno in [libc::EMFILE, libc::ENFILE] {
            let body = move || Err(io::Error::from_raw_os_error(errno));
            let partner = Partner::fork(&[], &cpus, body).unwrap();
            let kind = partner.explain(io::ErrorKind::BrokenPipe.into()).kind();
            assert_eq!(kind, io::ErrorKind::QuotaExceeded);
        }
        let killed = || {
            // SAFETY: ends this process.
            unsafe { libc::raise(libc::SIGKILL) };
            Ok(())
        };
        assert_eq!(explained(killed), "the other process killed by SIGKILL");
        let waits = || {
            std::thread::sleep(Duration::from_secs(100));
            Ok(())
        };
        assert_eq!(explained(waits), io::Error::from(io::ErrorKind::BrokenPipe).to_string());
    }

    fn group_and_session(pid: Pid) -> (Pid, Pid) {
        // SAFETY: take a number.
        unsafe { (libc::getpgid(pid), libc::getsid(pid)) }
    }

    /// A terminal signals its foreground group; the scheduler groups sessions.
    #[test]
    fn it_leaves_the_group_and_only_one_that_outlives_leaves_the_session() {
        let cpus = affinity::get().unwrap();
        let (_, own) = group_and_session(0);
        for outlives in [false, true] {
            let ((mut ready, tell), (told, leave)) = (io::pipe().unwrap(), io::pipe().unwrap());
            let kept = [tell.as_fd(), told.as_fd()];
            let body = || {
                (&tell).write_all(&[0])?;
                (&told).read(&mut [0]).map(drop)
            };
            let partner = match outlives {
                true => Partner::fork_outliving(&kept, body),
                false => Partner::fork(&kept, &cpus, body),
            };
            let partner = partner.unwrap();
            ready.read_exact(&mut [0]).unwrap();
            let pid = partner.pid();
            let session = if outlives { pid } else { own };
            assert_eq!(group_and_session(pid), (pid, session), "outlives: {outlives}");
            drop((leave, partner));
        }
    }

    #[test]
    fn it_ends_with_the_thread_that_forked_it() {
        let cpus = affinity::get().unwrap();
        let pid = std::thread::spawn(move || {
            let waits = || {
                std::thread::sleep(Duration::from_secs(100));
                Ok(())
            };
            let partner = Partner::fork(&[], &cpus, waits).unwrap();
            let pid = partner.pid();
            // It has asked for the signal once it has a group of its own.
            while group_and_session(pid).0 != pid {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::mem::forget(partner);
            pid
        });
        let pid = pid.join().unwrap();
        assert_eq!(process::wait(pid).unwrap(), Exit::Signal(libc::SIGKILL));
    }
}
