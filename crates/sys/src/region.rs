//! Private anonymous memory whose pages can be touched, swapped out and freed (mmap(2),
//! madvise(2)).

use std::io;
use std::ptr::NonNull;

/// The size of a page, bytes.
#[must_use]
pub fn page_size() -> usize {
    // SAFETY: takes a number only.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A region of private anonymous memory. Dropping it unmaps it.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

impl Region {
    /// Maps `bytes` without any pages yet.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(bytes: usize) -> io::Result<Self> {
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let region = Self { start, bytes };
        // A huge page would turn 512 faults into one. A kernel without them refuses, which is
        // fine.
        let _ = region.advise(libc::MADV_NOHUGEPAGE);
        Ok(region)
    }

    /// Writes to the first byte of every page, so each missing page faults.
    pub fn touch(&mut self) {
        for offset in (0..self.bytes).step_by(page_size()) {
            // SAFETY: the offset lies within the mapping, which is writable and ours alone.
            unsafe { self.start.as_ptr().add(offset).write_volatile(1) };
        }
    }

    /// Asks the kernel to swap the pages out (MADV_PAGEOUT, since Linux 5.4). Without swap
    /// they stay in memory.
    ///
    /// # Errors
    /// Those of madvise(2).
    pub fn page_out(&self) -> io::Result<()> {
        self.advise(libc::MADV_PAGEOUT)
    }

    /// Frees the pages; the next touch faults in fresh ones.
    ///
    /// # Errors
    /// Those of madvise(2).
    pub fn give_back(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_DONTNEED)
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is the mapping, and no reference into it exists.
        match unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the whole mapping is ours, and no reference into it exists.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::thread_faults;

    #[test]
    fn every_page_faults_once_until_it_is_given_back() {
        let pages = 256;
        let mut region = Region::new(pages * page_size()).unwrap();
        let mut faults = || {
            let before = thread_faults().0;
            region.touch();
            let faults = thread_faults().0 - before;
            region.give_back().unwrap();
            faults
        };
        assert!(faults() >= pages as u64);
        assert!(faults() >= pages as u64, "what was given back was still there");
    }
}
