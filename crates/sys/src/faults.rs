//! Signals that a process sends to itself, and those of writes to memory that is read-only. The
//! handlers are those of the whole process, so this is for processes of one thread.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::error::check;
use crate::region::page_size;

static HANDLED: AtomicU64 = AtomicU64::new(0);
/// How many more faults the page is to have, and where it is.
static FAULTS: AtomicU64 = AtomicU64::new(0);
static PAGE: AtomicPtr<libc::c_void> = AtomicPtr::new(std::ptr::null_mut());
static BYTES: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int) {
    HANDLED.store(HANDLED.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Returns to the write, which faults again until this allows it.
extern "C" fn refused(_: libc::c_int) {
    let left = FAULTS.load(Ordering::Relaxed);
    FAULTS.store(left.wrapping_sub(1), Ordering::Relaxed);
    if left > 1 {
        return;
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: mprotect is a plain system call on the page of this process. A fault anywhere else
    // finds the signal's default action, which ends the process.
    unsafe {
        if left == 0 || libc::mprotect(page(), BYTES.load(Ordering::Relaxed), access) != 0 {
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        }
    }
}

fn page() -> *mut libc::c_void {
    PAGE.load(Ordering::Relaxed)
}

fn install(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    // SAFETY: an all-zero sigaction is valid memory, and sigemptyset makes its mask one; the handler
    // is one that may run at any moment.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigemptyset(&raw mut action.sa_mask);
        action.sa_sigaction = handler as *const () as usize;
        check(libc::sigaction(signal, &raw const action, std::ptr::null_mut())).map(drop)
    }
}

/// Installs a handler for SIGUSR1, which counts (sigaction(2)).
///
/// # Errors
/// Those of sigaction(2).
#[inline]
pub fn install_handler() -> io::Result<()> {
    install(libc::SIGUSR1, count)
}

/// Sends SIGUSR1 to this process `times`, each handled before the next one.
///
/// # Errors
/// Those of kill(2); the handler must have been installed, or the process ends.
pub fn signal_self(times: u64) -> io::Result<()> {
    let before = HANDLED.load(Ordering::Relaxed);
    kill_self(libc::SIGUSR1, times)?;
    if HANDLED.load(Ordering::Relaxed).wrapping_sub(before) == times {
        Ok(())
    } else {
        Err(io::Error::other("not every signal was handled at once"))
    }
}

/// Asks `times` whether this process may be sent a signal (kill(2) with signal 0): what sending
/// takes without a signal.
///
/// # Errors
/// Those of kill(2).
pub fn ask_self(times: u64) -> io::Result<()> {
    kill_self(0, times)
}

fn kill_self(signal: libc::c_int, times: u64) -> io::Result<()> {
    // SAFETY: takes numbers only, here and below.
    let this = unsafe { libc::getpid() };
    for _ in 0..times {
        // SAFETY: as above.
        check(unsafe { libc::kill(this, signal) })?;
    }
    Ok(())
}

/// A page that is read-only until a write to it has faulted often enough. One at a time.
#[derive(Debug)]
pub struct ReadOnlyPage {
    start: NonNull<u8>,
}

impl ReadOnlyPage {
    /// Maps a page, and handles SIGSEGV from now on.
    ///
    /// # Errors
    /// Those of mmap(2) and sigaction(2); `ResourceBusy` if there is one already.
    pub fn new() -> io::Result<Self> {
        let bytes = page_size();
        let (access, flags) = (libc::PROT_READ, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let page = Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)? };
        let null = std::ptr::null_mut();
        if PAGE.compare_exchange(null, start, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        BYTES.store(bytes, Ordering::Relaxed);
        install(libc::SIGSEGV, refused)?;
        Ok(page)
    }

    /// Writes to the page, which faults `times` (at least once): the handler returns to the write,
    /// and the last time allows it with mprotect(2).
    ///
    /// # Errors
    /// Not as often as it was to; the page is writable already.
    pub fn fault(&mut self, times: u64) -> io::Result<()> {
        FAULTS.store(times, Ordering::Relaxed);
        // SAFETY: memory of this value; the handler makes the write possible.
        unsafe { self.start.as_ptr().write_volatile(1) };
        if FAULTS.load(Ordering::Relaxed) == 0 {
            Ok(())
        } else {
            Err(io::Error::other("a write to a read-only page did not fault"))
        }
    }

    /// Makes the page read-only again.
    ///
    /// # Errors
    /// Those of mprotect(2).
    pub fn protect(&mut self) -> io::Result<()> {
        // SAFETY: the page of this value, to which no reference exists.
        check(unsafe { libc::mprotect(page(), page_size(), libc::PROT_READ) }).map(drop)
    }
}

impl Drop for ReadOnlyPage {
    fn drop(&mut self) {
        // SAFETY: the mapping of this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), page_size()) };
        let (start, null) = (self.start.as_ptr().cast(), std::ptr::null_mut());
        let _ = PAGE.compare_exchange(start, null, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Agent, End, Work};

    struct Signals(Option<ReadOnlyPage>);

    impl Work for Signals {
        fn carry_out(&mut self, order: u8, count: u64) -> io::Result<u64> {
            match order {
                0 => signal_self(count)?,
                1 => ask_self(count)?,
                2 => self.0.as_mut().unwrap().fault(count)?,
                3 => self.0.as_mut().unwrap().protect()?,
                _ => drop(self.0.take()),
            }
            Ok(HANDLED.load(Ordering::Relaxed))
        }
    }

    fn agent() -> Agent {
        Agent::fork(End::AtOnce, || {
            install_handler()?;
            Ok(Signals(Some(ReadOnlyPage::new()?)))
        })
        .unwrap()
    }

    #[test]
    fn every_signal_is_handled_and_questions_are_none() {
        let mut agent = agent();
        let before = agent.order(1, 0).unwrap();
        assert_eq!(agent.order(0, 1_000).unwrap(), before + 1_000);
        assert_eq!(agent.order(1, 1_000).unwrap(), before + 1_000);
    }

    #[test]
    fn a_page_faults_as_often_as_it_is_to() {
        let mut agent = agent();
        for times in [1, 2, 1_000] {
            agent.order(2, times).unwrap();
            let again = agent.order(2, times).unwrap_err().to_string();
            assert_eq!(again, "a write to a read-only page did not fault");
            agent.order(3, 0).unwrap();
        }
    }

    #[test]
    fn a_fault_that_nobody_asked_for_ends_the_process() {
        let mut agent = agent();
        // Nothing is left to fault: the write is one of a bug.
        let died = agent.order(2, 0).unwrap_err().to_string();
        assert!(died.ends_with("killed by SIGSEGV"), "{died}");
    }
}
