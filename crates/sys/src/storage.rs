//! Direct file access, mapped files and the free space of a file system.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// The largest alignment that O_DIRECT requires of buffers, offsets and lengths, bytes.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// Opens a file with O_DIRECT: reads and writes bypass the page cache.
///
/// # Errors
/// `EINVAL` if the file system does not support it; otherwise those of open(2).
pub fn open_direct(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(libc::O_DIRECT).open(path)
}

/// Makes a file in `folder` that has no name, to read and to write: it is gone once it is closed,
/// however this process ends. Where the file system has no such files (O_TMPFILE), it has a name
/// until this returns.
///
/// # Errors
/// Those of open(2) and unlink(2).
pub fn unnamed_file(folder: &Path) -> io::Result<File> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE | libc::O_EXCL).open(folder) {
        // EISDIR: a kernel that does not know the flag.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {}
        opened => return opened,
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!(".punctual-{}-{number}", std::process::id()));
    let file = options.create_new(true).custom_flags(libc::O_NOFOLLOW).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// How long a write of a file lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synced {
    /// Until the data are on the disk (O_DSYNC).
    Data,
    /// Until everything about the file is, too (O_SYNC).
    All,
}

/// Opens a file whose writes wait for the disk, with O_DIRECT if asked.
///
/// # Errors
/// `EINVAL` if the file system does not support O_DIRECT; otherwise those of open(2).
pub fn open_synced(
    options: &mut OpenOptions,
    path: &Path,
    synced: Synced,
    direct: bool,
) -> io::Result<File> {
    let sync = if synced == Synced::Data { libc::O_DSYNC } else { libc::O_SYNC };
    options.custom_flags(sync | if direct { libc::O_DIRECT } else { 0 }).open(path)
}

/// Asks the kernel to drop what it has of a file in memory, so that the next read waits for the
/// disk. Nothing is dropped that is not on the disk yet, or of a file that is only in memory.
pub fn drop_cached(file: &File) {
    // SAFETY: an open descriptor and plain numbers. It is advice: a refusal changes nothing.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// The share of a file that is in memory, 0 to 1 (mincore(2)).
///
/// # Errors
/// Those of mmap(2) and mincore(2). Nothing of an empty file is.
pub fn share_cached(file: &File) -> io::Result<f64> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(0.0);
    }
    let pages = length.div_ceil(crate::region::page_size());
    let mut there = vec![0_u8; pages];
    let fd = file.as_raw_fd();
    // SAFETY: a new mapping at an address that the kernel chooses, which is not accessed and is
    // unmapped once; the vector has a byte for each of its pages.
    let answered = unsafe {
        // One that can be read would be read at once where memory is locked (mlockall).
        let (none, access) = (std::ptr::null_mut(), libc::PROT_NONE);
        let address = libc::mmap(none, length, access, libc::MAP_SHARED, fd, 0);
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let answered =
            crate::error::called("mincore", libc::mincore(address, length, there.as_mut_ptr()));
        libc::munmap(address, length);
        answered
    };
    answered?;
    let cached = there.iter().filter(|page| **page & 1 == 1).count();
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53 pages")]
    Ok(cached as f64 / pages as f64)
}

/// Space of a file system, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Total.
    pub total: u64,
    /// Available to unprivileged users.
    pub free: u64,
    /// Whether the files are in memory (tmpfs or ramfs).
    pub in_memory: bool,
}

/// Whether this process may write to a file or folder, by its real user ID (access(2)).
#[must_use]
pub fn may_write(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: `path` ends with a NUL byte.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

/// The space of the file system that contains `path`.
///
/// # Errors
/// Those of statfs(2).
pub fn room(path: &Path) -> io::Result<Room> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a NUL-terminated path and valid memory, filled on success.
    let stat = unsafe {
        let mut stat: libc::statfs = std::mem::zeroed();
        if libc::statfs(path.as_ptr(), &raw mut stat) < 0 {
            return Err(io::Error::last_os_error());
        }
        stat
    };
    #[allow(clippy::useless_conversion, reason = "the libcs differ about its type")]
    let block = u64::try_from(stat.f_bsize).unwrap_or(0);
    // linux/magic.h
    const RAMFS_MAGIC: i128 = 0x8584_58f6;
    let kind = i128::from(stat.f_type);
    Ok(Room {
        total: stat.f_blocks.saturating_mul(block),
        free: stat.f_bavail.saturating_mul(block),
        in_memory: kind == i128::from(libc::TMPFS_MAGIC) || kind == RAMFS_MAGIC,
    })
}

/// A file that is mapped to be read, with its pages of the page cache. Dropping it unmaps it.
#[derive(Debug)]
pub struct Mapped {
    start: NonNull<u64>,
    bytes: usize,
}

