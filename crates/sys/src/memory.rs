//! Memory locking and faulting.

use std::io;

use crate::error::check;

/// Locks all current and future memory of the process (mlockall(2)), so no page fault can
/// delay a probe. Stacks of threads started later are faulted in completely.
///
/// # Errors
/// EPERM or ENOMEM without CAP_IPC_LOCK or a sufficient RLIMIT_MEMLOCK.
pub fn lock_all() -> io::Result<()> {
    // SAFETY: takes flags only.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }).map(|_| ())
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
