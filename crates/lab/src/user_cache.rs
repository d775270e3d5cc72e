//! The user's folder for what can be fetched or made again.

use std::env;
use std::path::PathBuf;

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
