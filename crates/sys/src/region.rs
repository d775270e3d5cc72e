//! Memory whose pages can be touched, protected, swapped out and freed (mmap(2), mprotect(2),
//! madvise(2)).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

use crate::error::check;

/// The size of a page, bytes.
#[must_use]
pub fn page_size() -> usize {
    // SAFETY: takes a number only.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// A region of memory. Dropping it unmaps it.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

impl Region {
    /// Maps `bytes` of private anonymous memory without any pages yet.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
    }

    /// The same of memory that forks would share.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn shared(bytes: usize) -> io::Result<Self> {
        Self::map(bytes, libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1)
    }

    /// Maps the first `bytes` of a file: pages that are read are those of the page cache, and what
    /// is written stays here. If the file is truncated meanwhile, SIGBUS ends the process.
    ///
    /// # Errors
    /// `InvalidInput` if the file is shorter; otherwise those of mmap(2).
    pub fn of_file(file: &File, bytes: usize) -> io::Result<Self> {
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Self::map(bytes, libc::MAP_PRIVATE, file.as_raw_fd())
    }

    fn map(bytes: usize, flags: libc::c_int, fd: libc::c_int) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, 0) };
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

    /// Its pages, to be written to. Of memory that forks share, this must be the only process.
    pub fn pages(&mut self) -> std::slice::ChunksExactMut<'_, u8> {
        // SAFETY: the mapping is readable and writable, as large as this, zero or the file's bytes
        // where nothing was written, and borrowed for as long as the slice.
        let all = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) };
        all.chunks_exact_mut(page_size())
    }

    /// Reads the first byte of every page. Returns their sum.
    #[must_use]
    pub fn read(&self) -> u64 {
        let offsets = (0..self.bytes).step_by(page_size());
        // SAFETY: the offset lies within the mapping, which is always readable.
        offsets.map(|at| u64::from(unsafe { self.start.as_ptr().add(at).read_volatile() })).sum()
    }

    /// Where it begins.
    pub(crate) fn start(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Forbids to write to the pages, reads each of them, and allows it again. If other threads of
    /// the process run on other CPUs, those are told by interrupts where the architecture has no
    /// other way.
    ///
    /// # Errors
    /// Those of mprotect(2).
    pub fn protect_and_read(&mut self) -> io::Result<u64> {
        let set = |access| {
            // SAFETY: the range is the mapping, and no reference into it exists.
            check(unsafe { libc::mprotect(self.start.as_ptr().cast(), self.bytes, access) })
        };
        set(libc::PROT_READ)?;
        let sum = self.read();
        set(libc::PROT_READ | libc::PROT_WRITE)?;
        Ok(sum)
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
    fn what_is_written_to_the_map_of_a_file_stays_out_of_it() {
        let path = std::env::temp_dir().join(format!("punctual-region-{}", std::process::id()));
        let bytes = 4 * page_size();
        std::fs::write(&path, vec![3; bytes]).unwrap();
        let file = File::open(&path).unwrap();
        let mut region = Region::of_file(&file, bytes).unwrap();
        assert_eq!(region.protect_and_read().unwrap(), 12);
        region.touch();
        assert_eq!(region.read(), 4);
        assert!(Region::of_file(&file, bytes + 1).is_err(), "reading it would end the process");
        assert!(std::fs::read(&path).unwrap().iter().all(|byte| *byte == 3));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn shared_memory_is_seen_by_a_fork() {
        let mut region = Region::shared(2 * page_size()).unwrap();
        // Another thread of the tests may hold a lock, but nothing here allocates.
        // SAFETY: the child only writes to its memory and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            region.touch();
            // SAFETY: ends the process without running anything else.
            unsafe { libc::_exit(0) };
        }
        crate::process::wait(child).unwrap();
        assert_eq!(region.read(), 2);
    }

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
