//! Where journals are kept, and who may have written them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use punctual_sys::error;

/// Possible folders for journals, the best first.
pub(super) fn folders() -> Vec<PathBuf> {
    let uid = punctual_sys::process::effective_uid();
    let temporary = PathBuf::from(format!("/tmp/punctual-{uid}"));
    if uid == 0 {
        return vec![PathBuf::from("/run/punctual"), temporary];
    }
    let session = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .map(|path| path.join("punctual"));
    // restore may run in a session without the variable.
    let usual = PathBuf::from(format!("/run/user/{uid}/punctual"));
    let usual = (session.as_ref() != Some(&usual)).then_some(usual);
    session.into_iter().chain(usual).chain([temporary]).collect()
}

pub(super) fn first_usable() -> io::Result<PathBuf> {
    let mut reasons = Vec::new();
    for folder in folders() {
        match made(&folder) {
            Ok(folder) => return Ok(folder),
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(io::Error::other(format!(
        "no place for the journal of what is changed on this board: {}",
        reasons.join("; ")
    )))
}

/// Creates the folder (mode 0700) unless it exists, and checks it.
pub(super) fn made(folder: &Path) -> io::Result<PathBuf> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(explained(&error, "cannot make", folder));
        }
        _ => {}
    }
    checked(folder)?;
    Ok(folder.to_owned())
}

/// Refuses a folder that others could have created or can write to: what a journal names is
/// removed with this user's rights.
pub(super) fn checked(folder: &Path) -> io::Result<()> {
    let metadata =
        folder.symlink_metadata().map_err(|error| explained(&error, "cannot use", folder))?;
    let refused = |reason: &str| {
        let text = format!("{}: {reason}; remove it", folder.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
    };
    if !metadata.is_dir() {
        return refused("is not a folder");
    }
    if metadata.uid() != punctual_sys::process::effective_uid() {
        return refused("belongs to another user");
    }
    if metadata.mode() & 0o077 != 0 {
        return refused("is open to other users");
    }
    Ok(())
}

/// Whether another user made it, or it is not a folder.
pub(super) fn is_anothers(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok_and(|metadata| {
        !metadata.is_dir() || metadata.uid() != punctual_sys::process::effective_uid()
    })
}

/// Where scratch folders go unless a parameter says otherwise: `$TMPDIR` if it is there, then
/// the usual ones.
pub(crate) fn temporary_folders() -> Vec<PathBuf> {
    let named = std::env::var_os("TMPDIR").map(PathBuf::from);
    let all = named.into_iter().chain(["/var/tmp".into(), "/tmp".into()]);
    let mut there: Vec<PathBuf> = all.filter(|path| path.is_absolute() && path.is_dir()).collect();
    there.dedup();
    there
}

pub(super) fn canonical(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path).map_err(|error| explained(&error, "cannot find", path))
}

/// The same kind of error, with the action and the path that failed.
pub(super) fn explained(error: &io::Error, what: &str, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{what} {}: {}", path.display(), error::text(error)))
}
