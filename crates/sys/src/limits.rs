//! Resource limits and usage.

use std::io;
use std::time::Duration;

use crate::error::check;

/// Raises the soft limit on open files to the hard limit and returns it.
///
/// # Errors
/// Those of setrlimit(2).
pub fn raise_open_file_limit() -> io::Result<u64> {
    // SAFETY: the structure is a valid place, filled by getrlimit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        limit.rlim_cur = limit.rlim_max;
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
        Ok(limit.rlim_cur)
    }
}

/// Lets the stack of the main thread grow to so many bytes, which it does as it is used.
///
/// # Errors
/// The limit there is, in bytes, and the errors of setrlimit(2): only root may raise a hard
/// limit.
pub fn need_stack(bytes: u64) -> Result<(), (u64, io::Error)> {
    // SAFETY: the structure is a valid place, filled by getrlimit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit)).map_err(|error| (0, error))?;
        let before = limit.rlim_cur;
        if before >= bytes {
            return Ok(());
        }
        limit.rlim_cur = bytes;
        limit.rlim_max = limit.rlim_max.max(bytes);
        let set = check(libc::setrlimit(libc::RLIMIT_STACK, &raw const limit));
        set.map(drop).map_err(|error| (before, error))
    }
}

/// Sets the hard limit on open files, of this process and of those that it starts.
///
/// # Errors
/// Those of setrlimit(2): only root may raise it, to at most `fs.nr_open`.
pub fn set_open_file_limit(hard: u64) -> io::Result<()> {
    // SAFETY: the structure is a valid place, filled by getrlimit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        limit.rlim_max = hard;
        limit.rlim_cur = limit.rlim_cur.min(hard);
        check(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)).map(drop)
    }
}

/// The hard limit on open files.
///
/// # Errors
/// Those of getrlimit(2).
pub fn open_file_limit() -> io::Result<u64> {
    // SAFETY: the structure is a valid place, filled by getrlimit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit))?;
        Ok(limit.rlim_max)
    }
}

/// CPU time of all reaped children and their reaped descendants.
///
/// # Errors
/// Those of getrusage(2).
pub fn reaped_cpu_time() -> io::Result<Duration> {
    cpu_time(libc::RUSAGE_CHILDREN)
}

/// CPU time of all threads of this process.
///
/// # Errors
/// Those of getrusage(2).
pub fn own_cpu_time() -> io::Result<Duration> {
    cpu_time(libc::RUSAGE_SELF)
}

fn cpu_time(of: libc::c_int) -> io::Result<Duration> {
    // SAFETY: the structure is a valid place, filled by getrusage.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        check(libc::getrusage(of, &raw mut usage))?;
        usage
    };
    let time = |value: libc::timeval| {
        Duration::from_secs(u64::try_from(value.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(value.tv_usec).unwrap_or(0))
    };
    Ok(time(usage.ru_utime) + time(usage.ru_stime))
}

/// CPU time of all threads of another process, which must not have been waited for.
///
/// # Errors
/// Those of clock_getcpuclockid(3) and clock_gettime(2): no such process.
pub fn cpu_time_of(pid: u32) -> io::Result<Duration> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: both are valid places that the calls fill.
    unsafe {
        let error = libc::clock_getcpuclockid(pid, &raw mut clock);
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        check(libc::clock_gettime(clock, &raw mut time))?;
    }
    Ok(Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    ))
}

/// Clock ticks per second in `/proc/PID/stat`.
#[must_use]
pub fn clock_ticks_per_second() -> u64 {
    // SAFETY: sysconf takes a plain number.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|&n| n > 0).unwrap_or(100)
}
