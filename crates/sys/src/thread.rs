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

/// [`wake`] for a process whose only thread has called [`accept_wakes`].
///
/// # Errors
/// Those of kill(2): ESRCH if it has ended.
pub fn wake_process(process: i32) -> std::io::Result<()> {
    // SAFETY: takes numbers only.
    crate::error::called("kill", unsafe { libc::kill(process, wake_signal()) }).map(drop)
}

/// Names the calling thread as ps and the kernel show it, by the first 15 bytes of this. Processes
/// that it forks inherit the name.
pub fn set_name(name: &str) {
    let mut bytes = [0_u8; 16];
    bytes[..15].iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
    // SAFETY: 16 bytes that end with a zero, as PR_SET_NAME of prctl(2) wants them.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

/// The kernel's ID of the calling thread.
#[must_use]
pub fn id() -> i32 {
    // SAFETY: takes no argument.
    unsafe { libc::gettid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_first_15_bytes_of_its_name() {
        for (name, shown) in
            [("hackbench", "hackbench\n"), ("a-name-of-17-bytes", "a-name-of-17-by\n")]
        {
            set_name(name);
            assert_eq!(std::fs::read_to_string("/proc/thread-self/comm").unwrap(), shown);
        }
    }
}
