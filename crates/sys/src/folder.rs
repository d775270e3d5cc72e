//! Folders held by a descriptor: what is made in them is made there and nowhere else, even if
//! another user renames the folder or puts symbolic links into it.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::check;

/// Permissions of new files before the umask.
const FILE_MODE: libc::c_uint = 0o666;

/// Permissions of new folders before the umask.
const FOLDER_MODE: libc::mode_t = 0o777;

/// An open folder. Names are single components of a path: one with a `/` is refused, and none
/// is followed if it is a symbolic link.
#[derive(Debug)]
pub struct Folder(OwnedFd);

fn name_of(name: &OsStr) -> io::Result<CString> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    Ok(CString::new(bytes)?)
}

fn opened(at: libc::c_int, name: &CString, flags: libc::c_int) -> io::Result<OwnedFd> {
    let flags = flags | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated name; the mode is read if the flags say that a file is made.
    let fd = check(unsafe { libc::openat(at, name.as_ptr(), flags, FILE_MODE) })?;
    // SAFETY: the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Folder {
    /// Opens a folder by its path, through symbolic links.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        opened(libc::AT_FDCWD, &path, libc::O_RDONLY | libc::O_DIRECTORY).map(Self)
    }

    /// Opens a folder in this one.
    ///
    /// # Errors
    /// Those of openat(2); `ELOOP` or `ENOTDIR` if it is a symbolic link.
    pub fn folder(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name_of(name.as_ref())?;
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        opened(self.0.as_raw_fd(), &name, flags).map(Self)
    }

    /// Makes a folder in this one and opens it.
    ///
    /// # Errors
    /// Those of mkdirat(2) and openat(2), such as `EEXIST`.
    pub fn make_folder(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let text = name_of(name.as_ref())?;
        // SAFETY: a NUL-terminated name.
        check(unsafe { libc::mkdirat(self.0.as_raw_fd(), text.as_ptr(), FOLDER_MODE) })?;
        self.folder(name)
    }

    /// Makes a file that is written at its end.
    ///
    /// # Errors
    /// Those of openat(2), such as `EEXIST`, for a symbolic link too.
    pub fn make_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name_of(name.as_ref())?;
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_EXCL;
        Ok(opened(self.0.as_raw_fd(), &name, flags | libc::O_NOFOLLOW)?.into())
    }

    /// Opens a file to read it. A FIFO or a device is not waited for.
    ///
    /// # Errors
    /// Those of openat(2).
    pub fn file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name_of(name.as_ref())?;
        let flags = libc::O_RDONLY | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        Ok(opened(self.0.as_raw_fd(), &name, flags)?.into())
    }

    /// Makes a file anew: what killed writers left under its name goes first, a symbolic link
    /// itself and not what it names.
    ///
    /// # Errors
    /// Those of unlinkat(2) and [`Folder::make_file`].
    pub fn make_file_anew(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name.as_ref();
        match self.remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.make_file(name),
        }
    }

    /// Gives a file another name in this folder, instead of what had that name.
    ///
    /// # Errors
    /// Those of renameat(2).
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let (from, to) = (name_of(from.as_ref())?, name_of(to.as_ref())?);
        let at = self.0.as_raw_fd();
        // SAFETY: two NUL-terminated names.
        check(unsafe { libc::renameat(at, from.as_ptr(), at, to.as_ptr()) }).map(drop)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// Those of unlinkat(2).
    pub fn remove_file(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.remove(name.as_ref(), 0)
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Those of unlinkat(2), such as `ENOTEMPTY`.
    pub fn remove_folder(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        self.remove(name.as_ref(), libc::AT_REMOVEDIR)
    }

    fn remove(&self, name: &OsStr, flags: libc::c_int) -> io::Result<()> {
        let name = name_of(name)?;
        // SAFETY: a NUL-terminated name.
        check(unsafe { libc::unlinkat(self.0.as_raw_fd(), name.as_ptr(), flags) }).map(drop)
    }

    /// Forces the folder's entries to disk.
    ///
    /// # Errors
    /// Those of fsync(2).
    pub fn sync(&self) -> io::Result<()> {
        // SAFETY: an open descriptor.
        check(unsafe { libc::fsync(self.0.as_raw_fd()) }).map(drop)
    }

    /// Takes the lock of the folder (flock(2)), which is held until the file returned and its
    /// copies are closed.
    ///
    /// # Errors
    /// `EWOULDBLOCK` if another process holds it; otherwise those of flock(2).
    pub fn lock(&self) -> io::Result<File> {
        let file = File::from(self.0.try_clone()?);
        file.try_lock()?;
        Ok(file)
    }
}

/// Opens a file to be locked, and makes it if it is not there: what is in it stays.
///
/// # Errors
/// Those of open(2); `ELOOP` if it is a symbolic link.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // For reading too: a FIFO opened for writing alone would wait for a reader.
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW;
    Ok(opened(libc::AT_FDCWD, &path, flags)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("punctual-folder-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn no_link_is_followed() {
        let scratch = Scratch::new("links");
        let victim = scratch.0.join("victim");
        fs::write(&victim, "kept").unwrap();
        fs::create_dir(scratch.0.join("elsewhere")).unwrap();
        let folder = Folder::open(&scratch.0).unwrap().make_folder("a").unwrap();
        symlink(&victim, scratch.0.join("a/link")).unwrap();
        symlink(scratch.0.join("elsewhere"), scratch.0.join("a/folder")).unwrap();

        let error = folder.make_file("link").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(folder.file("link").is_err() && folder.folder("folder").is_err());
        assert!(open_lock(&scratch.0.join("a/link")).is_err());
        folder.make_file_anew("link").unwrap().write_all(b"new").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"kept");
        symlink(&victim, scratch.0.join("a/other")).unwrap();
        folder.rename("link", "other").unwrap();
        assert_eq!(fs::read(scratch.0.join("a/other")).unwrap(), b"new");
        assert_eq!(fs::read(&victim).unwrap(), b"kept");
    }

    #[test]
    fn a_folder_that_is_renamed_is_still_the_one() {
        let scratch = Scratch::new("renamed");
        let folder = Folder::open(&scratch.0).unwrap().make_folder("a").unwrap();
        fs::rename(scratch.0.join("a"), scratch.0.join("b")).unwrap();
        fs::create_dir(scratch.0.join("a")).unwrap();
        drop(folder.make_file("file").unwrap());
        assert!(scratch.0.join("b/file").exists() && !scratch.0.join("a/file").exists());
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        let scratch = Scratch::new("names");
        let folder = Folder::open(&scratch.0).unwrap();
        for name in ["", ".", "..", "a/b", "/etc", "../a"] {
            assert!(folder.make_file(name).is_err(), "{name}");
            assert!(folder.make_folder(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_lock_keeps_what_is_in_its_file() {
        let scratch = Scratch::new("lock");
        let path = scratch.0.join("lock");
        drop(open_lock(&path).unwrap());
        fs::write(&path, "kept").unwrap();
        drop(open_lock(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"kept");
    }
}
