//! Scratch folders: made with a marker in them that names their owner, removed with it last,
//! and found again after a power cut, which takes the journal with it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use punctual_sys::{error, process};

use super::folders::{canonical, explained};
use super::owner::Owner;
use crate::procfs::Mount;

/// Prefix of the names of scratch folders.
pub const SCRATCH_PREFIX: &str = "punctual-load-";
/// A file in every scratch folder that contains its owner as a line of JSON.
const MARKER: &str = ".punctual";
/// The marker until it is complete.
const NEW_MARKER: &str = ".punctual.new";
/// Larger files are no markers.
const MAX_MARKER_BYTES: u64 = 4096;

/// Why a folder is not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is certainly not what the journal's process made: trying again is pointless.
    NotOurs(String),
    /// Something stands in the way, with the remedy.
    Hindered(String),
}

/// Creates a folder (mode 0700) with its marker, or `AlreadyExists` if there is something of
/// that name. Whatever else fails, no folder is left.
pub(super) fn make(path: &Path, owner: &Owner) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => error,
        _ => explained(&error, "cannot make", path),
    })?;
    mark(path, owner).map_err(|error| {
        // Without its marker nothing would remove the folder later.
        let _ = fs::remove_dir_all(path);
        explained(&error, "cannot write", &path.join(MARKER))
    })
}

/// The marker is either complete or not there, also after a power cut.
fn mark(path: &Path, owner: &Owner) -> io::Result<()> {
    let new = path.join(NEW_MARKER);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
    let text = serde_json::to_string(owner).map_err(io::Error::other)? + "\n";
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path.join(MARKER))
}

/// Refuses any folder that the journal's process did not certainly create.
pub(super) fn removable(path: &Path, owner: &Owner) -> Result<(), Refusal> {
    let not_ours =
        |reason: &str| Err(Refusal::NotOurs(format!("{} is left: {reason}", path.display())));
    if !is_named(path) {
        return not_ours("its name is not one of punctual");
    }
    let metadata =
        path.symlink_metadata().map_err(|error| Refusal::Hindered(unread(path, &error)))?;
    if !metadata.is_dir() || canonical(path).ok().as_deref() != Some(path) {
        return not_ours("it is not a folder, or a link leads to it");
    }
    if metadata.uid() != process::effective_uid() {
        return not_ours("it belongs to another user");
    }
    let marked = marker(path).is_some_and(|marked| marked.identity() == owner.identity());
    if !marked && !is_unmarked(path) {
        return not_ours("its marker is not that of the process that made it");
    }
    let file = Path::new("/proc/self/mountinfo");
    let mounts = fs::read(file).map_err(|error| Refusal::Hindered(unread(file, &error)))?;
    match Mount::all(&mounts).iter().find(|mount| mount.point.starts_with(path)) {
        Some(mount) => Err(Refusal::Hindered(format!(
            "{} is left: unmount {} first",
            path.display(),
            mount.point.display()
        ))),
        None => Ok(()),
    }
}

fn unread(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {}", path.display(), error::text(error))
}

fn is_named(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(SCRATCH_PREFIX.as_bytes())
}

/// The owner that the marker names.
fn marker(path: &Path) -> Option<Owner> {
    let file = path.join(MARKER);
    let metadata = file.symlink_metadata().ok()?;
    let own = metadata.is_file() && metadata.uid() == process::effective_uid();
    if !own || metadata.len() > MAX_MARKER_BYTES {
        return None;
    }
    serde_json::from_str(&fs::read_to_string(file).ok()?).ok()
}

/// Whether the process was killed between creating the folder and marking it, or between
/// removing the marker and the folder: there is nothing in it but an unfinished marker.
fn is_unmarked(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == NEW_MARKER))
    })
}

/// Removes a scratch folder with everything in it, its marker last: a removal that a SIGKILL
/// cuts short is continued by `punctual restore`.
///
/// # Errors
/// What the file system says.
pub(crate) fn remove_scratch(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() == MARKER {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    match fs::remove_file(path.join(MARKER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::remove_dir(path),
    }
}

/// The marked folders of this user in `parent`, each with its owner. What cannot be read is
/// left out: it is not known to be of punctual.
pub(super) fn marked_in(parent: &Path) -> Vec<(PathBuf, Owner)> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| is_named(path))
        .filter_map(|path| {
            let metadata = path.symlink_metadata().ok()?;
            let own = metadata.is_dir() && metadata.uid() == process::effective_uid();
            let owner = marker(&path).filter(|_| own)?;
            Some((path, owner))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("{SCRATCH_PREFIX}{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn filled(name: &str, owner: &Owner) -> PathBuf {
        let path = folder(name);
        make(&path, owner).unwrap();
        fs::create_dir_all(path.join("deep/er")).unwrap();
        fs::write(path.join("deep/er/file"), "x").unwrap();
        path
    }

    fn other() -> Owner {
        let this = Owner::this().unwrap();
        Owner { start: this.start + 1, ..this }
    }

    #[test]
    fn a_folder_without_its_marker_is_removed_only_if_nothing_is_in_it() {
        let owner = Owner::this().unwrap();
        let path = filled("cut", &owner);
        assert_eq!(removable(&path, &owner), Ok(()));
        assert!(matches!(removable(&path, &other()), Err(Refusal::NotOurs(_))));
        // Killed at the write of the marker.
        fs::rename(path.join(MARKER), path.join(NEW_MARKER)).unwrap();
        fs::write(path.join(NEW_MARKER), "{\"pid").unwrap();
        assert!(removable(&path, &owner).is_err(), "it has contents that nobody marked");
        fs::remove_dir_all(path.join("deep")).unwrap();
        assert_eq!(removable(&path, &owner), Ok(()));
        remove_scratch(&path).unwrap();
        assert!(!path.exists());
        // Killed before it.
        fs::create_dir(&path).unwrap();
        assert_eq!(removable(&path, &owner), Ok(()));
        remove_scratch(&path).unwrap();
    }

    #[test]
    fn a_removal_that_fails_midway_can_be_repeated() {
        let owner = Owner::this().unwrap();
        let path = filled("midway", &owner);
        let deep = path.join("deep");
        let denied = std::process::Command::new("chattr").arg("+i").arg(&deep).status();
        if denied.is_ok_and(|status| status.success()) {
            assert!(remove_scratch(&path).is_err());
            assert_eq!(removable(&path, &owner), Ok(()));
            std::process::Command::new("chattr").arg("-i").arg(&deep).status().unwrap();
        }
        remove_scratch(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn marked_folders_are_found_with_their_owner() {
        let parent = std::env::temp_dir().join(format!("punctual-marked-{}", std::process::id()));
        let _ = fs::remove_dir_all(&parent);
        fs::create_dir(&parent).unwrap();
        let owner = Owner::this().unwrap();
        for (name, marked) in [("punctual-load-1-0", true), ("punctual-load-1-1", false)] {
            let path = parent.join(name);
            if marked { make(&path, &owner).unwrap() } else { fs::create_dir(&path).unwrap() }
        }
        make(&parent.join("precious"), &owner).unwrap();
        std::os::unix::fs::symlink(parent.join("precious"), parent.join("punctual-load-1-2"))
            .unwrap();
        assert_eq!(marked_in(&parent), [(parent.join("punctual-load-1-0"), owner)]);
        assert_eq!(marked_in(&parent.join("absent")), []);
        fs::remove_dir_all(&parent).unwrap();
    }
}
