//! Counters in memory shared between processes.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::called;

/// Counters per line.
pub const COUNTERS: usize = 8;

/// A file of this many zero bytes that is only in memory, and keeps its length.
///
/// # Errors
/// Those of memfd_create(2) and ftruncate(2).
pub fn memory_file(name: &CStr, bytes: u64) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a NUL-terminated name; the descriptor is checked and owned by nothing else.
    let file = unsafe {
        let fd = libc::memfd_create(name.as_ptr(), flags);
        File::from_raw_fd(called("memfd_create", fd)?)
    };
    file.set_len(bytes)?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: fcntl with plain numbers on an open descriptor.
    if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// One writer's counters, padded to two cache lines of 64 bytes: CPUs fetch lines in pairs,
/// and some have lines of 128 bytes.
#[repr(C, align(128))]
struct Line([AtomicU64; COUNTERS]);

/// Lines of counters in a memory file that other processes map too. Each writer has a separate
/// line to avoid contention; writers that share one are slower but lose nothing. A reader sums
/// a counter over all lines.
#[derive(Debug)]
pub struct SharedCounters {
    memory: NonNull<Line>,
    lines: usize,
    file: File,
}

// SAFETY: the memory is a shared mapping that lives as long as the value, and
// is accessed through atomics only.
unsafe impl Send for SharedCounters {}
// SAFETY: as above.
unsafe impl Sync for SharedCounters {}

impl SharedCounters {
    /// Creates `lines` lines (at least one), all zero.
    ///
    /// # Errors
    /// Those of memfd_create(2), ftruncate(2) and mmap(2).
    pub fn create(lines: usize) -> io::Result<Self> {
        let bytes = lines.max(1) * size_of::<Line>();
        Self::map(memory_file(c"punctual-load", u64::try_from(bytes).map_err(io::Error::other)?)?)
    }

    /// Maps the memory file that another process created.
    ///
    /// # Errors
    /// `InvalidData` for a file that [`SharedCounters::create`] did not create; otherwise
    /// those of mmap(2).
    pub fn open(fd: OwnedFd) -> io::Result<Self> {
        let file = File::from(fd);
        // A file that could shrink would end its readers with SIGBUS.
        // SAFETY: fcntl with plain numbers on an open descriptor.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        Self::map(file)
    }

    fn map(file: File) -> io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        let lines = bytes / size_of::<Line>();
        if lines == 0 {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        // SAFETY: a new mapping at an address that the kernel chooses.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(address.cast::<Line>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { memory, lines, file })
    }

    /// The memory file, to pass to another process.
    #[must_use]
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Number of lines.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines
    }

    fn table(&self) -> &[Line] {
        // SAFETY: the mapping has `lines` lines, is page-aligned, sealed against shrinking,
        // and lives as long as `self`; zero bytes are valid atomics.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr(), self.lines) }
    }

    /// Adds to a counter of a line; indices beyond the ends wrap.
    pub fn add(&self, line: usize, counter: usize, count: u64) {
        self.table()[line % self.lines].0[counter % COUNTERS].fetch_add(count, Ordering::Relaxed);
    }

    /// Raises a counter of a line to `value` if it is below; indices beyond the ends wrap.
    pub fn raise(&self, line: usize, counter: usize, value: u64) {
        self.table()[line % self.lines].0[counter % COUNTERS].fetch_max(value, Ordering::Relaxed);
    }

    /// Sets a counter of a line to 0; indices beyond the ends wrap.
    pub fn clear(&self, line: usize, counter: usize) {
        self.table()[line % self.lines].0[counter % COUNTERS].store(0, Ordering::Relaxed);
    }

    /// A counter of one line.
    #[must_use]
    pub fn get(&self, line: usize, counter: usize) -> u64 {
        self.table()[line % self.lines].0[counter % COUNTERS].load(Ordering::Relaxed)
    }

    /// The sum of a counter over all lines from `first` on.
    #[must_use]
    pub fn sum(&self, first: usize, counter: usize) -> u64 {
        let lines = self.table().iter().skip(first);
        lines.fold(0, |sum, line| {
            sum.wrapping_add(line.0[counter % COUNTERS].load(Ordering::Relaxed))
        })
    }
}

impl Drop for SharedCounters {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and no reference into it exists any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.lines * size_of::<Line>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_see_the_same_counters() {
        let here = SharedCounters::create(4).unwrap();
        let there = SharedCounters::open(here.as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!(there.lines(), 4);
        std::thread::scope(|scope| {
            for line in 0..4 {
                let there = &there;
                scope.spawn(move || (0..1000).for_each(|_| there.add(line, 2, 3)));
            }
        });
        assert_eq!(here.sum(0, 2), 12_000);
        assert_eq!(here.sum(1, 2), 9_000);
        assert_eq!((here.get(3, 2), here.sum(0, 1)), (3_000, 0));
        there.raise(3, 2, 2_999);
        assert_eq!(here.get(3, 2), 3_000);
        there.raise(3, 2, 3_001);
        assert_eq!(here.get(3, 2), 3_001);
        here.clear(3, 2);
        assert_eq!((there.get(3, 2), there.get(2, 2)), (0, 3_000));
    }

    #[test]
    fn a_file_that_could_shrink_is_refused() {
        let file = File::open("/proc/self/exe").unwrap();
        let error = SharedCounters::open(file.into()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
