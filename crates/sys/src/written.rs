//! Folders that are being written: their writer holds a lock on them (flock(2)) for its life,
//! which every user can see, and which ends with the writer however that ends.

use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::folder::{Folder, Locked};
use crate::process::effective_uid;

/// How often a lock is tried to be taken: who only looks whether it is held has it for a moment.
const TRIES: u32 = 20;

const PAUSE: Duration = Duration::from_millis(5);

/// Takes the lock of a folder, until it is dropped or the process ends.
///
/// # Errors
/// `EWOULDBLOCK` if another process holds it; otherwise those of flock(2).
pub fn lock(folder: &Folder) -> io::Result<Locked> {
    let file = folder.try_clone_file()?;
    for _ in 1..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => sleep(PAUSE),
            result => return result.map(|()| Locked(file)).map_err(io::Error::from),
        }
    }
    file.try_lock()?;
    Ok(Locked(file))
}

/// Whether a process, of whatever user, holds the lock of this folder. `false` if it cannot be
/// read.
#[must_use]
pub fn is_written(folder: &Path) -> bool {
    let file = Folder::open(folder).and_then(|folder| folder.try_clone_file());
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The process that holds the lock of this folder, if `/proc/locks` tells: not on file systems
/// whose files have other numbers there than stat(2) says, nor from outside its PID namespace.
#[must_use]
pub fn writer_of(folder: &Path) -> Option<u32> {
    let of = fs::metadata(folder).ok()?;
    let (major, minor) = (libc::major(of.dev()), libc::minor(of.dev()));
    let file = format!("{major:02x}:{minor:02x}:{}", of.ino());
    holder(&fs::read_to_string("/proc/locks").ok()?, &file)
}

/// The process that has locked a file, in the text of `/proc/locks` (proc_locks(5)).
fn holder(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        // A line that goes on with "->" is of a process that waits.
        match line.split_ascii_whitespace().skip(1).collect::<Vec<_>>()[..] {
            ["FLOCK", _, "WRITE", pid, of, ..] if of == file => pid.parse().ok(),
            _ => None,
        }
    })
}

/// Who else can replace what this process makes in a folder, in words that end with "can replace
/// what is in it"; `None` if nobody but root and, below sudo(8), the user that it serves.
#[must_use]
pub fn who_can_replace(parent: &Path) -> Option<String> {
    let metadata = fs::metadata(parent).ok()?;
    let (me, owner) = (effective_uid(), metadata.uid());
    let sudo = || std::env::var("SUDO_UID").ok()?.parse::<u32>().ok();
    let whose = if ![0, me].contains(&owner) && (me != 0 || sudo() != Some(owner)) {
        format!("belongs to user {owner}, who")
    } else if metadata.mode() & 0o1002 == 0o002 {
        "may be written to by every user, who".to_owned()
    } else {
        return None;
    };
    Some(format!("{} {whose} can replace what is in it", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_written_as_long_as_its_lock_is_held() {
        let path = std::env::temp_dir().join(format!("punctual-written-{}", std::process::id()));
        fs::create_dir(&path).unwrap();
        let folder = Folder::open(&path).unwrap();
        assert!(!is_written(&path));
        let held = lock(&folder).unwrap();
        assert!(is_written(&path));
        assert_eq!(writer_of(&path), Some(std::process::id()));
        assert_eq!(
            lock(&Folder::open(&path).unwrap()).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(held);
        assert!(!is_written(&path) && writer_of(&path).is_none());
        fs::remove_dir(&path).unwrap();
        assert!(!is_written(&path));
    }

    #[test]
    fn the_holder_is_told_from_those_that_wait_and_read() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 08:01:12 0 EOF\n\
                     2: FLOCK  ADVISORY  READ 8 08:01:12 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 9 00:2a:12 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 10 00:2a:13 0 EOF\n\
                     garbage\n";
        assert_eq!(holder(locks, "00:2a:12"), Some(9));
        assert_eq!(holder(locks, "08:01:12"), None);
        assert_eq!(holder(locks, "00:2a:13"), None);
    }
}
