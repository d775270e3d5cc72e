//! Ways to wait for a release, all on CLOCK_MONOTONIC.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::clock::{monotonic_ns, timespec};
use crate::error::called;

mod epoll;
mod futex;
mod interval;
mod ring;

pub use epoll::EpollTimer;
pub use futex::FutexTimeout;
pub use interval::{AlarmsBlocked, IntervalTimer};
pub use ring::RingTimeout;

/// Whether a wait lasted until its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The release has come.
    Released,
    /// A signal ended the wait early: check whether to stop, otherwise wait again.
    Interrupted,
}

/// A way to wait for releases. `until` is called with ascending releases, each a whole number
/// of intervals after the first one.
pub trait Wait {
    /// Waits until the instant `release_ns`.
    ///
    /// # Errors
    /// Those of the system call, except EINTR.
    fn until(&mut self, release_ns: u64) -> io::Result<Waited>;
}

/// `clock_nanosleep` on CLOCK_MONOTONIC as a bare instruction: the libcs make it a
/// cancellation point and return the result through errno, which costs the hot loop some forty
/// instructions. Returns 0 or a negated errno.
#[inline(always)]
fn clock_nanosleep(flags: libc::c_int, time: &libc::timespec) -> i64 {
    let result: i64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the system call reads the timespec and writes nothing (no remainder is
    // requested). It clobbers rcx and r11 (x86-64 psABI, A.2.1).
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_clock_nanosleep => result,
            in("rdi") i64::from(libc::CLOCK_MONOTONIC),
            in("rsi") i64::from(flags),
            in("rdx") std::ptr::from_ref(time),
            in("r10") 0_i64,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack, readonly),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; the kernel preserves all registers except x0.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") libc::SYS_clock_nanosleep,
            inlateout("x0") i64::from(libc::CLOCK_MONOTONIC) => result,
            in("x1") i64::from(flags),
            in("x2") std::ptr::from_ref(time),
            in("x3") 0_i64,
            options(nostack, readonly),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        // SAFETY: a valid timespec; no remainder is requested.
        let done = unsafe {
            libc::syscall(
                libc::SYS_clock_nanosleep,
                libc::CLOCK_MONOTONIC,
                flags,
                std::ptr::from_ref(time),
                std::ptr::null_mut::<libc::timespec>(),
            )
        };
        let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL);
        result = if done == 0 { 0 } else { -i64::from(errno()) };
    }
    result
}

#[inline(always)]
fn nanosleep(flags: libc::c_int, ns: u64) -> io::Result<Waited> {
    match clock_nanosleep(flags, &timespec(ns)) {
        0 => Ok(Waited::Released),
        error => interrupted_or_error(from_negated(error)),
    }
}

#[cold]
fn from_negated(error: i64) -> io::Error {
    io::Error::from_raw_os_error(i32::try_from(-error).unwrap_or(libc::EINVAL))
}

#[cold]
fn interrupted_or_error(error: io::Error) -> io::Result<Waited> {
    if error.kind() == io::ErrorKind::Interrupted { Ok(Waited::Interrupted) } else { Err(error) }
}

/// `clock_nanosleep` to an absolute instant: the default.
#[derive(Debug, Default, Clone, Copy)]
pub struct AbsoluteSleep;

impl Wait for AbsoluteSleep {
    #[inline(always)]
    fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
        nanosleep(libc::TIMER_ABSTIME, release_ns)
    }
}

/// `clock_nanosleep` for the remaining time: a common mistake. Its latencies include the time
/// between reading the clock and going to sleep.
#[derive(Debug, Default, Clone, Copy)]
pub struct RelativeSleep;

impl Wait for RelativeSleep {
    #[inline(always)]
    fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
        let now = monotonic_ns();
        if now >= release_ns { Ok(Waited::Released) } else { nanosleep(0, release_ns - now) }
    }
}

fn periodic(first_ns: u64, interval_ns: u64) -> libc::itimerspec {
    libc::itimerspec { it_value: timespec(first_ns), it_interval: timespec(interval_ns) }
}

/// Counts the expirations of a periodic timer. One that was still pending for a release
/// already given up must not count for the next.
#[derive(Debug, Clone, Copy)]
struct Expirations {
    first_ns: u64,
    interval_ns: u64,
    seen: u64,
}

impl Expirations {
    /// Whether the timer has expired for `release_ns`.
    #[inline(always)]
    fn cover(&self, release_ns: u64) -> bool {
        // The n-th expiration (from 1) is at first + (n - 1) x interval.
        self.seen > 0 && self.first_ns + (self.seen - 1) * self.interval_ns >= release_ns
    }
}

/// A periodic timerfd (timerfd_create(2)), whose expiry count also cross-checks missed periods.
#[derive(Debug)]
pub struct TimerFd {
    fd: OwnedFd,
    expirations: Expirations,
}

