//! I/O ports of x86, used from user space. Only for a guest that knows its board: elsewhere a port
//! may belong to any device.

use std::arch::asm;
use std::io;

/// Does some work with access to `count` ports from `first` on. The permission is held no longer:
/// threads started while it is held would inherit it, and the kernel would spend time on it at each
/// of their context switches.
///
/// # Errors
/// The errno of `ioperm(2)`: EPERM without `CAP_SYS_RAWIO`.
pub(crate) fn permitted<T>(first: u16, count: u16, work: impl FnOnce() -> T) -> io::Result<T> {
    permit(first, count, true)?;
    let done = work();
    permit(first, count, false)?;
    Ok(done)
}

fn permit(first: u16, count: u16, on: bool) -> io::Result<()> {
    let (first, count) = (libc::c_ulong::from(first), libc::c_ulong::from(count));
    // SAFETY: ioperm(2) takes no memory of this process.
    if unsafe { libc::syscall(libc::SYS_ioperm, first, count, libc::c_int::from(on)) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Writes a byte to a port that is permitted.
///
/// # Safety
/// What the device at the port does with it must not touch memory of this process.
pub(crate) unsafe fn write_u8(port: u16, value: u8) {
    // SAFETY: the caller's; the instruction itself takes no memory.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nostack, preserves_flags));
    }
}

/// Writes 16 bits to a port that is permitted.
///
/// # Safety
/// As [`write_u8`].
pub(crate) unsafe fn write_u16(port: u16, value: u16) {
    // SAFETY: the caller's; the instruction itself takes no memory.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nostack, preserves_flags));
    }
}

/// Fills a buffer from a port that is permitted.
///
/// # Safety
/// As [`write_u8`], of what the device does when it is read.
pub(crate) unsafe fn read_into(port: u16, buffer: &mut [u8]) {
    // SAFETY: `rep insb` writes only `buffer`, with the direction flag clear as the calling
    // convention requires.
    unsafe {
        asm!(
            "rep insb",
            in("dx") port,
            inout("rdi") buffer.as_mut_ptr() => _,
            inout("rcx") buffer.len() => _,
            options(nostack, preserves_flags),
        );
    }
}