impl Mapped {
    /// Maps the first `bytes` of a file. If the file is truncated meanwhile, SIGBUS ends the
    /// process.
    ///
    /// # Errors
    /// `InvalidInput` if the file is shorter; otherwise those of mmap(2).
    pub fn new(file: &File, bytes: usize) -> io::Result<Self> {
        if file.metadata()?.len() < bytes as u64 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (none, access, fd) = (std::ptr::null_mut(), libc::PROT_READ, file.as_raw_fd());
        // SAFETY: a new mapping at an address that the kernel chooses.
        let start = unsafe { libc::mmap(none, bytes, access, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// The sum of its whole words of 8 bytes, modulo 2^64.
    #[must_use]
    pub fn sum_words(&self) -> u64 {
        let count = self.bytes / size_of::<u64>();
        // SAFETY: the mapping is readable, aligned to a page, and so long.
        unsafe { crate::words::sum_from(self.start.as_ptr(), count) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the whole mapping is ours, and no reference into it exists.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Maps a file, reads every byte of the mapping and returns their sum. If the file is
/// truncated meanwhile, SIGBUS ends the process.
///
/// # Errors
/// Those of mmap(2). An empty file sums to 0.
pub fn sum_mapped(file: &File) -> io::Result<u64> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if length == 0 {
        return Ok(0);
    }
    // SAFETY: a new private mapping at an address that the kernel chooses, read byte by byte
    // within its length (without references, because others may write to the file) and
    // unmapped once.
    unsafe {
        let address = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        );
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let bytes = address.cast::<u8>();
        let sum = (0..length)
            .fold(0_u64, |sum, at| sum.wrapping_add(u64::from(bytes.add(at).read_volatile())));
        libc::munmap(address, length);
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapped_file_sums_to_its_bytes() {
        let path = std::env::temp_dir().join(format!("punctual-sum-{}", std::process::id()));
        let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        std::fs::write(&path, &bytes).unwrap();
        let sum = sum_mapped(&File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(sum.unwrap(), bytes.iter().map(|&b| u64::from(b)).sum());
    }

    #[test]
    fn a_mapping_sums_to_its_words_and_is_that_of_the_file() {
        use std::os::unix::fs::FileExt;
        let file = unnamed_file(&std::env::temp_dir()).unwrap();
        let words: Vec<u64> = (1..=1000).collect();
        let write = |at: u64, word: u64| file.write_all_at(&word.to_ne_bytes(), at * 8).unwrap();
        words.iter().for_each(|word| write(word - 1, *word));
        let mapped = Mapped::new(&file, 8000).unwrap();
        assert_eq!(mapped.sum_words(), 500_500);
        write(0, 2);
        assert_eq!(mapped.sum_words(), 500_501);
        assert!(Mapped::new(&file, 8001).is_err(), "reading it would end the process");
    }

    /// A process that measures has its memory locked, in which a mapping is read at once.
    #[test]
    fn to_ask_what_is_cached_reads_nothing() {
        use crate::partner::Partner;
        use std::os::unix::fs::FileExt;
        let folder = Path::new("/var/tmp");
        let file = unnamed_file(folder).unwrap();
        file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
        file.sync_all().unwrap();
        if room(folder).unwrap().in_memory {
            return;
        }
        let cpus = crate::affinity::get().unwrap();
        let asks = || {
            if crate::memory::lock_all(1 << 20).is_err() {
                return Ok(());
            }
            drop_cached(&file);
            match share_cached(&file)? {
                share if share < 0.02 => Ok(()),
                _ => Err(io::Error::from_raw_os_error(libc::EIO)),
            }
        };
        let partner = Partner::fork(&[std::os::fd::AsFd::as_fd(&file)], &cpus, asks).unwrap();
        let said = partner.explain(io::ErrorKind::Other.into()).to_string();
        assert_eq!(said, "the other process exited with status 0");
    }

    #[test]
    fn a_file_without_a_name_is_seen_by_nobody() {
        use std::os::unix::fs::{FileExt, MetadataExt};
        let folder = std::env::temp_dir().join(format!("punctual-unnamed-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let file = unnamed_file(&folder).unwrap();
        file.write_all_at(b"kept", 0).unwrap();
        let mut read = [0; 4];
        file.read_exact_at(&mut read, 0).unwrap();
        assert_eq!((&read, file.metadata().unwrap().nlink()), (b"kept", 0));
        assert_eq!(share_cached(&file).unwrap(), 1.0);
        file.set_len(0).unwrap();
        assert_eq!(share_cached(&file).unwrap(), 0.0);
        // Not empty if the file had a name.
        std::fs::remove_dir(&folder).unwrap();
        assert!(unnamed_file(&folder).is_err());
    }

    #[test]
    fn room_is_within_bounds() {
        let room = room(Path::new("/")).unwrap();
        assert!(room.total > 0 && room.free <= room.total, "{room:?}");
        assert!(super::room(Path::new("/does/not/exist")).is_err());
    }
}
