//! Signals that end a run or ask for a snapshot, handled in the main loop, and those that must
//! not end it.

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
    /// SIGQUIT: Ctrl-\\.
    Quit,
    /// SIGUSR1: print a snapshot.
    User1,
}

impl Signal {
    /// Whether it asks the run to end.
    #[must_use]
    pub fn ends(self) -> bool {
        self != Self::User1
    }

    /// Whether it asks for an end without delay, given that one that ends came `before`. A
    /// terminal that closes sends SIGHUP more than once: from the kernel and from the shell.
    #[must_use]
    pub fn ends_at_once(self, before: bool) -> bool {
        match self {
            Self::Quit => true,
            Self::Interrupt | Self::Terminate => before,
            Self::HangUp | Self::User1 => false,
        }
    }

    /// The name, such as `SIGINT`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::HangUp => "SIGHUP",
            Self::Quit => "SIGQUIT",
            Self::User1 => "SIGUSR1",
        }
    }
}

const TAKEN: [(libc::c_int, Signal); 5] = [
    (libc::SIGINT, Signal::Interrupt),
    (libc::SIGTERM, Signal::Terminate),
    (libc::SIGHUP, Signal::HangUp),
    (libc::SIGQUIT, Signal::Quit),
    (libc::SIGUSR1, Signal::User1),
];

/// Signals that whoever started the process may have set to be ignored on purpose: nohup(1)
/// does it with SIGHUP, a shell without job control with SIGINT and SIGQUIT of what it starts
/// in the background. The kernel queues a blocked signal even if it is ignored, so these are
/// not blocked.
const MAY_BE_IGNORED: [libc::c_int; 3] = [libc::SIGINT, libc::SIGHUP, libc::SIGQUIT];

fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: asks for the action only, which is written on success.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The signals of [`Signal`], blocked in the process and read from a signalfd, except those
/// that were ignored. Dropping it restores the previous mask.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
    nudge: Nudge,
    before: libc::sigset_t,
    ignored: Vec<Signal>,
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
    /// Blocks the signals. SIGINT, SIGHUP and SIGQUIT stay ignored if they are. Call it in the
    /// main thread before any other thread starts, because threads inherit the mask.
    ///
    /// # Errors
    /// Those of signalfd(2).
    pub fn block() -> io::Result<Self> {
        let (ignored, taken): (Vec<_>, Vec<_>) = TAKEN
            .into_iter()
            .partition(|(number, _)| MAY_BE_IGNORED.contains(number) && is_ignored(*number));
        let numbers: Vec<_> = taken.into_iter().map(|(number, _)| number).collect();
        let ignored = ignored.into_iter().map(|(_, signal)| signal).collect();
        let set = set_of(&numbers);
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
        Ok(Self { fd, nudge: Nudge::new()?, before, ignored })
    }

    /// The signals that were ignored when the others were blocked, and still are.
    #[must_use]
    pub fn ignored(&self) -> &[Signal] {
        &self.ignored
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

/// Makes a write beyond RLIMIT_FSIZE fail with EFBIG instead of ending the process by SIGXFSZ.
/// The handler is not inherited over exec, so programs that are started keep the default.
pub fn survive_file_size_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = nothing;
    // SAFETY: a handler that does nothing is safe at any moment.
    unsafe { libc::signal(libc::SIGXFSZ, handler as libc::sighandler_t) };
}

/// Ends the ignoring of SIGINT, SIGHUP and SIGQUIT in this process and what it starts, for a
/// test that sends them: it may itself run in the background of a script.
pub fn heed_all() {
    for signal in MAY_BE_IGNORED {
        if is_ignored(signal) {
            // SAFETY: the default action needs no handler.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_terminal_does_not_end_at_once_however_often_it_says_so() {
        for before in [false, true] {
            assert!(!Signal::HangUp.ends_at_once(before) && !Signal::User1.ends_at_once(before));
            assert_eq!(Signal::Interrupt.ends_at_once(before), before);
            assert_eq!(Signal::Terminate.ends_at_once(before), before);
            assert!(Signal::Quit.ends_at_once(before));
        }
    }
}
