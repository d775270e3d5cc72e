//! A timerfd in an epoll, as in an event loop.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{TimerFd, Wait, Waited, interrupted_or_error};
use crate::error::called;

/// A periodic timerfd in an epoll(7): each release is an epoll_wait(2) and a read(2), without which
/// the kernel does not start the timer again.
#[derive(Debug)]
pub struct EpollTimer {
    epoll: OwnedFd,
    timer: TimerFd,
}

impl EpollTimer {
    /// A timer that expires at `first_ns` and then every `interval_ns`.
    ///
    /// # Errors
    /// Those of [`TimerFd::new`], epoll_create1(2) and epoll_ctl(2).
    pub fn new(first_ns: u64, interval_ns: u64) -> io::Result<Self> {
        let timer = TimerFd::new(first_ns, interval_ns)?;
        // SAFETY: takes a number only; the descriptor is checked, and owned by nothing else.
        let epoll = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            OwnedFd::from_raw_fd(called("epoll_create1", fd)?)
        };
        let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
        let (add, timerfd) = (libc::EPOLL_CTL_ADD, timer.fd.as_raw_fd());
        // SAFETY: two open descriptors and a valid event.
        let added = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), add, timerfd, &raw mut event) };
        called("epoll_ctl", added)?;
        Ok(Self { epoll, timer })
    }
}

impl Wait for EpollTimer {
    #[inline(always)]
    fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
        while !self.timer.expirations.cover(release_ns) {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: room for one event.
            let got = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), &raw mut event, 1, -1) };
            if got < 0 {
                return interrupted_or_error(io::Error::last_os_error());
            }
            if self.timer.read()? == Waited::Interrupted {
                return Ok(Waited::Interrupted);
            }
        }
        Ok(Waited::Released)
    }
}
