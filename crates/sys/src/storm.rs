//! A signal that threads of one process send to each other, counted by its handler.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::check;

static HANDLED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Counts SIGUSR1 from now on, in every thread. It interrupts waits. One that is sent while
/// another is pending merges with that, so no limit of pending signals is reached.
pub fn install() {
    // SAFETY: an all-zero sigaction is valid; the handler only adds to an atomic.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
    }
    let set = crate::signal::set_of(&[libc::SIGUSR1]);
    // SAFETY: a valid set.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Sends it to a thread of this process (tgkill(2)). [`install`] must have been called, or the
/// process ends.
///
/// # Errors
/// ESRCH if there is no such thread.
pub fn send(thread: i32) -> std::io::Result<()> {
    let process = std::process::id();
    // SAFETY: takes numbers only.
    check(unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) }).map(drop)
}

/// How many this process has handled.
#[must_use]
pub fn handled() -> u64 {
    HANDLED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_to_the_caller_is_handled_at_once() {
        install();
        let before = handled();
        for _ in 0..100 {
            send(crate::thread::id()).unwrap();
        }
        assert_eq!(handled() - before, 100);
        assert!(send(i32::MAX).is_err());
    }
}
