//! A signal to the thread that waits (tgkill(2)), which runs a handler or waits for it.

use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use super::{Token, interrupted, posted, taken};
use crate::clock::monotonic_ns;
use crate::shared_value::SharedValue;
use crate::signal::set_of;

/// The signal. [`crate::thread`] and [`crate::timer`] have the numbers below it.
fn token_signal() -> libc::c_int {
    libc::SIGRTMIN() + 5
}

/// A thread that gets signals.
#[derive(Debug)]
struct Target {
    process: libc::pid_t,
    thread: SharedValue<AtomicI32>,
}

impl Target {
    fn new() -> io::Result<Self> {
        let process = libc::pid_t::try_from(std::process::id()).map_err(io::Error::other)?;
        Ok(Self { process, thread: SharedValue::new(AtomicI32::new(0))? })
    }

    /// Makes the calling thread the target, with the signal blocked; returns its mask before.
    fn bind(&self) -> libc::sigset_t {
        let set = set_of(&[token_signal()]);
        let mut before = MaybeUninit::uninit();
        // SAFETY: a valid set, and a place for the old one, which is written.
        let before = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr());
            before.assume_init()
        };
        self.thread.store(crate::thread::id(), Ordering::Release);
        before
    }

    #[inline(always)]
    fn signal(&self) -> io::Result<()> {
        let thread = self.thread.load(Ordering::Acquire);
        // SAFETY: takes numbers only.
        let sent = posted(|| unsafe {
            libc::syscall(libc::SYS_tgkill, self.process, thread, token_signal())
        });
        match sent {
            // It has ended: nobody is left to wake.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            sent => sent,
        }
    }
}

/// A signal that the thread waits for with rt_sigtimedwait(2).
#[derive(Debug)]
pub struct SigWait {
    target: Target,
    set: libc::sigset_t,
}

impl SigWait {
    /// One whose target is the thread that binds it.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self { target: Target::new()?, set: set_of(&[token_signal()]) })
    }
}

impl Token for SigWait {
    fn bind(&self) -> io::Result<()> {
        self.target.bind();
        Ok(())
    }

    #[inline]
    fn post(&self) -> io::Result<()> {
        self.target.signal()
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        let info = std::ptr::null_mut::<libc::siginfo_t>();
        let none = std::ptr::null::<libc::timespec>();
        // The raw call, because musl's sigwait repeats it after EINTR.
        // SAFETY: a valid set of the kernel's 64 signals; neither details nor a timeout.
        taken(unsafe {
            let call = libc::SYS_rt_sigtimedwait;
            libc::syscall(call, &raw const self.set, info, none, size_of::<u64>())
        })
    }
}

thread_local! {
    /// When the handler last ran in this thread, ns of CLOCK_MONOTONIC.
    static HANDLED_NS: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn stamp(_: libc::c_int) {
    HANDLED_NS.set(monotonic_ns());
}

/// A signal whose handler reads the clock, in a thread that sleeps in rt_sigsuspend(2).
#[derive(Debug)]
pub struct Handled {
    target: Target,
    /// The thread's mask while it sleeps.
    mask: OnceLock<libc::sigset_t>,
}

impl Handled {
    /// One whose target is the thread that binds it.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new() -> io::Result<Self> {
        Ok(Self { target: Target::new()?, mask: OnceLock::new() })
    }
}

impl Token for Handled {
    fn bind(&self) -> io::Result<()> {
        // SAFETY: an all-zero sigaction is valid. The handler reads the clock through the vDSO
        // and writes to its thread's own memory, which needs no initialisation.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = stamp as *const () as usize;
            libc::sigaction(token_signal(), &raw const action, std::ptr::null_mut());
        }
        let mut mask = self.target.bind();
        // SAFETY: a mask that the kernel gave, and a valid number.
        unsafe { libc::sigdelset(&raw mut mask, token_signal()) };
        self.mask.get_or_init(|| mask);
        Ok(())
    }

    #[inline]
    fn post(&self) -> io::Result<()> {
        self.target.signal()
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        let Some(mask) = self.mask.get() else { return Err(io::ErrorKind::NotFound.into()) };
        HANDLED_NS.set(0);
        // SAFETY: a valid mask of the kernel's 64 signals.
        unsafe {
            libc::syscall(libc::SYS_rt_sigsuspend, std::ptr::from_ref(mask), size_of::<u64>())
        };
        match HANDLED_NS.get() {
            0 => interrupted(io::Error::last_os_error()),
            at => Ok(Some(at)),
        }
    }
}
