//! Memory locking and faulting.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::check;

/// Whether [`lock_all`] is in force.
static LOCKED: AtomicBool = AtomicBool::new(false);

/// Bytes of a stack that the hot loop may need.
const STACK: usize = 32 * 1024;

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
    reserve(more).inspect_err(|_| unlock_all())?;
    LOCKED.store(true, Ordering::Relaxed);
    Ok(())
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
    LOCKED.store(false, Ordering::Relaxed);
    // SAFETY: takes no argument; it cannot fail on Linux.
    unsafe { libc::munlockall() };
}

/// Touches 32 KiB of the calling thread's stack, so the hot loop faults none of it in even if
/// memory could not be locked. If it is, whoever started the thread has faulted its stack in, on
/// the memory node where that ran: the pages are given back first, and come from the node of the
/// CPU that the caller is on.
pub fn fault_in_stack() {
    fault_in(LOCKED.load(Ordering::Relaxed));
}

#[inline(never)]
fn fault_in(locked: bool) {
    let mut area = [0_u8; STACK];
    let page = crate::region::page_size();
    let start = area.as_ptr().align_offset(page);
    let pages = (STACK.saturating_sub(start) / page) * page;
    if locked && pages > 0 {
        let inner = area[start..start + pages].as_mut_ptr().cast::<libc::c_void>();
        // SAFETY: whole pages of an array whose content nobody needs. Locked memory cannot be
        // given back; what fails leaves it as it was.
        unsafe {
            if libc::munlock(inner, pages) == 0 {
                libc::madvise(inner, pages, libc::MADV_DONTNEED);
            }
        }
    }
    for byte in area.iter_mut().step_by(1024) {
        *byte = 1;
    }
    std::hint::black_box(&mut area);
    if locked {
        // SAFETY: memory of this stack.
        unsafe { libc::mlock(area.as_ptr().cast(), STACK) };
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As the stack of a thread is in a process whose memory is locked: all there.
    #[inline(never)]
    fn locked() -> bool {
        let mut area = [1_u8; 2 * STACK];
        std::hint::black_box(&mut area);
        // SAFETY: memory of this stack.
        unsafe { libc::mlock(area.as_ptr().cast(), area.len()) == 0 }
    }

    #[test]
    fn a_thread_faults_its_own_stack_in_although_another_has_done_so() {
        let faults = std::thread::Builder::new().stack_size(256 * 1024).spawn(|| {
            assert!(locked(), "64 KiB are within the usual RLIMIT_MEMLOCK");
            let counted = |locked| {
                let before = thread_faults().0;
                fault_in(locked);
                thread_faults().0 - before
            };
            [counted(false), counted(true), counted(false)]
        });
        let [before, own, after] = faults.unwrap().join().unwrap();
        let pages = (STACK / crate::region::page_size()) as u64;
        assert!(own >= pages - 1, "{own} of {pages} pages");
        assert_eq!((before, after), (0, 0), "all of it is there");
    }
}
