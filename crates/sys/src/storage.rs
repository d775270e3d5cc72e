//! Direct file access, mapped files and the free space of a file system.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The largest alignment that O_DIRECT requires of buffers, offsets and lengths, bytes.
pub const DIRECT_ALIGNMENT: usize = 4096;

/// Opens a file with O_DIRECT: reads and writes bypass the page cache.
///
/// # Errors
/// `EINVAL` if the file system does not support it; otherwise those of open(2).
pub fn open_direct(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(libc::O_DIRECT).open(path)
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
    fn room_is_within_bounds() {
        let room = room(Path::new("/")).unwrap();
        assert!(room.total > 0 && room.free <= room.total, "{room:?}");
        assert!(super::room(Path::new("/does/not/exist")).is_err());
    }
}
