//! A mutex of two system calls (futex(2)): with priority inheritance, or without.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::futex::{self, Scope};

/// What the kernel does for a thread that holds a mutex which a more urgent one waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// It has the priority of the most urgent thread that waits, until it unlocks
    /// (`FUTEX_LOCK_PI`; Documentation/locking/pi-futex.rst).
    Inherit,
    /// Nothing (`FUTEX_WAIT`; mutex 2 of Drepper, "Futexes Are Tricky", 2011).
    None,
}

/// A mutex between threads of one process. As in pthreads, a lock or unlock that finds nobody else
/// makes no system call.
#[derive(Debug)]
pub struct Mutex {
    /// With inheritance the kernel's number of the thread that holds it, and `FUTEX_WAITERS`;
    /// without, one of the states below.
    word: AtomicU32,
    protocol: Protocol,
}

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const WAITED_FOR: u32 = 2;

impl Mutex {
    /// A free one.
    #[must_use]
    pub const fn new(protocol: Protocol) -> Self {
        Self { word: AtomicU32::new(FREE), protocol }
    }

    /// Locks it for the calling thread, whose number ([`crate::thread::id`]) this is; waits as long
    /// as that takes, whatever signals come.
    ///
    /// # Errors
    /// Those of futex(2): ENOSYS without `CONFIG_FUTEX_PI`, EDEADLK for the thread that holds it.
    pub fn lock(&self, thread: i32) -> io::Result<()> {
        if self.protocol == Protocol::Inherit {
            return futex::lock_pi(&self.word, Scope::Private, thread.cast_unsigned());
        }
        let taken = self.word.compare_exchange(FREE, LOCKED, Ordering::Acquire, Ordering::Relaxed);
        if taken.is_ok() {
            return Ok(());
        }
        while self.word.swap(WAITED_FOR, Ordering::Acquire) != FREE {
            match futex::wait(&self.word, Scope::Private, WAITED_FOR) {
                // It had changed before the wait began, or a signal came.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) => {}
                ended => ended?,
            }
        }
        Ok(())
    }

    /// Unlocks it. The caller must be the thread that holds it.
    ///
    /// # Errors
    /// Those of futex(2): EPERM with inheritance if another thread holds it.
    pub fn unlock(&self, thread: i32) -> io::Result<()> {
        if self.protocol == Protocol::Inherit {
            return futex::unlock_pi(&self.word, Scope::Private, thread.cast_unsigned());
        }
        match self.word.swap(FREE, Ordering::Release) {
            WAITED_FOR => futex::wake_one(&self.word, Scope::Private),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::id;
    use std::cell::UnsafeCell;
    use std::sync::Arc;
    use std::thread::{sleep, spawn};
    use std::time::Duration;

    struct Guarded(Mutex, UnsafeCell<u64>);
    // SAFETY: the cell is used by the thread that holds the mutex only.
    unsafe impl Sync for Guarded {}

    #[test]
    fn no_two_threads_hold_it() {
        for protocol in [Protocol::Inherit, Protocol::None] {
            let shared = Arc::new(Guarded(Mutex::new(protocol), UnsafeCell::new(0)));
            let add = |shared: Arc<Guarded>| {
                move || {
                    for _ in 0..20_000 {
                        shared.0.lock(id()).unwrap();
                        // SAFETY: this thread holds the mutex.
                        unsafe { *shared.1.get() += 1 };
                        shared.0.unlock(id()).unwrap();
                    }
                }
            };
            let threads: Vec<_> = (0..4).map(|_| spawn(add(shared.clone()))).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            // SAFETY: no other thread is left.
            assert_eq!(unsafe { *shared.1.get() }, 80_000, "{protocol:?}");
        }
    }

    #[test]
    fn who_comes_second_waits_until_it_is_free() {
        for protocol in [Protocol::Inherit, Protocol::None] {
            let mutex = Arc::new(Mutex::new(protocol));
            mutex.lock(id()).unwrap();
            let theirs = Arc::clone(&mutex);
            let second = spawn(move || {
                theirs.lock(id()).unwrap();
                theirs.unlock(id()).unwrap();
            });
            sleep(Duration::from_millis(50));
            assert!(!second.is_finished(), "{protocol:?}");
            mutex.unlock(id()).unwrap();
            second.join().unwrap();
        }
    }

    #[test]
    fn what_the_kernel_refuses_is_told() {
        let mutex = Mutex::new(Protocol::Inherit);
        mutex.lock(id()).unwrap();
        assert_eq!(mutex.lock(id()).unwrap_err().raw_os_error(), Some(libc::EDEADLK));
        let other = spawn(move || mutex.unlock(id()).unwrap_err().raw_os_error());
        assert_eq!(other.join().unwrap(), Some(libc::EPERM));
    }
}
