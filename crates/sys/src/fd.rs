//! File descriptors: waiting for them, draining and replacing them.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::error::check;

/// Reads a non-blocking descriptor until it has nothing more.
pub fn drain(fd: BorrowedFd<'_>) {
    let mut buffer = [0_u8; 512];
    // SAFETY: the buffer is valid for its length.
    while unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

/// Waits up to `timeout` for descriptors to become readable or be closed at the other end;
/// returns for each whether it is.
///
/// # Errors
/// Those of poll(2). A signal ends the wait early, with nothing readable.
pub fn wait_readable<const N: usize>(
    fds: [BorrowedFd<'_>; N],
    timeout: Duration,
) -> io::Result<[bool; N]> {
    let mut polled =
        fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    let count = libc::nfds_t::try_from(N).map_err(io::Error::other)?;
    // SAFETY: the array is valid for its length.
    match check(unsafe { libc::poll(polled.as_mut_ptr(), count, milliseconds) }) {
        Ok(_) => Ok(polled.map(|one| one.revents != 0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
    }
}

/// Whether an exceptional condition is there (POLLPRI): of a file of cgroup2, whether it has changed
/// since it was last read. Does not wait.
///
/// # Errors
/// Those of poll(2).
pub fn has_changed(fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLPRI, revents: 0 };
    // SAFETY: one valid pollfd, and no waiting.
    check(unsafe { libc::poll(&raw mut polled, 1, 0) })?;
    Ok(polled.revents & libc::POLLPRI != 0)
}

/// Makes reads and writes return `WouldBlock` instead of waiting.
///
/// # Errors
/// Those of fcntl(2).
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: fcntl with plain numbers on an open descriptor.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK))?;
    }
    Ok(())
}

/// Replaces standard output with a copy of `fd`.
///
/// # Errors
/// Those of dup2(2).
pub fn replace_stdout(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: dup2 on an open descriptor; std's stdout stores no descriptor but uses number 1.
    check(unsafe { libc::dup2(fd.as_raw_fd(), libc::STDOUT_FILENO) }).map(|_| ())
}
