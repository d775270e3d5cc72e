//! A condition variable whose mutex has priority inheritance, as librtpi makes it: the kernel moves
//! the thread that waits from the condition to the mutex (FUTEX_CMP_REQUEUE_PI). glibc does that
//! no longer, and musl never did: their conditions wake the thread, which then locks the mutex.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Between, Token};
use crate::clock::monotonic_ns;
use crate::futex::{Scope, lock_pi, requeue_pi, unlock_pi, wait_requeue_pi};
use crate::shared_value::SharedValue;

/// A mutex, a condition, and whether a token is there. A wait ends when somebody posts and by
/// nothing else: the kernel repeats it after a signal.
#[derive(Debug)]
pub struct PiCondition {
    words: SharedValue<Words>,
    scope: Scope,
}

#[derive(Debug)]
struct Words {
    mutex: AtomicU32,
    /// Changes with each post.
    condition: AtomicU32,
    /// Whether there is a token; only with the mutex.
    posted: AtomicU32,
}

thread_local! {
    static OWN_ID: Cell<u32> = const { Cell::new(0) };
}

/// The kernel's ID of the calling thread, asked for once. A process that was forked has another
/// one: only what comes after the fork may call this.
#[inline(always)]
fn own_id() -> u32 {
    if OWN_ID.get() == 0 {
        OWN_ID.set(crate::thread::id().cast_unsigned());
    }
    OWN_ID.get()
}

impl PiCondition {
    /// A condition without a token.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(between: Between) -> io::Result<Self> {
        let zero = || AtomicU32::new(0);
        let words = Words { mutex: zero(), condition: zero(), posted: zero() };
        Ok(Self { words: SharedValue::new(words)?, scope: between.scope() })
    }

    #[inline(always)]
    fn lock(&self) -> io::Result<()> {
        lock_pi(&self.words.mutex, self.scope, own_id())
    }

    #[inline(always)]
    fn unlock(&self) -> io::Result<()> {
        unlock_pi(&self.words.mutex, self.scope, own_id())
    }
}

impl Token for PiCondition {
    #[inline]
    fn post(&self) -> io::Result<()> {
        let words = &*self.words;
        self.lock()?;
        words.posted.store(1, Ordering::Relaxed);
        // Only with the mutex: nobody else changes it.
        let value = words.condition.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        requeue_pi(&words.condition, self.scope, value, &words.mutex)?;
        self.unlock()
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        let words = &*self.words;
        self.lock()?;
        while words.posted.swap(0, Ordering::Relaxed) == 0 {
            let value = words.condition.load(Ordering::Relaxed);
            self.unlock()?;
            match wait_requeue_pi(&words.condition, self.scope, value, &words.mutex) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.lock()?,
                Err(error) => return Err(error),
            }
        }
        let now = monotonic_ns();
        self.unlock()?;
        Ok(Some(now))
    }
}