impl TimerFd {
    /// A timer that expires at `first_ns` and then every `interval_ns`.
    ///
    /// # Errors
    /// Those of timerfd_create(2) or timerfd_settime(2).
    pub fn new(first_ns: u64, interval_ns: u64) -> io::Result<Self> {
        // SAFETY: takes numbers only.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        let fd = called("timerfd_create", fd)?;
        // SAFETY: the descriptor is new and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let times = periodic(first_ns, interval_ns);
        // SAFETY: a valid itimerspec; the old value is not requested.
        let done = unsafe {
            libc::timerfd_settime(
                fd.as_raw_fd(),
                libc::TFD_TIMER_ABSTIME,
                &raw const times,
                std::ptr::null_mut(),
            )
        };
        called("timerfd_settime", done)?;
        Ok(Self { fd, expirations: Expirations { first_ns, interval_ns, seen: 0 } })
    }

    /// Expirations that reads have returned so far.
    #[must_use]
    pub fn expirations(&self) -> u64 {
        self.expirations.seen
    }

    /// Waits until it has expired since the last time, and returns how often it has. A signal ends
    /// the wait early, with 0.
    ///
    /// # Errors
    /// Those of read(2), except EINTR.
    pub fn wait(&mut self) -> io::Result<u64> {
        let before = self.expirations.seen;
        self.read()?;
        Ok(self.expirations.seen - before)
    }
}

impl TimerFd {
    /// Waits until it has expired since the last time, and counts that.
    #[inline(always)]
    fn read(&mut self) -> io::Result<Waited> {
        let mut count = 0_u64;
        // SAFETY: the buffer has the eight bytes that the read asks for.
        let got =
            unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        if got < 0 {
            return interrupted_or_error(io::Error::last_os_error());
        }
        self.expirations.seen += count;
        Ok(Waited::Released)
    }
}

impl Wait for TimerFd {
    #[inline(always)]
    fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
        while !self.expirations.cover(release_ns) {
            if self.read()? == Waited::Interrupted {
                return Ok(Waited::Interrupted);
            }
        }
        Ok(Waited::Released)
    }
}

/// A periodic POSIX timer (timer_create(2)) that signals the thread that created it, which
/// waits with rt_sigtimedwait(2).
#[derive(Debug)]
pub struct PosixTimer {
    id: libc::c_int,
    set: libc::sigset_t,
    expirations: Expirations,
}

impl PosixTimer {
    /// A timer that expires at `first_ns` and then every `interval_ns`. Create it in the
    /// thread that waits, because the signal is blocked in the calling thread.
    ///
    /// # Errors
    /// Those of timer_create(2) or timer_settime(2).
    pub fn new(first_ns: u64, interval_ns: u64) -> io::Result<Self> {
        let signal = libc::SIGRTMIN() + 4;
        let set = crate::signal::set_of(&[signal]);
        // SAFETY: a valid set; the old mask is not requested.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
        // SAFETY: an all-zero sigevent is valid, and the relevant fields are set.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = crate::thread::id();
        let mut id: libc::c_int = 0;
        // SAFETY: a valid event, and an int for the kernel's timer ID. The raw calls, because
        // the libcs disagree about the type of a timer ID.
        let made = unsafe {
            libc::syscall(
                libc::SYS_timer_create,
                libc::CLOCK_MONOTONIC,
                &raw mut event,
                &raw mut id,
            )
        };
        called("timer_create", made)?;
        let timer = Self { id, set, expirations: Expirations { first_ns, interval_ns, seen: 0 } };
        let times = periodic(first_ns, interval_ns);
        // SAFETY: a timer of ours and a valid itimerspec.
        let done = unsafe {
            libc::syscall(
                libc::SYS_timer_settime,
                id,
                libc::TIMER_ABSTIME,
                &raw const times,
                std::ptr::null_mut::<libc::itimerspec>(),
            )
        };
        called("timer_settime", done)?;
        Ok(timer)
    }

    /// The number of the next signal, or a negative value with errno. Without a timeout it
    /// waits. The raw call, because musl's sigwaitinfo repeats the wait after EINTR.
    #[inline(always)]
    fn take(&self, info: *mut libc::siginfo_t, timeout: *const libc::timespec) -> libc::c_long {
        // SAFETY: a valid set of the kernel's 64 signals, a siginfo that may be written to or
        // null, and a valid timeout or null.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigtimedwait,
                &raw const self.set,
                info,
                timeout,
                size_of::<u64>(),
            )
        }
    }
}

/// Index of `si_overrun` in a siginfo, in ints.
const OVERRUN: usize = if cfg!(target_pointer_width = "64") { 5 } else { 4 };

