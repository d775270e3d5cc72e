//! A futex: the word is 1 while a token is there.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Between, Token, interrupted};
use crate::clock::monotonic_ns;
use crate::futex::{Scope, wait, wake_one};
use crate::shared_value::SharedValue;

/// A word and the threads that wait for it.
#[derive(Debug)]
pub struct FutexWord {
    word: SharedValue<AtomicU32>,
    scope: Scope,
}

impl Between {
    pub(super) fn scope(self) -> Scope {
        if self == Self::Threads { Scope::Private } else { Scope::Shared }
    }
}

impl FutexWord {
    /// A word without a token.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(between: Between) -> io::Result<Self> {
        Ok(Self { word: SharedValue::new(AtomicU32::new(0))?, scope: between.scope() })
    }
}

impl Token for FutexWord {
    #[inline]
    fn post(&self) -> io::Result<()> {
        self.word.store(1, Ordering::Release);
        wake_one(&self.word, self.scope)
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        while self.word.swap(0, Ordering::Acquire) == 0 {
            if let Err(error) = wait(&self.word, self.scope, 0)
                && error.kind() != io::ErrorKind::WouldBlock
            {
                return interrupted(error);
            }
        }
        Ok(Some(monotonic_ns()))
    }
}
