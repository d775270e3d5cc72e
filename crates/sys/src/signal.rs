//! Signals that end a run or ask for a snapshot, handled in the main loop.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// A signal that the main loop acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal went away.
    HangUp,
    /// SIGUSR1: print a snapshot.
    User1,
}

impl Signal {
    /// Whether it asks the run to end.
    #[must_use]
    pub fn ends(self) -> bool {
        self != Self::User1
    }
}

const TAKEN: [(libc::c_int, Signal); 4] = [
    (libc::SIGINT, Signal::Interrupt),
    (libc::SIGTERM, Signal::Terminate),
    (libc::SIGHUP, Signal::HangUp),
    (libc::SIGUSR1, Signal::User1),
];

/// The signals of [`Signal`], blocked in the process and read from a signalfd. Dropping it
/// restores the previous mask.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    nudge: Nudge,
    before: libc::sigset_t,
}

/// Ends [`Signals::wait`] early, from any thread.
#[derive(Debug, Clone)]
pub struct Nudge(Arc<OwnedFd>);

impl Nudge {
    fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(crate::event::eventfd(libc::EFD_NONBLOCK)?)))
    }

    /// Ends the current wait, or the next one.
    pub fn nudge(&self) {
        let one = 1_u64;
        // SAFETY: eight readable bytes. A full counter refuses, but the wait ends anyway.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) };
    }

    fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: eight writable bytes.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) };
    }
}

pub(crate) fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set; the signal numbers are valid.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

impl Signals {
    /// Blocks the signals. Call it in the main thread before any other thread starts, because
    /// threads inherit the mask.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn block() -> io::Result<Self> {
        let set = set_of(&TAKEN.map(|(number, _)| number));
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are valid; `before` is written to.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) };
        // SAFETY: pthread_sigmask has written it.
        let before = unsafe { before.assume_init() };
        // SAFETY: the set is valid; -1 asks for a new descriptor.
        let fd =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and ours.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, nudge: Nudge::new()?, before })
    }

    /// A handle that ends waits from another thread.
    #[must_use]
    pub fn nudge(&self) -> Nudge {
        self.nudge.clone()
    }

    /// The next signal; waits for at most `timeout_ns` or until nudged.
    #[must_use]
    pub fn wait(&self, timeout_ns: u64) -> Option<Signal> {
        let poll =
            |fd: &OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut polls = [poll(&self.fd), poll(&self.nudge.0)];
        let timeout = crate::clock::timespec(timeout_ns);
        // SAFETY: two valid pollfds, a valid timeout, no mask.
        let ready =
            unsafe { libc::ppoll(polls.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) };
        if ready <= 0 {
            return None;
        }
        if polls[1].revents != 0 {
            self.nudge.clear();
        }
        if polls[0].revents == 0 {
            return None;
        }
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has the size given.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if usize::try_from(got).ok()? != size {
            return None;
        }
        // SAFETY: the kernel has written a complete one.
        let number = unsafe { info.assume_init() }.ssi_signo;
        TAKEN
            .iter()
            .find(|(taken, _)| u32::try_from(*taken) == Ok(number))
            .map(|(_, signal)| *signal)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // SAFETY: `before` is a mask that the kernel gave.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut())
        };
    }
}

/// Ends this process by the default action of `signal`, so that its parent sees which signal
/// ended it.
pub fn die_by_default(signal: Signal) {
    let Some((number, _)) = TAKEN.iter().find(|(_, taken)| *taken == signal) else {
        return;
    };
    let set = set_of(&[*number]);
    // SAFETY: valid signal number and set; the default action needs no handler.
    unsafe {
        libc::signal(*number, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(*number);
    }
}
