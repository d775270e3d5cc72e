//! The cache of fetched packages and unpacked kernels.
//!
//! ```text
//! kernels/.lock                        locked by whoever adds to it
//! kernels/debian/PACKAGE_VERSION/      an unpacked package, with the sums of its files
//! kernels/vmlinux/SHA256               the ELF file in the bzImage of this hash
//! kernels/vmlinux/SHA256.sha256        the sum of that file itself
//! kernels/partial-NAME/                being written, then renamed to one of the above
//! ```
//!
//! Whatever has its final name is complete, because it gets that name by a rename. Readers
//! need no lock.

use std::fs::{self, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use punctual_core::hash;
use punctual_sys::folder::{Locked, open_lock};

use super::sums;
use crate::files;
use crate::user_cache::{self, Partial, clean};

/// The cache; it is created on disk when it first keeps something.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) folder: PathBuf,
}

/// The lock for adding to the cache, until it is dropped.
pub(super) struct Writer<'a> {
    cache: &'a Cache,
    _lock: Locked,
}

impl Cache {
    /// That of the user.
    pub(super) fn of_user() -> Result<Self> {
        Ok(Self { folder: user_cache::folder()?.join("kernels") })
    }

    /// Cached packages: name, version, folder.
    pub(super) fn packages(&self) -> Result<Vec<(String, String, PathBuf)>> {
        let folder = self.folder.join("debian");
        let cannot = || format!("cannot read {}", folder.display());
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).with_context(cannot),
        };
        let mut packages = Vec::new();
        for entry in entries {
            let entry = entry.with_context(cannot)?;
            let name = entry.file_name();
            if let Some((name, version)) = name.to_str().and_then(|name| name.split_once('_')) {
                packages.push((name.to_owned(), version.to_owned(), entry.path()));
            }
        }
        Ok(packages)
    }

    /// The folder of this version of a package in the cache.
    pub(super) fn package(&self, name: &str, version: &str) -> PathBuf {
        self.folder.join("debian").join(format!("{name}_{version}"))
    }

    /// The path of the ELF file from the image with this hash.
    pub(super) fn vmlinux(&self, sha256: &str) -> PathBuf {
        self.folder.join("vmlinux").join(sha256)
    }

    /// Waits for other writers to finish, and removes what killed ones left incomplete.
    pub(super) fn writer(&self, say: &mut dyn FnMut(&str)) -> Result<Writer<'_>> {
        fs::create_dir_all(&self.folder).map_err(|error| self.explained(error, &self.folder))?;
        let path = self.folder.join(".lock");
        let lock = open_lock(&path).map_err(|error| self.explained(error, &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                say(&format!(
                    "waiting for another punctual to finish adding to {}",
                    self.folder.display()
                ));
                lock.lock().with_context(|| format!("cannot lock {}", path.display()))?;
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        let writer = Writer { cache: self, _lock: Locked(lock) };
        clean(&self.folder)?;
        Ok(writer)
    }

    fn explained(&self, error: io::Error, path: &Path) -> anyhow::Error {
        let full = error.kind() == io::ErrorKind::StorageFull;
        let advice = if full { "free some space, or set" } else { "set" };
        anyhow::Error::new(error).context(format!(
            "cannot write {} ({advice} PUNCTUAL_CACHE to a folder that you can write to)",
            path.display()
        ))
    }
}

impl Writer<'_> {
    /// A new empty folder for an incomplete download.
    pub(super) fn partial(&self, name: &str) -> Result<Partial> {
        let folder = &self.cache.folder;
        Partial::new(folder, name).map_err(|error| self.cache.explained(error, folder))
    }

    /// Gives a file or folder its final name.
    pub(super) fn keep(&self, from: &Path, to: &Path) -> Result<()> {
        let parent = to.parent().context("nothing is kept at /")?;
        fs::create_dir_all(parent)
            .and_then(|()| files::rename(from, to))
            .map_err(|error| self.cache.explained(error, to))
    }

    /// Stores the ELF file from the image with this hash.
    pub(super) fn keep_vmlinux(&self, sha256: &str, bytes: &[u8]) -> Result<()> {
        let (partial, to) = (self.partial("vmlinux")?, self.cache.vmlinux(sha256));
        let path = partial.0.join(sha256);
        let sum = format!("{}  {sha256}\n", hash::sha256(bytes));
        for (path, bytes) in [(sums::beside(&path), sum.as_bytes()), (path.clone(), bytes)] {
            files::write(&path, bytes).map_err(|error| self.cache.explained(error, &path))?;
        }
        // The sum first: without it a file is unpacked anew.
        self.keep(&sums::beside(&path), &sums::beside(&to))?;
        self.keep(&path, &to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn leftovers_go_and_what_is_whole_stays() {
        let folder = Folder::new();
        let cache = Cache { folder: folder.0.join("kernels") };
        assert_eq!(cache.packages().unwrap(), []);
        folder.write("kernels/partial-old/x.deb", b"half");
        folder.write("kernels/debian/linux-image-6.1.0-56-amd64_6.1.192-2/boot/x", b"");
        let writer = cache.writer(&mut |_| panic!("nobody else is there")).unwrap();
        assert!(!folder.0.join("kernels/partial-old").exists());
        writer.keep_vmlinux("abc", b"elf").unwrap();
        assert_eq!(fs::read(cache.vmlinux("abc")).unwrap(), b"elf");
        assert_eq!(sums::single(&cache.vmlinux("abc")), sums::Single::Same);
        assert!(!folder.0.join("kernels/partial-vmlinux").exists());
        let path = cache.package("linux-image-6.1.0-56-amd64", "6.1.192-2");
        let expected = ("linux-image-6.1.0-56-amd64".to_owned(), "6.1.192-2".to_owned(), path);
        assert_eq!(cache.packages().unwrap(), [expected]);
    }

    /// Root may use a cache in a folder that others can write to.
    #[test]
    fn a_link_in_place_of_the_lock_is_refused_and_its_target_kept() {
        let folder = Folder::new();
        folder.write("kernels/debian/x", b"");
        folder.write("victim", b"kept");
        std::os::unix::fs::symlink(folder.0.join("victim"), folder.0.join("kernels/.lock"))
            .unwrap();
        let cache = Cache { folder: folder.0.join("kernels") };
        let error = cache.writer(&mut |_| {}).map(drop).unwrap_err();
        assert!(format!("{error:#}").contains(".lock"), "{error:#}");
        assert_eq!(fs::read(folder.0.join("victim")).unwrap(), b"kept");
    }

    #[test]
    fn a_second_writer_waits_and_says_so() {
        let folder = Folder::new();
        let cache = Cache { folder: folder.0.join("kernels") };
        let first = cache.writer(&mut |_| panic!("nobody else is there")).unwrap();
        let _half = first.partial("a").unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope
                .spawn(|| cache.writer(&mut |text| said.send(text.to_owned()).unwrap()).map(drop));
            let text = heard.recv_timeout(std::time::Duration::from_secs(10)).unwrap();
            assert!(text.starts_with("waiting for another punctual"), "{text}");
            assert!(folder.0.join("kernels/partial-a").exists());
            drop(first);
            second.join().unwrap().unwrap();
        });
        assert!(!folder.0.join("kernels/partial-a").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named_with_what_to_do() {
        let folder = Folder::new();
        folder.write("file", b"");
        let cache = Cache { folder: folder.0.join("file/kernels") };
        let error = cache.writer(&mut |_| ()).map(drop).unwrap_err().to_string();
        assert!(error.contains("file/kernels") && error.contains("PUNCTUAL_CACHE"), "{error}");
    }
}
