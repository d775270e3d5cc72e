//! Signals that end a run or ask for a snapshot, handled in the main loop, and those that must
//! not end it.

use std::io;
use std::mem::MaybeUninit;

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
    /// SIGCONT: the process was continued, whether or not it had been stopped; only after
    /// [`Signals::watch_stops`].
    Continued,
}

impl Signal {
    /// Whether it asks the run to end.
    #[must_use]
    pub fn ends(self) -> bool {
        !matches!(self, Self::User1 | Self::Continued)
    }

    /// Whether it asks for an end without delay, given that one that ends came `before`. A
    /// terminal that closes sends SIGHUP more than once: from the kernel and from the shell.
    #[must_use]
    pub fn ends_at_once(self, before: bool) -> bool {
        match self {
            Self::Quit => true,
            Self::Interrupt | Self::Terminate => before,
            Self::HangUp | Self::User1 | Self::Continued => false,
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
            Self::Continued => "SIGCONT",
        }
    }
}

const TAKEN: [(libc::c_int, Signal); 6] = [
    (libc::SIGINT, Signal::Interrupt),
    (libc::SIGTERM, Signal::Terminate),
    (libc::SIGHUP, Signal::HangUp),
    (libc::SIGQUIT, Signal::Quit),
    (libc::SIGUSR1, Signal::User1),
    (libc::SIGCONT, Signal::Continued),
];

/// What ended a wait for signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// A signal that was waited for.
    By(Signal),
    /// [`Nudge::nudge`].
    Nudged,
    /// The time was over.
    InTime,
    /// Something else: the process was stopped, or a debugger or a freezer stopped the thread.
    Interrupted,
}

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

/// The signals of [`Signal`], except those that were ignored, blocked in the process and taken
/// by the thread that blocked them. Dropping it restores the previous mask.
#[derive(Debug)]
pub struct Signals {
    set: libc::sigset_t,
    nudge: Nudge,
    before: libc::sigset_t,
    ignored: Vec<Signal>,
}

/// Ends [`Signals::wait`] early, from any thread.
#[derive(Debug, Clone)]
pub struct Nudge {
    process: u32,
    thread: i32,
}

/// The signal of [`Nudge`]. The modules thread, timer and token have the numbers below it.
fn nudge_signal() -> libc::c_int {
    libc::SIGRTMIN() + 6
}

impl Nudge {
    /// Ends the current wait, or the next one.
    pub fn nudge(&self) {
        // SAFETY: takes numbers only. The thread may have ended: then nobody waits.
        unsafe { libc::syscall(libc::SYS_tgkill, self.process, self.thread, nudge_signal()) };
    }
}

