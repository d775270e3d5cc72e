//! Mappings of a file, for timing them: made, touched and unmapped (mmap(2), munmap(2)).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::region::page_size;

/// A shared mapping of the first bytes of a file. Dropping it unmaps them. If the file is truncated
/// meanwhile, a touch ends the process by SIGBUS.
#[derive(Debug)]
pub struct FileMapping {
    start: NonNull<u8>,
    bytes: usize,
}

impl FileMapping {
    /// Maps the file, to be read and, if `writable`, written.
    ///
    /// # Errors
    /// Those of mmap(2).
    #[inline]
    pub fn new(file: &File, bytes: usize, writable: bool) -> io::Result<Self> {
        let access = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        let (none, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(none, bytes, access, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Writes a byte in steps of so many, from the first on, below `end`; of a mapping that is
    /// writable, or the process ends.
    pub fn write(&mut self, step: usize, end: usize) {
        for offset in (0..end.min(self.bytes)).step_by(step.max(1)) {
            // SAFETY: within the mapping, of which there are no references. Others may map the file
            // too, but only this value is used to write to it here.
            unsafe { self.start.as_ptr().add(offset).write_volatile(1) };
        }
    }

    /// Reads a byte of each of these pages, by their numbers; those beyond the end are left out.
    /// Returns the sum.
    #[must_use]
    pub fn read(&self, pages: &[u32]) -> u64 {
        let size = page_size();
        let mut sum = 0;
        for page in pages {
            let offset = *page as usize * size;
            if offset < self.bytes {
                // SAFETY: within the mapping; without a reference, as the file may change.
                sum += u64::from(unsafe { self.start.as_ptr().add(offset).read_volatile() });
            }
        }
        sum
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: the whole mapping is ours, and no reference into it exists.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_file_is_written_and_read_through_its_mapping() {
        let (size, pages) = (page_size(), 8);
        let mut file = crate::shared::memory_file(c"punctual-mapped", 0).unwrap();
        assert!(file.write_all(&[3]).is_err(), "it keeps its length");
        let file = crate::shared::memory_file(c"punctual-mapped", (pages * size) as u64).unwrap();
        let mut mapped = FileMapping::new(&file, pages * size, true).unwrap();
        mapped.write(2 * size, 5 * size);
        let all: Vec<u32> = (0..10).collect();
        assert_eq!((mapped.read(&all), mapped.read(&[0, 1, 2, 3, 4])), (3, 3));
        drop(mapped);
        let read_only = FileMapping::new(&file, pages * size, false).unwrap();
        assert_eq!((read_only.read(&all), read_only.read(&[4, 4])), (3, 2));
        let mut byte = [0];
        file.read_at(&mut byte, 4 * size as u64).unwrap();
        assert_eq!(byte, [1]);
    }
}
