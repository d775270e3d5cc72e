//! Requests of ioctl(2), numbered as include/uapi/asm-generic/ioctl.h does, which x86, arm and
//! arm64 use.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

const WRITE: u32 = 1;
const READ: u32 = 2;

/// A request without an argument, `_IO`.
pub(crate) const fn plain(group: u8, number: u8) -> u32 {
    (group as u32) << 8 | number as u32
}

/// A request that the kernel reads a `T` for, `_IOW`.
pub(crate) const fn reads<T>(group: u8, number: u8) -> u32 {
    of::<T>(WRITE, group, number)
}

/// A request that the kernel writes a `T` for, `_IOR`.
pub(crate) const fn writes<T>(group: u8, number: u8) -> u32 {
    of::<T>(READ, group, number)
}

/// A request that the kernel reads and writes a `T` for, `_IOWR`.
pub(crate) const fn both<T>(group: u8, number: u8) -> u32 {
    of::<T>(READ | WRITE, group, number)
}

#[allow(clippy::cast_possible_truncation, reason = "sizes of arguments have 14 bits")]
const fn of<T>(direction: u32, group: u8, number: u8) -> u32 {
    assert!(size_of::<T>() < 1 << 14);
    direction << 30 | (size_of::<T>() as u32) << 16 | plain(group, number)
}

/// Makes a request.
///
/// # Errors
/// Those of ioctl(2) on this descriptor.
///
/// # Safety
/// `argument` is what the driver behind `fd` takes for this request: memory that is valid for
/// what it reads and writes, and that any bytes which it writes are values of.
pub(crate) unsafe fn ioctl<T>(
    fd: BorrowedFd<'_>,
    request: u32,
    argument: *mut T,
) -> io::Result<()> {
    // SAFETY: the caller's.
    let done = unsafe { libc::syscall(libc::SYS_ioctl, fd.as_raw_fd(), request, argument) };
    crate::error::check(done).map(drop)
}
