//! Futexes (futex(2)). The libcs have no function for the system call.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::clock::timespec;
use crate::error::check;

/// Operations without a name in the libc crate for every target.
const FUTEX_WAIT_REQUEUE_PI: libc::c_int = 11;
const FUTEX_CMP_REQUEUE_PI: libc::c_int = 12;

/// Who waits on a word: operations on one word have to agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Threads of one process: the kernel finds the word by its address.
    Private,
    /// Processes too, with the word in memory that they share.
    Shared,
}

impl Scope {
    #[inline(always)]
    fn of(self, operation: libc::c_int) -> libc::c_int {
        if self == Self::Private { operation | libc::FUTEX_PRIVATE_FLAG } else { operation }
    }
}

/// Waits while the word is `value`.
///
/// # Errors
/// `WouldBlock` if it is another one by now, `Interrupted` after a signal.
#[inline(always)]
pub fn wait(word: &AtomicU32, scope: Scope, value: u32) -> io::Result<()> {
    let none = std::ptr::null::<libc::timespec>();
    let operation = scope.of(libc::FUTEX_WAIT);
    // SAFETY: a word that lives during the call, and no timeout.
    check(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, none) })
        .map(drop)
}

/// Waits while the word is `value`, until an instant of CLOCK_MONOTONIC, ns, at most.
///
/// # Errors
/// `TimedOut` at that instant; `WouldBlock` and `Interrupted` as for [`wait`].
#[inline(always)]
pub fn wait_until(word: &AtomicU32, value: u32, instant_ns: u64) -> io::Result<()> {
    let time = timespec(instant_ns);
    let operation = Scope::Private.of(libc::FUTEX_WAIT_BITSET);
    let none = std::ptr::null::<u32>();
    // SAFETY: a word and a timespec that live during the call; the second word is not used.
    let done = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            &raw const time,
            none,
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
    check(done).map(drop)
}

/// Wakes one that waits.
///
/// # Errors
/// Those of futex(2), none of which is usual.
#[inline(always)]
pub fn wake_one(word: &AtomicU32, scope: Scope) -> io::Result<()> {
    // SAFETY: a word that lives during the call.
    check(unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), scope.of(libc::FUTEX_WAKE), 1) })
        .map(drop)
}

/// Waits while `word` is `value`; the one that wakes this thread hands `mutex` over, a word with
/// priority inheritance. A signal does not end it: the kernel repeats the call.
///
/// # Errors
/// `WouldBlock` if the word is another one by now. The thread has the mutex only without an error.
#[inline(always)]
pub fn wait_requeue_pi(
    word: &AtomicU32,
    scope: Scope,
    value: u32,
    mutex: &AtomicU32,
) -> io::Result<()> {
    let none = std::ptr::null::<libc::timespec>();
    let operation = scope.of(FUTEX_WAIT_REQUEUE_PI);
    // SAFETY: two words that live during the call, and no timeout.
    let done = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, none, mutex.as_ptr())
    };
    check(done).map(drop)
}

/// Hands `mutex` over to the first that waits for `word` with [`wait_requeue_pi`] or, if it is
/// locked, has that one wait for it.
///
/// # Errors
/// `WouldBlock` if the word is not `value`.
#[inline(always)]
pub fn requeue_pi(word: &AtomicU32, scope: Scope, value: u32, mutex: &AtomicU32) -> io::Result<()> {
    let operation = scope.of(FUTEX_CMP_REQUEUE_PI);
    let more: libc::c_long = 0;
    // SAFETY: two words that live during the call; the others are numbers, the fourth of them in
    // the place of a timeout.
    let done = unsafe {
        libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1, more, mutex.as_ptr(), value)
    };
    check(done).map(drop)
}

/// Locks a word with priority inheritance for the calling thread, whose number
/// ([`crate::thread::id`]) this is. Not interrupted by signals; no system call if nobody has it.
///
/// # Errors
/// Those of futex(2), such as EDEADLK if the caller has it.
#[inline(always)]
pub fn lock_pi(mutex: &AtomicU32, scope: Scope, thread: u32) -> io::Result<()> {
    let free = mutex.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed);
    if free.is_ok() { Ok(()) } else { wait_pi(mutex, scope) }
}

#[cold]
fn wait_pi(mutex: &AtomicU32, scope: Scope) -> io::Result<()> {
    let none = std::ptr::null::<libc::timespec>();
    let operation = scope.of(libc::FUTEX_LOCK_PI);
    // SAFETY: a word that lives during the call, and no timeout.
    check(unsafe { libc::syscall(libc::SYS_futex, mutex.as_ptr(), operation, 0, none) }).map(drop)
}

/// Unlocks such a word; no system call if nobody waits for it.
///
/// # Errors
/// `PermissionDenied` if the caller does not have it; ENOSYS if the kernel has no such words.
#[inline(always)]
pub fn unlock_pi(mutex: &AtomicU32, scope: Scope, thread: u32) -> io::Result<()> {
    let alone = mutex.compare_exchange(thread, 0, Ordering::Release, Ordering::Relaxed);
    if alone.is_ok() {
        return Ok(());
    }
    let operation = scope.of(libc::FUTEX_UNLOCK_PI);
    // SAFETY: a word that lives during the call.
    check(unsafe { libc::syscall(libc::SYS_futex, mutex.as_ptr(), operation) }).map(drop)
}

/// Whether the kernel has words with priority inheritance (CONFIG_FUTEX_PI).
#[must_use]
pub fn has_pi() -> bool {
    let nobodys = AtomicU32::new(0);
    let own = crate::thread::id().cast_unsigned();
    let refused = unlock_pi(&nobodys, Scope::Private, own).err();
    refused.and_then(|error| error.raw_os_error()) != Some(libc::ENOSYS)
}
