//! A futex that nobody wakes: the timeout of locks and conditions.

use std::io;
use std::sync::atomic::AtomicU32;

use super::{Wait, Waited, interrupted_or_error};
use crate::futex::wait_until;

/// FUTEX_WAIT_BITSET until an absolute instant, as pthread_cond_timedwait(3) waits.
#[derive(Debug, Default)]
pub struct FutexTimeout {
    word: AtomicU32,
}

impl Wait for FutexTimeout {
    #[inline(always)]
    fn until(&mut self, release_ns: u64) -> io::Result<Waited> {
        match wait_until(&self.word, 0, release_ns) {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(Waited::Released),
            Err(error) => interrupted_or_error(error),
            // Woken although nobody did.
            Ok(()) => Ok(Waited::Interrupted),
        }
    }
}
