//! Folders held by a descriptor: what is made in them is made there and nowhere else, even if
//! another user renames the folder or puts symbolic links into it.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use crate::error::check;

/// Permissions of new files before the umask.
const FILE_MODE: libc::c_uint = 0o666;

/// Permissions of new folders before the umask.
const FOLDER_MODE: libc::mode_t = 0o777;

/// Permissions of new folders that are nobody else's business.
const PRIVATE_MODE: libc::mode_t = 0o700;

/// Whether a folder could not be opened because it is none; a symbolic link is none.
#[must_use]
pub fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP))
}

/// An open folder. Names are single components of a path: one with a `/` is refused, and none
/// is followed if it is a symbolic link.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn name_of(name: &OsStr) -> io::Result<CString> {
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"));
    }
    Ok(CString::new(bytes)?)
}

fn opened(at: libc::c_int, name: &CStr, flags: libc::c_int) -> io::Result<OwnedFd> {
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

    /// Opens a folder by an absolute path of which no component may be a symbolic link, so that
    /// nobody who owns one of them can lead elsewhere. It needs no right to list them; the
    /// folder can neither be locked nor forced to disk.
    ///
    /// # Errors
    /// Those of openat(2); `ENOTDIR` for a symbolic link; `InvalidInput` for a path that is not
    /// absolute or has a `..`.
    pub fn open_plain(path: &Path) -> io::Result<Self> {
        if !path.is_absolute() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path"));
        }
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let mut at = opened(libc::AT_FDCWD, c"/", flags)?;
        for component in path.components() {
            if component != Component::RootDir {
                at = opened(at.as_raw_fd(), &name_of(component.as_os_str())?, flags)?;
            }
        }
        Ok(Self(at))
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
        self.make(name.as_ref(), FOLDER_MODE)
    }

    /// Makes a folder that only its owner may use (mode 0700) and opens it.
    ///
    /// # Errors
    /// Those of [`Folder::make_folder`]; `EEXIST` too if another was put in its place meanwhile.
    pub fn make_private_folder(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        let folder = self.make(name, PRIVATE_MODE)?;
        let seen = folder.metadata().and_then(|found| Ok((found.uid(), folder.names()?)));
        let (owner, names) = seen.inspect_err(|_| self.unmake(name))?;
        if owner != crate::process::effective_uid() || !names.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EEXIST));
        }
        Ok(folder)
    }

    fn make(&self, name: &OsStr, mode: libc::mode_t) -> io::Result<Self> {
        let text = name_of(name)?;
        // SAFETY: a NUL-terminated name.
        check(unsafe { libc::mkdirat(self.0.as_raw_fd(), text.as_ptr(), mode) })?;
        self.folder(name).inspect_err(|_| self.unmake(name))
    }

    /// Removes what was made and cannot be used: nobody would know of it.
    fn unmake(&self, name: &OsStr) {
        let _ = self.remove_folder(name);
    }

    /// What the file system says of the folder itself.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.try_clone_file()?.metadata()
    }

    /// Makes it the working directory of this process.
    ///
    /// # Errors
    /// Those of fchdir(2).
    pub fn enter(&self) -> io::Result<()> {
        // SAFETY: an open descriptor.
        check(unsafe { libc::fchdir(self.0.as_raw_fd()) }).map(drop)
    }

    /// The names of what is in it, in no order.
    ///
    /// # Errors
    /// Those of openat(2) and getdents(2).
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        // Opened anew: two descriptors of one opening would share their place in the list.
        let list = opened(self.0.as_raw_fd(), c".", libc::O_RDONLY | libc::O_DIRECTORY)?;
        // SAFETY: an open folder, which belongs to the stream from here on.
        let stream = unsafe { libc::fdopendir(list.as_raw_fd()) };
        if stream.is_null() {
            return Err(io::Error::last_os_error());
        }
        let _ = list.into_raw_fd();
        let mut names = Vec::new();
        let end = loop {
            // SAFETY: errno is this thread's own, and the stream is open.
            let entry = unsafe {
                *libc::__errno_location() = 0;
                libc::readdir(stream)
            };
            if entry.is_null() {
                break io::Error::last_os_error();
            }
            // SAFETY: the entry is valid until the next call, its name NUL-terminated.
            let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) }.to_bytes();
            if ![&b"."[..], b".."].contains(&name) {
                names.push(OsString::from_vec(name.to_vec()));
            }
        };
        // SAFETY: the stream is open, and not used again.
        unsafe { libc::closedir(stream) };
        if end.raw_os_error() == Some(0) { Ok(names) } else { Err(end) }
    }

    /// Removes everything in it but the file `spared`; symbolic links themselves, and nothing
    /// that they name.
    ///
    /// # Errors
    /// Those of [`Folder::names`] and unlinkat(2); what comes later is then still there.
    pub fn clear(&self, spared: &str) -> io::Result<()> {
        let names = self.names()?;
        names.iter().filter(|name| *name != spared).try_for_each(|name| self.remove_all(name))
    }

    /// Removes a file, or a folder with everything in it.
    fn remove_all(&self, name: &OsStr) -> io::Result<()> {
        match self.folder(name) {
            Ok(folder) => {
                folder.names()?.iter().try_for_each(|name| folder.remove_all(name))?;
                self.remove_folder(name)
            }
            Err(error) if is_no_folder(&error) => self.remove_file(name),
            Err(error) => Err(error),
        }
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

    /// Opens a file to write at its end, and makes it if it is not there.
    ///
    /// # Errors
    /// Those of openat(2); `ELOOP` for a symbolic link.
    pub fn append(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        let name = name_of(name.as_ref())?;
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_NOFOLLOW;
        Ok(opened(self.0.as_raw_fd(), &name, flags | libc::O_NONBLOCK)?.into())
    }

    /// Opens a folder in this one, and makes it if it is not there.
    ///
    /// # Errors
    /// Those of [`Folder::make_folder`] but `EEXIST`, and of [`Folder::folder`].
    pub fn folder_or_new(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = name.as_ref();
        match self.make_folder(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.folder(name),
            result => result,
        }
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

    /// Replaces the content of a file: readers get the old content or the new, after a power cut
    /// too. On disk when this returns.
    ///
    /// # Errors
    /// The file system's error; the old file is then unchanged.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let temporary = format!(".{name}.new");
        let mut file = self.make_file_anew(&temporary)?;
        let written = file.write_all(content).and_then(|()| file.sync_all());
        written.and_then(|()| self.rename(&temporary, name)).inspect_err(|_| {
            let _ = self.remove_file(&temporary);
        })?;
        self.sync()
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

    /// Another descriptor of it, which keeps a lock on the folder.
    pub(crate) fn try_clone_file(&self) -> io::Result<File> {
        Ok(File::from(self.0.try_clone()?))
    }
}

/// A file that is locked (flock(2)) until this is dropped.
#[derive(Debug)]
pub struct Locked(pub File);

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing is not enough: a child that has not reached its exec(2) yet has copies of all
        // descriptors.
        let _ = self.0.unlock();
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
    fn a_folder_is_emptied_and_nothing_that_links_name() {
        let scratch = Scratch::new("clear");
        let root = scratch.0.canonicalize().unwrap();
        fs::create_dir_all(root.join("a/deep/er")).unwrap();
        fs::create_dir(root.join("elsewhere")).unwrap();
        for file in ["a/deep/er/file", "a/spared", "elsewhere/kept"] {
            fs::write(root.join(file), "").unwrap();
        }
        symlink(root.join("elsewhere"), root.join("a/deep/link")).unwrap();
        let folder = Folder::open_plain(&root.join("a")).unwrap();
        folder.clear("spared").unwrap();
        assert_eq!(folder.names().unwrap(), ["spared"]);
        assert!(root.join("elsewhere/kept").exists());
    }

    #[test]
    fn no_component_of_a_plain_path_is_a_link() {
        let scratch = Scratch::new("plain");
        let root = scratch.0.canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink(root.join("a"), root.join("link")).unwrap();
        assert!(Folder::open_plain(&root.join("a/b")).is_ok());
        for path in ["link/b", "link", "a/b/../b"] {
            let error = Folder::open_plain(&root.join(path)).unwrap_err();
            assert!(is_no_folder(&error) || path.contains(".."), "{path}: {error}");
        }
        assert!(Folder::open_plain(Path::new("tmp")).is_err());
    }

    #[test]
    fn a_private_folder_is_for_its_owner_alone() {
        let scratch = Scratch::new("private");
        let folder = Folder::open(&scratch.0).unwrap();
        let private = folder.make_private_folder("a").unwrap();
        assert_eq!(private.metadata().unwrap().mode() & 0o777, 0o700);
        let error = folder.make_private_folder("a").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
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
    fn a_lock_ends_with_its_holder_though_a_child_has_a_copy() {
        let scratch = Scratch::new("copied-lock");
        let path = scratch.0.join("lock");
        let held = Locked(open_lock(&path).unwrap());
        held.0.try_lock().unwrap();
        let copy = held.0.try_clone().unwrap();
        let another = open_lock(&path).unwrap();
        another.try_lock().unwrap_err();
        drop(held);
        another.try_lock().unwrap();
        drop(copy);
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
