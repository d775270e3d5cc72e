//! System calls to be timed: each one enters the kernel, even if a library caches the answer.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::error::check;

/// The parent's PID (getppid(2)), by the raw system call.
#[inline(always)]
#[must_use]
#[allow(clippy::useless_conversion, reason = "a c_long has 32 bits on 32-bit machines")]
pub fn getppid() -> i64 {
    // SAFETY: getppid takes no arguments and cannot fail.
    i64::from(unsafe { libc::syscall(libc::SYS_getppid) })
}

/// Looks a file up (stat(2)).
///
/// # Errors
/// Those of stat(2).
#[inline]
pub fn stat(path: &CStr) -> io::Result<()> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a NUL-terminated path and a place of the right size.
    check(unsafe { libc::stat(path.as_ptr(), found.as_mut_ptr()) }).map(drop)
}

/// Opens a file for reading, and closes it.
///
/// # Errors
/// Those of open(2) and close(2).
#[inline]
pub fn open_and_close(path: &CStr) -> io::Result<()> {
    // SAFETY: a NUL-terminated path; the descriptor is used by nothing else.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), libc::O_RDONLY))?;
        check(libc::close(fd)).map(drop)
    }
}

/// Makes a file (creat(2)), writes to it with one call unless there is nothing to write, and closes
/// it.
///
/// # Errors
/// Those of creat(2), write(2) and close(2); `StorageFull` if not all could be written.
#[inline]
pub fn create_and_close(path: &CStr, content: &[u8]) -> io::Result<()> {
    // SAFETY: a NUL-terminated path, a buffer that is valid for its length, and a descriptor that
    // is used by nothing else.
    unsafe {
        let fd = check(libc::creat(path.as_ptr(), 0o600))?;
        let written = if content.is_empty() {
            Ok(0)
        } else {
            check(libc::write(fd, content.as_ptr().cast(), content.len()))
        };
        check(libc::close(fd))?;
        let all = written?.cast_unsigned() == content.len();
        if all { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
    }
}

/// Removes the name of a file.
///
/// # Errors
/// Those of unlink(2).
#[inline]
pub fn unlink(path: &CStr) -> io::Result<()> {
    // SAFETY: a NUL-terminated path.
    check(unsafe { libc::unlink(path.as_ptr()) }).map(drop)
}

/// Descriptors for select(2), each asked whether it can be written to.
#[derive(Clone, Copy)]
pub struct WriteSet {
    set: libc::fd_set,
    /// One more than the highest.
    above: libc::c_int,
    count: usize,
}

impl WriteSet {
    /// A set of these.
    ///
    /// # Errors
    /// `InvalidInput` for a descriptor that select(2) cannot ask about: its sets end at 1023.
    pub fn new<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<Self> {
        let mut set = MaybeUninit::<libc::fd_set>::uninit();
        // SAFETY: FD_ZERO initialises the set.
        let set = unsafe {
            libc::FD_ZERO(set.as_mut_ptr());
            set.assume_init()
        };
        let mut made = Self { set, above: 0, count: 0 };
        for fd in fds {
            let fd = fd.as_raw_fd();
            if usize::try_from(fd).is_ok_and(|fd| fd >= libc::FD_SETSIZE) {
                let text = format!("select(2) cannot ask about descriptor {fd}");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            // SAFETY: the number is within the set.
            unsafe { libc::FD_SET(fd, &raw mut made.set) };
            (made.above, made.count) = (made.above.max(fd + 1), made.count + 1);
        }
        Ok(made)
    }

    /// Asks, without waiting, how many of them can be written to.
    ///
    /// # Errors
    /// Those of select(2).
    #[inline]
    pub fn ready(&self) -> io::Result<usize> {
        let (mut set, none) = (self.set, std::ptr::null_mut());
        let mut now = libc::timeval { tv_sec: 0, tv_usec: 0 };
        // SAFETY: a set and a time that live during the call.
        let ready = unsafe { libc::select(self.above, none, &raw mut set, none, &raw mut now) };
        check(ready).map(|ready| usize::try_from(ready).unwrap_or(0))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_the_same_as_the_library_says() {
        // SAFETY: takes nothing.
        assert_eq!(super::getppid(), i64::from(unsafe { libc::getppid() }));
    }

    #[test]
    fn files_are_made_found_and_removed() {
        let path = std::env::temp_dir().join(format!("punctual-calls-{}", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        assert!(stat(&name).is_err() && open_and_close(&name).is_err() && unlink(&name).is_err());
        for content in [&b"twelve bytes"[..], b""] {
            create_and_close(&name, content).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
        assert!(stat(&name).is_ok() && open_and_close(&name).is_ok());
        unlink(&name).unwrap();
        assert!(!path.exists());
        let full = create_and_close(c"/dev/full", b"x").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn descriptors_that_are_ready_are_counted() {
        use std::os::fd::AsFd;
        let (reader, mut writer) = io::pipe().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let set = WriteSet::new([writer.as_fd(), file.as_fd()].into_iter()).unwrap();
        assert_eq!((set.len(), set.is_empty(), set.ready().unwrap()), (2, false, 2));
        crate::fd::set_nonblocking(writer.as_fd()).unwrap();
        while std::io::Write::write(&mut writer, &[0; 4096]).is_ok() {}
        assert_eq!((set.ready().unwrap(), set.ready().unwrap()), (1, 1));
        drop(reader);
    }
}
