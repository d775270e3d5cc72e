//! The user's folder for what can be fetched or made again.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

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
    let cannot = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        let name = path.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(PARTIAL.as_bytes()) {
            fs::remove_dir_all(&path).with_context(|| {
                format!("cannot remove {}, which a punctual that was killed left", path.display())
            })?;
        }
    }
    Ok(())
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
