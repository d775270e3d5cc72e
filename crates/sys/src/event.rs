//! A counter that threads use to wait for each other (eventfd(2)).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::error::called;

/// How a [`Event::take`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The sum of what was posted since the last take; at least 1.
    Count(u64),
    /// A signal ended the wait early: check whether to stop, otherwise take again.
    Interrupted,
}

/// How a [`Event::post`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// The number was added.
    Added,
    /// A signal ended the wait for room in the counter, and nothing was added: check whether
    /// to stop, otherwise post again.
    Interrupted,
}

/// A counter in the kernel: one thread posts, another waits until there is something to take.
/// Each operation is one system call that allocates nothing and is not repeated after a
/// signal.
#[derive(Debug)]
pub struct Event {
    fd: OwnedFd,
}

impl Event {
    /// A counter at 0 that programs started later do not inherit.
    ///
    /// # Errors
    /// Those of eventfd(2): no descriptor is left, or the kernel lacks eventfd.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes numbers only; the descriptor is checked, and owned by nothing else.
        let fd = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC);
            OwnedFd::from_raw_fd(called("eventfd", fd)?)
        };
        Ok(Self { fd })
    }

    /// Adds `count` and wakes a thread that waits in [`Event::take`]. Blocks only while the
    /// counter would exceed 2^64 - 2.
    ///
    /// # Errors
    /// `InvalidInput` for `u64::MAX`; otherwise those of write(2), except EINTR.
    #[inline]
    pub fn post(&self, count: u64) -> io::Result<Posted> {
        // SAFETY: the buffer has the eight bytes that the write asks for.
        let put = unsafe {
            libc::write(self.fd.as_raw_fd(), (&raw const count).cast(), size_of::<u64>())
        };
        if put < 0 { interrupted_or_error(Posted::Interrupted) } else { Ok(Posted::Added) }
    }

    /// Waits until something is posted, and resets the counter to 0. A signal ends the wait if
    /// the thread handles it without SA_RESTART (see [`crate::thread::accept_wakes`]).
    ///
    /// # Errors
    /// Those of read(2), except EINTR.
    #[inline]
    pub fn take(&self) -> io::Result<Taken> {
        let mut count = 0_u64;
        // SAFETY: the buffer has the eight bytes that the read asks for.
        let got =
            unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
        if got < 0 { interrupted_or_error(Taken::Interrupted) } else { Ok(Taken::Count(count)) }
    }
}

#[cold]
fn interrupted_or_error<T>(interrupted: T) -> io::Result<T> {
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(interrupted) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{accept_wakes, wake};
    use std::sync::Arc;
    use std::thread::{JoinHandle, sleep, spawn};
    use std::time::Duration;

    /// Runs `blocked` in a thread and wakes it until it has ended.
    fn interrupt<T: Send + 'static>(blocked: impl FnOnce() -> T + Send + 'static) -> T {
        // Here, since a wake that comes before it would end the whole process; the new
        // thread inherits the mask.
        accept_wakes();
        let thread: JoinHandle<T> = spawn(blocked);
        while !thread.is_finished() {
            wake(&thread);
            sleep(Duration::from_millis(1));
        }
        thread.join().unwrap()
    }

    #[test]
    fn two_threads_hand_over_in_turn() {
        let (ping, pong) = (Arc::new(Event::new().unwrap()), Arc::new(Event::new().unwrap()));
        let (theirs, ours) = (ping.clone(), pong.clone());
        let partner = spawn(move || {
            for turn in 1..=1_000 {
                assert_eq!(theirs.take().unwrap(), Taken::Count(turn));
                assert_eq!(ours.post(turn + 1).unwrap(), Posted::Added);
            }
        });
        for turn in 1..=1_000 {
            assert_eq!(ping.post(turn).unwrap(), Posted::Added);
            assert_eq!(pong.take().unwrap(), Taken::Count(turn + 1));
        }
        partner.join().unwrap();
    }

    #[test]
    fn what_was_posted_is_taken_in_one() {
        let event = Event::new().unwrap();
        for count in [1, 2, 40] {
            event.post(count).unwrap();
        }
        assert_eq!(event.take().unwrap(), Taken::Count(43));
    }

    #[test]
    fn a_signal_ends_a_wait_for_a_post() {
        let event = Event::new().unwrap();
        assert_eq!(interrupt(move || event.take()).unwrap(), Taken::Interrupted);
    }

    #[test]
    fn a_signal_ends_a_wait_for_room_and_nothing_is_added() {
        let event = Arc::new(Event::new().unwrap());
        event.post(u64::MAX - 1).unwrap();
        let full = event.clone();
        assert_eq!(interrupt(move || full.post(1)).unwrap(), Posted::Interrupted);
        assert_eq!(event.take().unwrap(), Taken::Count(u64::MAX - 1));
    }

    #[test]
    fn a_number_that_no_counter_holds_is_refused() {
        let error = Event::new().unwrap().post(u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn programs_started_later_do_not_inherit_it() {
        let event = Event::new().unwrap();
        // SAFETY: fcntl with plain numbers on an open descriptor.
        let flags = unsafe { libc::fcntl(event.fd.as_raw_fd(), libc::F_GETFD) };
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    }
}
