//! A token that one thread posts and another waits for, by each means of the kernel and the C
//! library.

use std::io;

use crate::clock::monotonic_ns;

mod condition;
mod event;
mod futex;
mod pipe;
mod queue;
mod semaphore;
mod signals;
pub mod system_v;

pub use condition::PiCondition;
pub use futex::FutexWord;
pub use pipe::Pipe;
pub use queue::MessageQueue;
pub use semaphore::PosixSemaphore;
pub use signals::{Handled, SigWait};
pub use system_v::{Semaphore, Semaphores};

/// What the two sides of a hand-over are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// Threads of one process.
    Threads,
    /// A process and one that it has forked.
    Processes,
}

/// A way to post tokens and to wait for them. Neither operation allocates.
pub trait Token: Send + Sync {
    /// Prepares the calling thread to take. Called once, in the thread that takes, before
    /// anything is posted.
    ///
    /// # Errors
    /// Those of the system calls.
    fn bind(&self) -> io::Result<()> {
        Ok(())
    }

    /// Posts one, and wakes the thread that waits. Repeated after a signal.
    ///
    /// # Errors
    /// Those of the system call, except EINTR.
    fn post(&self) -> io::Result<()>;

    /// Waits until something is posted, and returns the instant at which the thread runs again,
    /// ns of CLOCK_MONOTONIC; `None` if a signal ended the wait (see
    /// [`crate::thread::accept_wakes`]). Tokens posted meanwhile may be taken as one.
    ///
    /// # Errors
    /// Those of the system call, except EINTR.
    fn take(&self) -> io::Result<Option<u64>>;
}

/// The end of a wait whose system call had this result.
#[inline(always)]
fn taken(result: libc::c_long) -> io::Result<Option<u64>> {
    if result < 0 { interrupted(io::Error::last_os_error()) } else { Ok(Some(monotonic_ns())) }
}

/// Nothing, for a wait that a signal has ended.
#[cold]
fn interrupted(error: io::Error) -> io::Result<Option<u64>> {
    if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) }
}

/// Makes a system call until no signal interrupts it.
#[inline(always)]
fn posted(mut call: impl FnMut() -> libc::c_long) -> io::Result<()> {
    while call() < 0 {
        interrupted(io::Error::last_os_error())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::thread::{accept_wakes, wake};
    use std::sync::Arc;
    use std::sync::mpsc::channel;
    use std::thread::{sleep, spawn};
    use std::time::Duration;

    type Made = (&'static str, Arc<dyn Token>);

    struct Removed(Semaphores);

    impl Drop for Removed {
        fn drop(&mut self) {
            self.0.remove().unwrap();
        }
    }

    /// Each way, and the semaphores behind one of them.
    fn all(between: Between) -> (Vec<Made>, Removed) {
        let semaphores = Semaphores::make(system_v::free_key(), 1).unwrap();
        let made: Vec<Made> = vec![
            ("eventfd", Arc::new(Event::new().unwrap())),
            ("pipe", Arc::new(Pipe::new().unwrap())),
            ("futex", Arc::new(FutexWord::new(between).unwrap())),
            ("sem", Arc::new(PosixSemaphore::new(between).unwrap())),
            ("svsem", Arc::new(semaphores.one(0))),
            ("mqueue", Arc::new(MessageQueue::new().unwrap())),
            ("signal", Arc::new(Handled::new().unwrap())),
            ("sigwait", Arc::new(SigWait::new().unwrap())),
            ("condvar", Arc::new(PiCondition::new(between).unwrap())),
        ];
        (made, Removed(semaphores))
    }

    #[test]
    fn what_is_posted_wakes_the_thread_that_waits() {
        for between in [Between::Threads, Between::Processes] {
            let (made, semaphores) = all(between);
            for (name, token) in made {
                let (answer, answers) = channel();
                let theirs = Arc::clone(&token);
                let waits = spawn(move || {
                    theirs.bind().unwrap();
                    answer.send(0).unwrap();
                    for _ in 0..200 {
                        while theirs.take().unwrap().is_none() {}
                        answer.send(monotonic_ns()).unwrap();
                    }
                });
                let next = || answers.recv_timeout(Duration::from_secs(10));
                next().unwrap();
                for turn in 0..200 {
                    // Mostly it sleeps by then, and sometimes not.
                    sleep(Duration::from_micros(turn % 20 * 10));
                    let from = monotonic_ns();
                    token.post().unwrap();
                    let at = next().unwrap_or_else(|_| panic!("{name}: {turn} waits for ever"));
                    assert!(at > from, "{name}");
                }
                waits.join().unwrap();
            }
            drop(semaphores);
        }
    }

    #[test]
    fn nobody_takes_what_is_not_posted() {
        let (made, semaphores) = all(Between::Threads);
        for (name, token) in made {
            let (answer, answers) = channel();
            let theirs = Arc::clone(&token);
            spawn(move || {
                theirs.bind().unwrap();
                // What was posted before the wait counts.
                sleep(Duration::from_millis(20));
                answer.send(theirs.take().unwrap()).unwrap();
                answer.send(theirs.take().unwrap()).unwrap();
            });
            sleep(Duration::from_millis(10));
            token.post().unwrap();
            let next = |ms| answers.recv_timeout(Duration::from_millis(ms));
            let at = next(10_000).unwrap().unwrap();
            assert!(at <= monotonic_ns(), "{name}");
            assert!(next(50).is_err(), "{name}: one token was taken twice");
            let from = monotonic_ns();
            token.post().unwrap();
            assert!(next(10_000).unwrap() > Some(from), "{name}");
        }
        drop(semaphores);
    }

    /// A condition is the exception: its poster has to post.
    #[test]
    fn a_signal_ends_a_wait() {
        accept_wakes();
        let (made, semaphores) = all(Between::Threads);
        for (name, token) in made.into_iter().filter(|(name, _)| *name != "condvar") {
            let waits = spawn(move || {
                token.bind().unwrap();
                token.take().unwrap()
            });
            let from = std::time::Instant::now();
            while !waits.is_finished() && from.elapsed() < Duration::from_secs(10) {
                wake(&waits);
                sleep(Duration::from_millis(1));
            }
            assert!(waits.is_finished(), "{name}");
            assert_eq!(waits.join().unwrap(), None, "{name}");
        }
        drop(semaphores);
    }
}