/// The next signal of a set, or a negative value if there is none in time. Not by a signalfd:
/// the kernel wakes whoever polls one at each signal to any thread of the process, and a probe
/// that measures signals would measure that too.
fn take(set: &libc::sigset_t, timeout_ns: u64) -> libc::c_int {
    let timeout = crate::clock::timespec(timeout_ns);
    let info = std::ptr::null_mut::<libc::siginfo_t>();
    // The raw call, because musl repeats it after another signal.
    // SAFETY: a valid set of the kernel's 64 signals, no details, a valid timeout.
    let number = unsafe {
        let call = libc::SYS_rt_sigtimedwait;
        libc::syscall(call, std::ptr::from_ref(set), info, &raw const timeout, size_of::<u64>())
    };
    libc::c_int::try_from(number).unwrap_or(-1)
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
    /// Those of pthread_sigmask(3).
    pub fn block() -> io::Result<Self> {
        let asked = TAKEN.into_iter().filter(|(number, _)| *number != libc::SIGCONT);
        let (ignored, taken): (Vec<_>, Vec<_>) =
            asked.partition(|(number, _)| MAY_BE_IGNORED.contains(number) && is_ignored(*number));
        let mut numbers: Vec<_> = taken.into_iter().map(|(number, _)| number).collect();
        numbers.push(nudge_signal());
        let ignored = ignored.into_iter().map(|(_, signal)| signal).collect();
        let set = set_of(&numbers);
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets are valid; `before` is written to. A nudge may come after the end,
        // when it would end the process.
        let before = unsafe {
            match libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, before.as_mut_ptr()) {
                0 => {}
                error => return Err(io::Error::from_raw_os_error(error)),
            }
            libc::sigaddset(before.as_mut_ptr(), nudge_signal());
            before.assume_init()
        };
        // SAFETY: takes no argument.
        let thread = unsafe { libc::gettid() };
        let nudge = Nudge { process: std::process::id(), thread };
        Ok(Self { set, nudge, before, ignored })
    }

    /// Blocks SIGCONT too, so that [`Signal::Continued`] tells that the process was continued. It
    /// still continues the process, and is queued even if it is ignored. Like [`Signals::block`],
    /// call it before any other thread starts: the kernel drops one that any thread leaves
    /// unblocked.
    ///
    /// # Errors
    /// Those of pthread_sigmask(3).
    pub fn watch_stops(&mut self) -> io::Result<()> {
        let set = set_of(&[libc::SIGCONT]);
        // SAFETY: a valid set; the mask before is not asked for.
        match unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
        } {
            0 => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
        // SAFETY: a valid set and signal.
        unsafe { libc::sigaddset(&raw mut self.set, libc::SIGCONT) };
        Ok(())
    }

    /// Takes a SIGCONT that is there, without waiting; returns whether there was one.
    #[must_use]
    pub fn was_continued(&self) -> bool {
        take(&set_of(&[libc::SIGCONT]), 0) > 0
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

    /// The next signal; waits for at most `timeout_ns` or until nudged. Call it in the thread
    /// that blocked them.
    #[must_use]
    pub fn wait(&self, timeout_ns: u64) -> Option<Signal> {
        match self.wait_or_stop(timeout_ns) {
            Woken::By(signal) => Some(signal),
            Woken::InTime | Woken::Nudged | Woken::Interrupted => None,
        }
    }

    /// Waits as [`Signals::wait`] does; returns what ended the wait.
    #[must_use]
    pub fn wait_or_stop(&self, timeout_ns: u64) -> Woken {
        let number = take(&self.set, timeout_ns);
        let error = io::Error::last_os_error();
        if number == nudge_signal() {
            let nudges = set_of(&[nudge_signal()]);
            while take(&nudges, 0) > 0 {}
            return Woken::Nudged;
        }
        match TAKEN.iter().find(|(taken, _)| *taken == number) {
            Some((_, signal)) => Woken::By(*signal),
            None if error.kind() == io::ErrorKind::Interrupted => Woken::Interrupted,
            None => Woken::InTime,
        }
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
    use std::time::{Duration, Instant};

    #[test]
    fn a_nudge_ends_the_wait_or_the_next_one() {
        std::thread::spawn(|| {
            let signals = Signals::block().unwrap();
            let (nudge, theirs) = (signals.nudge(), signals.nudge());
            let from = Instant::now();
            let nudged = || assert_eq!(signals.wait(20_000_000_000), None);
            nudge.nudge();
            nudge.nudge();
            nudged();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                theirs.nudge();
            });
            nudged();
            assert!(from.elapsed() >= Duration::from_millis(20), "both nudges were one");
            assert!(from.elapsed() < Duration::from_secs(10), "it was not nudged");
            assert_eq!(signals.wait(1_000_000), None);
            drop(signals);
            nudge.nudge();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_signal_is_taken_by_whoever_waits() {
        std::thread::spawn(|| {
            let signals = Signals::block().unwrap();
            // SAFETY: a signal that this thread has blocked.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR1) };
            assert_eq!(signals.wait(10_000_000_000), Some(Signal::User1));
            assert_eq!(signals.wait(1_000_000), None);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn that_the_process_was_continued_is_told_once_and_only_if_asked_for() {
        std::thread::spawn(|| {
            let mut signals = Signals::block().unwrap();
            // SAFETY: SIGCONT does nothing to a thread that runs.
            let go_on = || unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGCONT) };
            go_on();
            assert_eq!(signals.wait(1_000_000), None);
            signals.watch_stops().unwrap();
            go_on();
            go_on();
            assert_eq!(signals.wait(10_000_000_000), Some(Signal::Continued));
            assert!(!signals.was_continued());
            go_on();
            assert!(signals.was_continued() && !signals.was_continued());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_closing_terminal_does_not_end_at_once_however_often_it_says_so() {
        for before in [false, true] {
            for signal in [Signal::HangUp, Signal::User1, Signal::Continued] {
                assert!(!signal.ends_at_once(before));
            }
            assert_eq!(Signal::Interrupt.ends_at_once(before), before);
            assert_eq!(Signal::Terminate.ends_at_once(before), before);
            assert!(Signal::Quit.ends_at_once(before));
        }
    }
}
