//! Wrong system calls: each one is refused by the kernel, whoever the caller is.

use std::io;

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
enum Arg {
    /// This number.
    Is(i64),
    /// Any number from 0 to this one.
    UpTo(i64),
    /// A negative file descriptor, which no process has. Not AT_FDCWD.
    NoFile,
    /// A process that no system can have: beyond PID_MAX_LIMIT, 4,194,304.
    NoProcess,
    /// An address of the kernel, or one that no page can be at.
    NoMemory,
    /// An address that is not at the start of a page.
    NoPage,
    /// A number far above what is defined for options, operations, clocks, families or signals.
    NoSuch,
}

use Arg::{Is, NoFile, NoMemory, NoPage, NoProcess, NoSuch, UpTo};

/// A call and its arguments, of which the supported machines have 64 bits: one of them at least
/// lets the kernel refuse it before it has any effect.
type Call = (&'static str, i64, &'static [Arg]);

const CALLS: &[Call] = &[
    ("read", libc::SYS_read, &[NoFile, NoMemory, UpTo(4096)]),
    ("write", libc::SYS_write, &[NoFile, NoMemory, UpTo(4096)]),
    ("pread64", libc::SYS_pread64, &[NoFile, NoMemory, UpTo(4096), UpTo(1 << 20)]),
    ("readv", libc::SYS_readv, &[NoFile, NoMemory, UpTo(64)]),
    ("lseek", libc::SYS_lseek, &[NoFile, UpTo(1 << 20), UpTo(2)]),
    ("close", libc::SYS_close, &[NoFile]),
    ("dup", libc::SYS_dup, &[NoFile]),
    ("dup3", libc::SYS_dup3, &[NoFile, NoFile, NoSuch]),
    ("fcntl", libc::SYS_fcntl, &[NoFile, UpTo(1100), UpTo(64)]),
    ("ioctl", libc::SYS_ioctl, &[NoFile, UpTo(0xffff), NoMemory]),
    ("flock", libc::SYS_flock, &[NoFile, UpTo(8)]),
    ("fchdir", libc::SYS_fchdir, &[NoFile]),
    ("getdents64", libc::SYS_getdents64, &[NoFile, NoMemory, UpTo(4096)]),
    ("fsync", libc::SYS_fsync, &[NoFile]),
    ("pipe2", libc::SYS_pipe2, &[NoMemory, NoSuch]),
    ("eventfd2", libc::SYS_eventfd2, &[UpTo(9), NoSuch]),
    ("epoll_create1", libc::SYS_epoll_create1, &[NoSuch]),
    ("epoll_ctl", libc::SYS_epoll_ctl, &[NoFile, UpTo(3), NoFile, NoMemory]),
    ("timerfd_create", libc::SYS_timerfd_create, &[NoSuch, UpTo(0)]),
    ("timerfd_settime", libc::SYS_timerfd_settime, &[NoFile, Is(0), NoMemory, Is(0)]),
    ("inotify_add_watch", libc::SYS_inotify_add_watch, &[NoFile, NoMemory, UpTo(4095)]),
    ("openat", libc::SYS_openat, &[NoFile, NoMemory, Is(0)]),
    ("faccessat", libc::SYS_faccessat, &[NoFile, NoMemory, UpTo(7)]),
    ("readlinkat", libc::SYS_readlinkat, &[NoFile, NoMemory, NoMemory, UpTo(4096)]),
    ("getcwd", libc::SYS_getcwd, &[NoMemory, Is(4096)]),
    ("uname", libc::SYS_uname, &[NoMemory]),
    ("sysinfo", libc::SYS_sysinfo, &[NoMemory]),
    ("times", libc::SYS_times, &[NoMemory]),
    ("getrusage", libc::SYS_getrusage, &[NoSuch, NoMemory]),
    ("prlimit64", libc::SYS_prlimit64, &[NoProcess, UpTo(15), Is(0), NoMemory]),
    ("munmap", libc::SYS_munmap, &[NoPage, UpTo(1 << 20)]),
    ("mprotect", libc::SYS_mprotect, &[NoPage, UpTo(1 << 20), UpTo(7)]),
    ("madvise", libc::SYS_madvise, &[NoPage, UpTo(1 << 20), UpTo(30)]),
    ("mincore", libc::SYS_mincore, &[NoPage, UpTo(1 << 20), NoMemory]),
    ("msync", libc::SYS_msync, &[NoPage, UpTo(1 << 20), UpTo(7)]),
    ("mremap", libc::SYS_mremap, &[NoPage, UpTo(1 << 20), UpTo(1 << 20), UpTo(3)]),
    ("mmap", libc::SYS_mmap, &[Is(0), Is(0), UpTo(7), Is(0x22), NoFile, Is(0)]),
    ("kill", libc::SYS_kill, &[NoProcess, Is(0)]),
    ("tgkill", libc::SYS_tgkill, &[NoProcess, NoProcess, Is(0)]),
    ("rt_sigaction", libc::SYS_rt_sigaction, &[NoSuch, NoMemory, Is(0), Is(8)]),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask, &[NoSuch, NoMemory, Is(0), Is(8)]),
    ("rt_sigtimedwait", libc::SYS_rt_sigtimedwait, &[NoMemory, Is(0), Is(0), Is(8)]),
    ("wait4", libc::SYS_wait4, &[NoProcess, Is(0), Is(1), Is(0)]),
    ("getpgid", libc::SYS_getpgid, &[NoProcess]),
    ("sched_getscheduler", libc::SYS_sched_getscheduler, &[NoProcess]),
    ("sched_getaffinity", libc::SYS_sched_getaffinity, &[NoProcess, Is(128), NoMemory]),
    ("sched_setaffinity", libc::SYS_sched_setaffinity, &[NoProcess, Is(128), NoMemory]),
    ("clock_gettime", libc::SYS_clock_gettime, &[NoSuch, NoMemory]),
    ("clock_nanosleep", libc::SYS_clock_nanosleep, &[NoSuch, Is(0), NoMemory, Is(0)]),
    ("nanosleep", libc::SYS_nanosleep, &[NoMemory, Is(0)]),
    ("timer_delete", libc::SYS_timer_delete, &[NoSuch]),
    ("timer_gettime", libc::SYS_timer_gettime, &[NoSuch, NoMemory]),
    ("futex", libc::SYS_futex, &[NoMemory, NoSuch, UpTo(9), Is(0), NoMemory, UpTo(9)]),
    ("socket", libc::SYS_socket, &[NoSuch, UpTo(5), UpTo(255)]),
    ("getsockopt", libc::SYS_getsockopt, &[NoFile, UpTo(255), UpTo(64), NoMemory, NoMemory]),
    ("setsockopt", libc::SYS_setsockopt, &[NoFile, UpTo(255), UpTo(64), NoMemory, UpTo(64)]),
    ("sendto", libc::SYS_sendto, &[NoFile, NoMemory, UpTo(4096), UpTo(64), Is(0), Is(0)]),
    ("recvfrom", libc::SYS_recvfrom, &[NoFile, NoMemory, UpTo(4096), UpTo(64), Is(0), Is(0)]),
    ("getrandom", libc::SYS_getrandom, &[NoMemory, Is(16), Is(1)]),
    // Unknown to every kernel: answered by the entry code alone.
    ("none", 0xffff, &[UpTo(1 << 20), NoMemory]),
];

