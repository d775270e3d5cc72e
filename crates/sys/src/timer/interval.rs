//! The interval timer of a process: setitimer(2), whose signal goes to the process.

use std::io;
use std::mem::MaybeUninit;

use super::{Wait, Waited, interrupted_or_error};
use crate::clock::{monotonic_ns, timespec};
use crate::error::called;
use crate::process;
use crate::signal::set_of;

/// Keeps SIGALRM from all threads but those that wait for it; by default it ends the process.
/// Dropping it stops the timer and restores the mask of the thread.
#[derive(Debug)]
pub struct AlarmsBlocked {
    before: libc::sigset_t,
}

impl AlarmsBlocked {
    /// Blocks it in the calling thread, from which threads that are started later inherit that.
    ///
    /// # Errors
    /// `InvalidInput` if there are other threads, which would get the signal.
    pub fn new() -> io::Result<Self> {
        if !process::is_single_threaded()? {
            let reason = "a process with several threads cannot tell which of them SIGALRM is for";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let (set, mut before) = (set_of(&[libc::SIGALRM]), MaybeUninit::uninit());
        // SAFETY: a valid set; the kernel fills the other one.
        let before = unsafe {
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) {
                0 => before.assume_init(),
                error => return Err(io::Error::from_raw_os_error(error)),
            }
        };
        Ok(Self { before })
    }
}

impl Drop for AlarmsBlocked {
    fn drop(&mut self) {
        // A thread that is stuck may have left it on.
        stop();
        let before = &raw const self.before;
        // SAFETY: a mask that the kernel gave.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
    }
}

/// A periodic timer of the process (ITIMER_REAL, on CLOCK_MONOTONIC), of which there is one. It
/// signals the process; the thread waits with rt_sigtimedwait(2).
///
/// The timer is set relative to now, in whole microseconds: all its expirations are later than
/// asked for by the same time, up to 1 us and that of the call. The kernel starts the next period
/// when the signal is taken, and says nothing of those that have passed meanwhile.
#[derive(Debug)]
pub struct IntervalTimer(());

impl IntervalTimer {
    /// A timer that expires at `first_ns` and then every `interval_ns`, a whole number of
    /// microseconds. Have [`AlarmsBlocked`] before the thread is started.
    ///
    /// # Errors
    /// Those of setitimer(2).
    pub fn new(first_ns: u64, interval_ns: u64) -> io::Result<Self> {
        // Zero would stop it.
        let first_us = first_ns.saturating_sub(monotonic_ns()).div_ceil(1_000).max(1);
        set(first_us, interval_ns / 1_000)?;
        Ok(Self(()))
    }
}

impl Wait for IntervalTimer {
    #[inline(always)]
    fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
        loop {
            if take(std::ptr::null()) < 0 {
                return interrupted_or_error(io::Error::last_os_error());
            }
            // It may have been pending, for a release that was given up.
            if monotonic_ns() >= release_ns {
                return Ok(Waited::Released);
            }
        }
    }
}

impl Drop for IntervalTimer {
    fn drop(&mut self) {
        stop();
    }
}

fn set(first_us: u64, interval_us: u64) -> io::Result<()> {
    let time = |us: u64| {
        let time = timespec(us.saturating_mul(1_000));
        #[allow(clippy::useless_conversion, reason = "the libcs differ about its type")]
        let tv_usec = (time.tv_nsec / 1_000).into();
        libc::timeval { tv_sec: time.tv_sec, tv_usec }
    };
    let times = libc::itimerval { it_interval: time(interval_us), it_value: time(first_us) };
    // SAFETY: a valid itimerval; the old one is not requested.
    let done =
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const times, std::ptr::null_mut()) };
    called("setitimer", done).map(drop)
}

/// Stops the timer, and takes what it has signalled.
fn stop() {
    let _ = set(0, 0);
    let now = timespec(0);
    while take(&raw const now) > 0 {}
}

/// Waits for SIGALRM, without a timeout for ever; a negative value with errno otherwise. The raw
/// call, because musl's repeats the wait after EINTR.
#[inline(always)]
fn take(timeout: *const libc::timespec) -> libc::c_long {
    let set = set_of(&[libc::SIGALRM]);
    // SAFETY: a valid set of the kernel's 64 signals, no details, a valid timeout or none.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigtimedwait,
            &raw const set,
            std::ptr::null_mut::<libc::siginfo_t>(),
            timeout,
            size_of::<u64>(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    const CHILD: &str = "PUNCTUAL_TEST_ALARMS";

    /// Not a test of its own: what the test below runs in a process all of whose threads block the
    /// signal, which those of this one do not.
    #[test]
    fn child() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        let (interval, first) = (5_000_000, monotonic_ns() + 5_000_000);
        let mut timer = IntervalTimer::new(first, interval).unwrap();
        for release in (0..5).map(|k| first + k * interval) {
            assert_eq!(timer.until(release).unwrap(), Waited::Released);
            assert!(monotonic_ns() >= release);
        }
        // The signal of a release that is given up is not taken for the next one.
        std::thread::sleep(std::time::Duration::from_millis(23));
        let release = first + (monotonic_ns() - first).div_ceil(interval) * interval;
        timer.until(release).unwrap();
        assert!(monotonic_ns() >= release);
        crate::thread::accept_wakes();
        let waits = std::thread::spawn(move || timer.until(u64::MAX).unwrap());
        while !waits.is_finished() {
            crate::thread::wake(&waits);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(waits.join().unwrap(), Waited::Interrupted);
        // The timer is gone, and its signal with it.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let now = timespec(0);
        assert!(take(&raw const now) < 0);
        assert!(AlarmsBlocked::new().is_err(), "there are several threads");
    }

    #[test]
    fn an_interval_timer_waits_until_each_release() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "timer::interval::tests::child", "--nocapture"]).env(CHILD, "1");
        // SAFETY: between fork and exec, a call that is safe in signal handlers.
        let child = unsafe {
            child.pre_exec(|| {
                let set = set_of(&[libc::SIGALRM]);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
                Ok(())
            })
        };
        let ended = child.output().unwrap();
        let told = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && told.contains("1 passed"), "{ended:?}");
    }
}
