//! Whether CLOCK_REALTIME was set, and whether the machine slept.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::clock::Clock;
use crate::error::check;

/// A timer that never expires and that the kernel cancels when CLOCK_REALTIME is set or stepped
/// (`TFD_TIMER_CANCEL_ON_SET` of timerfd_settime(2)). Slewing does not cancel it.
#[derive(Debug)]
pub struct StepAlarm(OwnedFd);

impl StepAlarm {
    /// Starts to listen.
    ///
    /// # Errors
    /// Those of timerfd_create(2) and timerfd_settime(2).
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: plain numbers.
        let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_REALTIME, flags) })?;
        // SAFETY: the descriptor is new and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let far = libc::timespec { tv_sec: i64::MAX, tv_nsec: 0 };
        let timer = libc::itimerspec { it_interval: none, it_value: far };
        let flags = libc::TFD_TIMER_ABSTIME | libc::TFD_TIMER_CANCEL_ON_SET;
        // SAFETY: an open timerfd and a valid time; nothing is asked back.
        check(unsafe {
            libc::timerfd_settime(fd.as_raw_fd(), flags, &raw const timer, std::ptr::null_mut())
        })?;
        Ok(Self(fd))
    }

    /// Whether the clock was set since the last call.
    #[must_use]
    pub fn rang(&self) -> bool {
        let mut count = 0_u64;
        // SAFETY: eight writable bytes.
        let got =
            unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        got < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECANCELED)
    }
}

/// How far clocks are apart, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    /// `CLOCK_BOOTTIME - CLOCK_MONOTONIC`: the time that the machine slept since it was booted.
    pub asleep: i64,
    /// `CLOCK_REALTIME - CLOCK_BOOTTIME`: changes only if the clock is set or slewed.
    pub realtime: i64,
}

impl Offsets {
    /// Reads the clocks; of a few readings in a row, the one that took least.
    #[must_use]
    pub fn read() -> Self {
        const TRIES: usize = 3;
        let once = || {
            let before = Clock::Monotonic.now_ns();
            let (boottime, realtime) = (Clock::Boottime.now_ns(), Clock::Realtime.now_ns());
            let after = Clock::Monotonic.now_ns();
            let took = after.saturating_sub(before);
            let middle = before + took / 2;
            let offsets = Self {
                asleep: boottime.wrapping_sub(middle).cast_signed(),
                realtime: realtime.wrapping_sub(boottime).cast_signed(),
            };
            (took, offsets)
        };
        let first = once();
        (1..TRIES)
            .map(|_| once())
            .fold(first, |best, next| if next.0 < best.0 { next } else { best })
            .1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_nobody_sets_stay_apart() {
        let alarm = StepAlarm::new().unwrap();
        let before = Offsets::read();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let after = Offsets::read();
        if alarm.rang() {
            return; // The machine's own time service has set the clock.
        }
        assert!((after.asleep - before.asleep).abs() < 5_000_000, "{before:?} {after:?}");
        assert!((after.realtime - before.realtime).abs() < 5_000_000, "{before:?} {after:?}");
    }
}
