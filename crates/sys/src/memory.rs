//! Memory locking and faulting.

use std::io;

use crate::error::check;

/// Locks all current and future memory of the process (mlockall(2)), so no page fault can
/// delay a probe, if `more` bytes will find room too: once a limit is reached every allocation
/// fails, and the process with it. Stacks of threads started later are faulted in completely.
///
/// # Errors
/// EPERM or ENOMEM without CAP_IPC_LOCK or a sufficient RLIMIT_MEMLOCK. Nothing is locked then.
pub fn lock_all(more: usize) -> io::Result<()> {
    // SAFETY: takes flags only.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })?;
    // Tried, because whether the limit holds for this process is for the kernel to say.
    reserve(more).inspect_err(|_| unlock_all())
}

/// Whether so many bytes can be mapped. No page is ever there.
fn reserve(bytes: usize) -> io::Result<()> {
    let (access, flags) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address that the kernel chooses, which nothing accesses and
    // which is unmapped again.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        check(libc::munmap(start, bytes)).map(|_| ())
    }
}

/// Undoes [`lock_all`].
pub fn unlock_all() {
    // SAFETY: takes no argument; it cannot fail on Linux.
    unsafe { libc::munlockall() };
}

/// Touches 32 KiB of the calling thread's stack, so the hot loop faults none of it in even if
/// memory could not be locked.
#[inline(never)]
pub fn fault_in_stack() {
    let mut page = [0_u8; 32 * 1024];
    for byte in page.iter_mut().step_by(1024) {
        *byte = 1;
    }
    std::hint::black_box(&mut page);
}

/// Page faults of the calling thread so far: `(minor, major)` (getrusage(2), RUSAGE_THREAD).
#[must_use]
pub fn thread_faults() -> (u64, u64) {
    // SAFETY: an all-zero rusage is valid, and the kernel writes a complete one.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    (u64::try_from(usage.ru_minflt).unwrap_or(0), u64::try_from(usage.ru_majflt).unwrap_or(0))
}
