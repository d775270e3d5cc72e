//! A POSIX semaphore without a name (sem_overview(7)), as the C library makes it: a futex.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

use super::{Between, Token, posted, taken};
use crate::error::called;
use crate::shared_value::SharedValue;

struct Place(UnsafeCell<MaybeUninit<libc::sem_t>>);

// SAFETY: only the functions of the C library access it, which are made for several threads.
unsafe impl Sync for Place {}

/// A semaphore of the C library. musl's looks at it 100 times before it sleeps, glibc's does not.
pub struct PosixSemaphore(SharedValue<Place>);

impl PosixSemaphore {
    /// A semaphore at 0.
    ///
    /// # Errors
    /// Those of mmap(2) and sem_init(3).
    pub fn new(between: Between) -> io::Result<Self> {
        let made = Self(SharedValue::new(Place(UnsafeCell::new(MaybeUninit::uninit())))?);
        let shared = libc::c_int::from(between == Between::Processes);
        // SAFETY: memory of the right size, which stays where it is.
        called("sem_init", unsafe { libc::sem_init(made.get(), shared, 0) })?;
        Ok(made)
    }

    #[inline(always)]
    fn get(&self) -> *mut libc::sem_t {
        self.0.0.get().cast()
    }
}

impl Token for PosixSemaphore {
    #[inline]
    fn post(&self) -> io::Result<()> {
        // SAFETY: a semaphore that `new` has initialised.
        posted(|| libc::c_long::from(unsafe { libc::sem_post(self.get()) }))
    }

    #[inline]
    fn take(&self) -> io::Result<Option<u64>> {
        // SAFETY: as above.
        taken(libc::c_long::from(unsafe { libc::sem_wait(self.get()) }))
    }
}
