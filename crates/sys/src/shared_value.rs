//! A value in memory that a process and those that it forks later share (mmap(2)).

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;

/// A value that a fork has too, at the same address, rather than a copy of it.
#[derive(Debug)]
pub struct SharedValue<T> {
    place: NonNull<T>,
}

// SAFETY: it owns its value, like a Box.
unsafe impl<T: Send> Send for SharedValue<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SharedValue<T> {}

impl<T> SharedValue<T> {
    /// Puts a value into pages of its own. It must not need more than the alignment of a page.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(value: T) -> io::Result<Self> {
        const { assert!(align_of::<T>() <= 4096 && size_of::<T>() > 0) }
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let place = NonNull::new(start.cast::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the mapping is large enough, aligned to a page, and nobody else has it.
        unsafe { place.as_ptr().write(value) };
        Ok(Self { place })
    }
}

impl<T> Deref for SharedValue<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `new` has written a value, which lives as long as this.
        unsafe { self.place.as_ref() }
    }
}

impl<T> Drop for SharedValue<T> {
    fn drop(&mut self) {
        // SAFETY: the value and its mapping belong to this, and no reference to it is left.
        unsafe {
            self.place.as_ptr().drop_in_place();
            libc::munmap(self.place.as_ptr().cast(), size_of::<T>());
        }
    }
}
