//! The user's folder for what can be fetched or made again.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use punctual_sys::error;
use punctual_sys::folder::{Locked, open_lock};

/// `$PUNCTUAL_CACHE`, otherwise `$XDG_CACHE_HOME/punctual` or `~/.cache/punctual`.
///
/// # Errors
/// None of these is set.
pub(crate) fn folder() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PUNCTUAL_CACHE")
        .or_else(|| {
            // The XDG Base Directory Specification says to ignore relative paths.
            let xdg = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            Some(xdg.or_else(|| Some(set("HOME")?.join(".cache")))?.join("punctual"))
        })
        .context("no folder for the cache: set PUNCTUAL_CACHE to one (HOME is not set either)")
}

/// What the name of a folder begins with while it is written.
const PARTIAL: &str = "partial-";

/// Removes what writers that were killed have left incomplete in a folder of the cache. Only the
/// process that has the folder's lock may.
///
/// # Errors
/// The folder cannot be read, or something cannot be removed.
pub(crate) fn clean(folder: &Path) -> Result<()> {
    for path in partial_in(folder)? {
        fs::remove_dir_all(&path).with_context(|| {
            format!("cannot remove {}, which a punctual that was killed left", path.display())
        })?;
    }
    Ok(())
}

/// The folders of the cache in which something is written under a lock.
const LOCKED: [&str; 2] = ["kernels", "boards"];

/// The lock of each.
pub(crate) const LOCK: &str = ".lock";

/// What killed writers have left in the cache, one sentence for each.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// What was removed, or would be.
    pub done: Vec<String>,
    /// What could not be removed or looked at.
    pub failed: Vec<String>,
    /// What another process is at.
    pub kept: Vec<String>,
}

/// Removes what killed writers have left incomplete in the cache of this user; with `dry_run` it only
/// says what there is. Complete kernels and boards stay.
#[must_use]
pub fn remove_leftovers(dry_run: bool) -> Leftovers {
    let mut found = Leftovers::default();
    // Without a folder there is no cache.
    let Ok(cache) = folder() else { return found };
    for name in LOCKED {
        remove_in(&cache.join(name), dry_run, &mut found);
    }
    found
}

fn remove_in(folder: &Path, dry_run: bool, found: &mut Leftovers) {
    let partial = match partial_in(folder) {
        Ok(partial) if partial.is_empty() => return,
        Ok(partial) => partial,
        Err(error) => return found.failed.push(format!("{error:#}")),
    };
    let lock = match open_lock(&folder.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) => {
            let text = error::text(&error);
            return found
                .failed
                .push(format!("cannot open the lock of {}: {text}", folder.display()));
        }
    };
    let _held = match lock.try_lock() {
        Ok(()) => Locked(lock),
        Err(_) => {
            let text = format!("{}: another punctual is adding to it", folder.display());
            return found.kept.push(text);
        }
    };
    for path in partial {
        let removed = if dry_run { Ok(()) } else { fs::remove_dir_all(&path) };
        match removed {
            Ok(()) => found.done.push(format!("remove {}", path.display())),
            Err(error) => {
                let text = error::text(&error);
                found.failed.push(format!("cannot remove {}: {text}", path.display()));
            }
        }
    }
}

/// What is incomplete in a folder of the cache; nothing if there is no folder.
fn partial_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", folder.display());
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(cannot)?,
    };
    let mut partial = Vec::new();
    for entry in entries {
        let entry = entry.with_context(cannot)?;
        if entry.file_name().as_encoded_bytes().starts_with(PARTIAL.as_bytes()) {
            partial.push(entry.path());
        }
    }
    partial.sort();
    Ok(partial)
}

/// A folder that is removed on drop, unless it has another name by then.
pub(crate) struct Partial(pub(crate) PathBuf);

impl Partial {
    /// A new one in a folder of the cache.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(format!("{PARTIAL}{name}"));
        fs::create_dir(&path).map(|()| Self(path))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // The next writer removes what cannot be removed now.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn leftovers_go_once_their_writer_is_gone() {
        let folder = Folder::new();
        let cache = folder.0.join("kernels");
        let look = |dry_run| {
            let mut found = Leftovers::default();
            remove_in(&cache, dry_run, &mut found);
            (found.done.len(), found.failed.len(), found.kept.len())
        };
        assert_eq!(look(false), (0, 0, 0));
        folder.write("kernels/debian/x", b"whole");
        assert_eq!(look(false), (0, 0, 0));
        assert!(!cache.join(LOCK).exists(), "nothing was to be done");
        folder.write("kernels/partial-a/x.deb", b"half");
        let lock = Locked(open_lock(&cache.join(LOCK)).unwrap());
        lock.0.try_lock().unwrap();
        assert_eq!(look(false), (0, 0, 1));
        drop(lock);
        assert_eq!(look(true), (1, 0, 0));
        assert!(cache.join("partial-a/x.deb").exists());
        assert_eq!(look(false), (1, 0, 0));
        assert!(!cache.join("partial-a").exists() && cache.join("debian/x").exists());
    }
}