/// Makes one of the calls, chosen with its arguments by `random`, a function of pseudo-random
/// numbers.
///
/// # Errors
/// A call that the kernel did not refuse, which is a defect of the list.
pub fn call(mut random: impl FnMut() -> u64) -> io::Result<()> {
    let chosen = usize::try_from(random() % CALLS.len() as u64).unwrap_or(0);
    make(CALLS[chosen], random)
}

fn make((name, number, args): Call, mut random: impl FnMut() -> u64) -> io::Result<()> {
    let mut given = [0; 6];
    for (to, arg) in given.iter_mut().zip(args) {
        *to = arg.value(random());
    }
    let [a, b, c, d, e, f] = given;
    // SAFETY: every call of the list is refused for an argument that says so, before the kernel
    // writes to the caller's memory: no other argument is an address that the caller has mapped.
    if unsafe { libc::syscall(number, a, b, c, d, e, f) } >= 0 {
        return Err(io::Error::other(format!("{name} {given:x?} was not refused")));
    }
    Ok(())
}

impl Arg {
    fn value(self, random: u64) -> i64 {
        // At most 2^40, so nothing below overflows.
        let any = i64::try_from(random >> 24).unwrap_or(0);
        let page = i64::try_from(crate::region::page_size()).unwrap_or(4096);
        match self {
            Is(number) => number,
            UpTo(most) => any % (most + 1),
            NoFile => -1_000 - any % 1_000_000,
            NoProcess => 5_000_000 + any % 1_000_000,
            // The upper end belongs to the kernel, whatever an architecture does with tags.
            NoMemory => -(1 << 45) + any,
            NoPage => (any / page) * page + 1 + any % (page - 1),
            NoSuch => 0x10_0000 + any % 0x10_0000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> impl FnMut() -> u64 {
        let mut state = 1_u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state
        }
    }

    #[test]
    fn every_call_is_refused_for_any_argument() {
        let mut random = numbers();
        for call in CALLS {
            (0..2_000).for_each(|_| make(*call, &mut random).unwrap());
        }
    }

    #[test]
    fn a_call_that_is_not_refused_is_named() {
        let error = make(("getpgid", libc::SYS_getpgid, &[Is(0)]), numbers()).unwrap_err();
        assert_eq!(error.to_string(), "getpgid [0, 0, 0, 0, 0, 0] was not refused");
    }
}