impl Wait for PosixTimer {
    #[inline(always)]
    fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
        while !self.expirations.cover(release_ns) {
            let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
            if self.take(info.as_mut_ptr(), std::ptr::null()) < 0 {
                return interrupted_or_error(io::Error::last_os_error());
            }
            // SAFETY: the kernel has written a siginfo of a POSIX timer: three ints, padding to the union's
            // alignment, si_tid, si_overrun (include/uapi/asm-generic/siginfo.h).
            let overrun = unsafe { info.as_ptr().cast::<libc::c_int>().add(OVERRUN).read() };
            self.expirations.seen += 1 + u64::try_from(overrun).unwrap_or(0);
        }
        Ok(Waited::Released)
    }
}

impl Drop for PosixTimer {
    fn drop(&mut self) {
        // SAFETY: a timer of ours, deleted once.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.id) };
        // Kernels before 6.13 leave a pending signal of a deleted timer queued. The next timer
        // would take it for its first expiration, and every wait would end an interval early.
        let now = timespec(0);
        while self.take(std::ptr::null_mut(), &raw const now) > 0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_for_each_release(mut wait: impl Wait, first: u64, interval: u64) {
        for release in (0..5).map(|k| first + k * interval) {
            assert_eq!(wait.until(release).unwrap(), Waited::Released);
            assert!(monotonic_ns() >= release);
        }
    }

    #[test]
    fn every_way_waits_until_the_release() {
        let interval = 2_000_000;
        let first = || monotonic_ns() + interval;
        waits_for_each_release(AbsoluteSleep, first(), interval);
        waits_for_each_release(RelativeSleep, first(), interval);
        let at = first();
        waits_for_each_release(TimerFd::new(at, interval).unwrap(), at, interval);
        let at = first();
        waits_for_each_release(PosixTimer::new(at, interval).unwrap(), at, interval);
        let at = first();
        waits_for_each_release(EpollTimer::new(at, interval).unwrap(), at, interval);
        waits_for_each_release(FutexTimeout::default(), first(), interval);
        if let Ok(ring) = RingTimeout::new() {
            waits_for_each_release(ring, first(), interval);
        }
    }

    /// What a wait for a release in 20 s returns if signals come.
    fn interrupted<W: Wait>(make: impl FnOnce(u64) -> W + Send + 'static) -> Waited {
        crate::thread::accept_wakes();
        let waits = std::thread::spawn(|| {
            let release = monotonic_ns() + 20_000_000_000;
            make(release).until(release).unwrap()
        });
        let from = std::time::Instant::now();
        while !waits.is_finished() && from.elapsed().as_secs() < 15 {
            crate::thread::wake(&waits);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(waits.is_finished(), "it waits for its release");
        waits.join().unwrap()
    }

    #[test]
    fn a_signal_ends_every_wait() {
        const SECOND: u64 = 1_000_000_000;
        let found = [
            interrupted(|first| PosixTimer::new(first, SECOND).unwrap()),
            interrupted(|first| EpollTimer::new(first, SECOND).unwrap()),
            interrupted(|_| FutexTimeout::default()),
        ];
        assert_eq!(found, [Waited::Interrupted; 3]);
        if RingTimeout::new().is_ok() {
            assert_eq!(interrupted(|_| RingTimeout::new().unwrap()), Waited::Interrupted);
        }
    }

    #[test]
    fn a_ring_waits_on_after_a_signal_and_for_another_release() {
        let Ok(mut ring) = RingTimeout::new() else { return };
        crate::thread::accept_wakes();
        let waits = std::thread::spawn(move || {
            let first = monotonic_ns() + 200_000_000;
            let mut interrupted = 0;
            // The first request stays with the kernel, and ends before the release of the second.
            while ring.until(first + 100_000_000 * u64::from(interrupted > 0)).unwrap()
                == Waited::Interrupted
            {
                interrupted += 1;
            }
            (interrupted, monotonic_ns().saturating_sub(first))
        });
        for _ in 0..20 {
            crate::thread::wake(&waits);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let (interrupted, late_ns) = waits.join().unwrap();
        assert!(interrupted > 0 && late_ns >= 100_000_000, "{interrupted} {late_ns}");
    }

    #[test]
    fn an_expiration_of_a_release_given_up_is_not_taken_for_the_next() {
        let (interval, first) = (20_000_000, monotonic_ns() + 1_000_000);
        for mut wait in [
            Box::new(TimerFd::new(first, interval).unwrap()) as Box<dyn Wait>,
            Box::new(PosixTimer::new(first, interval).unwrap()),
            Box::new(EpollTimer::new(first, interval).unwrap()),
        ] {
            std::thread::sleep(std::time::Duration::from_millis(50));
            let next = monotonic_ns();
            let release = first + (next - first).div_ceil(interval) * interval;
            wait.until(release).unwrap();
            assert!(monotonic_ns() >= release);
        }
    }
}
