//! Threads: interrupting the sleep of one that should end.

use std::os::unix::thread::{JoinHandleExt, RawPthread};
use std::sync::Once;
use std::thread::JoinHandle;

fn wake_signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

extern "C" fn nothing(_: libc::c_int) {}

/// Lets [`wake`] interrupt the sleeps of the calling thread. Call it in the thread before its
/// first sleep.
pub fn accept_wakes() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        // SAFETY: an all-zero sigaction is valid; the handler does nothing. No SA_RESTART, so
        // sleeps end.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            libc::sigaction(wake_signal(), &raw const action, std::ptr::null_mut());
        }
    });
    let set = crate::signal::set_of(&[wake_signal()]);
    // SAFETY: a valid set.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Interrupts the sleep of a thread that has called [`accept_wakes`]: its wait returns
/// `Interrupted`. A thread that is about to sleep can miss it, so repeat until the thread has
/// ended.
#[allow(clippy::unnecessary_cast, reason = "std's and libc's types differ under musl")]
pub fn wake<T>(thread: &JoinHandle<T>) {
    let id: RawPthread = thread.as_pthread_t();
    // SAFETY: the handle keeps the thread's id valid until it is joined.
    unsafe { libc::pthread_kill(id as libc::pthread_t, wake_signal()) };
}

/// The kernel's ID of the calling thread.
#[must_use]
pub fn id() -> i32 {
    // SAFETY: takes no argument.
    unsafe { libc::gettid() }
}
