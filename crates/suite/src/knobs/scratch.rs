//! Scratch folders: made with a marker in them that names their owner, removed with it last,
//! and found again after a power cut, which takes the journal with it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_sys::file::read_open;
use punctual_sys::folder::{Folder, is_no_folder};
use punctual_sys::{error, process};

use super::folders::{canonical, explained};
use super::owner::Owner;
use crate::procfs::Mount;

/// Prefix of the names of scratch folders.
pub(super) const SCRATCH_PREFIX: &str = "punctual-load-";
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

/// A scratch folder, held by descriptors: whoever owns the folder that it is in may put another
/// in its place, but what is made and removed here is the one that was looked at.
#[derive(Debug)]
pub(super) struct Scratch {
    parent: Folder,
    name: OsString,
    folder: Folder,
}

impl Scratch {
    /// Creates a folder (mode 0700) with its marker, or `AlreadyExists` if there is something
    /// of that name. Whatever else fails, no folder is left. The path has no symbolic link.
    pub(super) fn make(path: &Path, owner: &Owner) -> io::Result<()> {
        let cannot_make = |error: io::Error| match error.kind() {
            io::ErrorKind::AlreadyExists => error,
            _ => explained(&error, "cannot make", path),
        };
        let (parent, name) = split(path)?;
        let parent = Folder::open_plain(parent).map_err(cannot_make)?;
        let folder = parent.make_private_folder(name).map_err(cannot_make)?;
        let made = Self { parent, name: name.to_owned(), folder };
        made.mark(owner).map_err(|error| {
            // Without its marker nothing would remove the folder later.
            let _ = made.remove();
            explained(&error, "cannot write", &path.join(MARKER))
        })
    }

    /// The marker is either complete or not there, also after a power cut.
    fn mark(&self, owner: &Owner) -> io::Result<()> {
        let mut file = self.folder.make_file(NEW_MARKER)?;
        let text = serde_json::to_string(owner).map_err(io::Error::other)? + "\n";
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        self.folder.rename(NEW_MARKER, MARKER)
    }

    /// Opens the folder to remove it, and refuses any that the journal's process did not
    /// certainly create.
    pub(super) fn find(path: &Path, owner: &Owner) -> Result<Self, Refusal> {
        let not_ours =
            |reason: &str| Refusal::NotOurs(format!("{} is left: {reason}", path.display()));
        let hindered = |error: io::Error| Refusal::Hindered(unread(path, &error));
        let (parent, name) = split(path).map_err(hindered)?;
        if !is_named(name) {
            return Err(not_ours("its name is not one of punctual"));
        }
        let open = || {
            let parent = Folder::open_plain(parent)?;
            let folder = parent.folder(name)?;
            Ok(Self { parent, name: name.to_owned(), folder })
        };
        let found = open().map_err(|error| match error {
            error if is_no_folder(&error) => not_ours("it is not a folder, or a link leads to it"),
            error => hindered(error),
        })?;
        if !is_own(&found.folder) {
            return Err(not_ours("it belongs to another user"));
        }
        let marked = marker(&found.folder).is_some_and(|marked| marked.made_what_is_of(owner));
        if !marked && !found.is_unmarked() {
            return Err(not_ours("its marker is not that of the process that made it"));
        }
        let file = Path::new("/proc/self/mountinfo");
        let mounts = fs::read(file).map_err(|error| Refusal::Hindered(unread(file, &error)))?;
        match Mount::all(&mounts).iter().find(|mount| mount.point.starts_with(path)) {
            Some(mount) => Err(Refusal::Hindered(format!(
                "{} is left: unmount {} first",
                path.display(),
                mount.point.display()
            ))),
            None => Ok(found),
        }
    }

    /// The folder alone.
    pub(super) fn into_folder(self) -> Folder {
        self.folder
    }

    /// What it is held by.
    pub(super) fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.parent.as_fd(), self.folder.as_fd()]
    }

    /// Whether the process was killed between creating the folder and marking it, or between
    /// removing the marker and the folder: there is nothing in it but an unfinished marker.
    fn is_unmarked(&self) -> bool {
        self.folder.names().is_ok_and(|names| names.iter().all(|name| name == NEW_MARKER))
    }

    /// Removes the folder with everything in it, its marker last: a removal that a SIGKILL
    /// cuts short is continued by `punctual restore`.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.folder.clear(MARKER)?;
        match self.folder.remove_file(MARKER) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => self.parent.remove_folder(&self.name),
        }
    }
}

/// Removes a scratch folder of this process with everything in it.
///
/// # Errors
/// Why it is still there, in words that name it.
pub(crate) fn remove_scratch(path: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("{}: {}", path.display(), error::text(&error));
    let owner = Owner::this().map_err(failed)?;
    match Scratch::find(path, &owner) {
        Ok(found) => found.remove().map_err(failed),
        Err(Refusal::NotOurs(text) | Refusal::Hindered(text)) => Err(text),
    }
}

/// Opens a scratch folder of this user that a load is to work in.
///
/// # Errors
/// Those of [`Folder::open_plain`]; it has become another user's.
pub(crate) fn open_scratch(path: &Path) -> io::Result<Folder> {
    let folder = Folder::open_plain(path)?;
    if !is_own(&folder) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "another user has put a folder in its place",
        ));
    }
    Ok(folder)
}

/// A scratch folder of this process, which is no load: the marker alone names its owner, so
/// `punctual restore` finds it in the temporary folders only. Dropping it removes it with all that
/// is in it.
#[derive(Debug)]
pub(crate) struct OwnFolder {
    path: PathBuf,
}

impl OwnFolder {
    /// Makes one; there can be one at a time in a folder.
    ///
    /// # Errors
    /// Why it cannot be made, in words that name it.
    pub(crate) fn make(parent: &Path) -> io::Result<Self> {
        let owner = Owner::this()?;
        let name = format!("{SCRATCH_PREFIX}{}-cost", owner.pid);
        let path = canonical(parent)?.join(name);
        Scratch::make(&path, &owner)?;
        Ok(Self { path })
    }

    /// Its absolute path, without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What is left is found by its marker.
        let _ = remove_scratch(&self.path);
    }
}

fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    let parts = path.parent().zip(path.file_name());
    parts.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the path of a folder"))
}

fn unread(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {}", path.display(), error::text(error))
}

fn is_named(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(SCRATCH_PREFIX.as_bytes())
}

fn is_own(folder: &Folder) -> bool {
    folder.metadata().is_ok_and(|metadata| metadata.uid() == process::effective_uid())
}

/// The owner that the marker in a folder names.
fn marker(folder: &Folder) -> Option<Owner> {
    let file = folder.file(MARKER).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.uid() != process::effective_uid() {
        return None;
    }
    serde_json::from_slice(&read_open(&file, MAX_MARKER_BYTES).ok()?).ok()
}

/// The marked folders of this user in `parent`, each with its owner. What cannot be read is
/// left out: it is not known to be of punctual.
pub(super) fn marked_in(parent: &Path) -> Vec<(PathBuf, Owner)> {
    let list = || {
        let folder = Folder::open_plain(parent)?;
        Ok((folder.names()?, folder))
    };
    let Ok((mut names, folder)): io::Result<_> = list() else { return Vec::new() };
    names.sort();
    let marked = |name: OsString| {
        let scratch = folder.folder(&name).ok().filter(is_own)?;
        Some((parent.join(name), marker(&scratch)?))
    };
    names.into_iter().filter(|name| is_named(name)).filter_map(marked).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let parent = std::env::temp_dir().canonicalize().unwrap();
        let path = parent.join(format!("{SCRATCH_PREFIX}{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    fn filled(name: &str, owner: &Owner) -> PathBuf {
        let path = folder(name);
        Scratch::make(&path, owner).unwrap();
        fs::create_dir_all(path.join("deep/er")).unwrap();
        fs::write(path.join("deep/er/file"), "x").unwrap();
        path
    }

    fn found(path: &Path, owner: &Owner) -> Result<(), Refusal> {
        Scratch::find(path, owner).map(drop)
    }

    fn other() -> Owner {
        let this = Owner::this().unwrap();
        Owner { start: this.start + 1, ..this }
    }

    #[test]
    fn a_folder_without_its_marker_is_removed_only_if_nothing_is_in_it() {
        let owner = Owner::this().unwrap();
        let path = filled("cut", &owner);
        assert_eq!(found(&path, &owner), Ok(()));
        assert!(matches!(found(&path, &other()), Err(Refusal::NotOurs(_))));
        // Killed at the write of the marker.
        fs::rename(path.join(MARKER), path.join(NEW_MARKER)).unwrap();
        fs::write(path.join(NEW_MARKER), "{\"pid").unwrap();
        assert!(found(&path, &owner).is_err(), "it has contents that nobody marked");
        fs::remove_dir_all(path.join("deep")).unwrap();
        assert_eq!(found(&path, &owner), Ok(()));
        remove_scratch(&path).unwrap();
        assert!(!path.exists());
        // Killed before it.
        fs::create_dir(&path).unwrap();
        assert_eq!(found(&path, &owner), Ok(()));
        remove_scratch(&path).unwrap();
    }

    #[test]
    fn a_removal_that_fails_midway_can_be_repeated() {
        let owner = Owner::this().unwrap();
        let path = filled("midway", &owner);
        let deep = path.join("deep");
        let chattr = |how: &str| std::process::Command::new("chattr").arg(how).arg(&deep).status();
        if chattr("+i").is_ok_and(|status| status.success()) {
            assert!(remove_scratch(&path).is_err());
            assert_eq!(found(&path, &owner), Ok(()));
            chattr("-i").unwrap();
        } else {
            punctual_harness::refused("no file here can be made immutable (chattr +i)");
        }
        remove_scratch(&path).unwrap();
        assert!(!path.exists());
    }

    /// Whoever owns the folder that it is in, or one above that, may swap it at any moment.
    #[test]
    fn nothing_of_others_is_removed_when_the_folder_is_swapped() {
        let owner = Owner::this().unwrap();
        let root = std::env::temp_dir().canonicalize().unwrap();
        let root = root.join(format!("punctual-swapped-{}", std::process::id()));
        let (above, victim) = (root.join("above"), root.join("victim"));
        let (parent, moved) = (above.join("parent"), root.join("moved"));
        fs::create_dir_all(&parent).unwrap();
        if process::effective_uid() == 0 {
            chown(&above, Some(65_534), None).unwrap();
            chown(&parent, Some(65_534), None).unwrap();
        }
        let name = "punctual-load-1-0";
        let in_victim = victim.join(name);
        fs::create_dir_all(in_victim.join("deep")).unwrap();
        let precious = [victim.join("file"), in_victim.join("deep/file")];
        precious.iter().for_each(|file| fs::write(file, "kept").unwrap());
        let path = parent.join(name);
        for (swapped, instead) in [(&path, &victim), (&parent, &victim), (&above, &root)] {
            Scratch::make(&path, &owner).unwrap();
            fs::rename(swapped, &moved).unwrap();
            symlink(instead, swapped).unwrap();
            let said = remove_scratch(&path).unwrap_err();
            assert!(said.contains("a link leads to it"), "{said}");
            assert!(open_scratch(&path).is_err());
            fs::remove_file(swapped).unwrap();
            fs::rename(&moved, swapped).unwrap();
            assert!(open_scratch(&path).is_ok());
            remove_scratch(&path).unwrap();
        }
        // The folder that was looked at is emptied, and not what has its name by then.
        Scratch::make(&path, &owner).unwrap();
        let looked_at = Scratch::find(&path, &owner).unwrap();
        fs::rename(&path, &moved).unwrap();
        symlink(&in_victim, &path).unwrap();
        assert!(looked_at.remove().is_err());
        assert_eq!(fs::read_dir(&moved).unwrap().count(), 0);
        assert!(path.is_symlink() && precious.iter().all(|file| file.exists()));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn marked_folders_are_found_with_their_owner() {
        let parent = std::env::temp_dir().join(format!("punctual-marked-{}", std::process::id()));
        let _ = fs::remove_dir_all(&parent);
        fs::create_dir(&parent).unwrap();
        let owner = Owner::this().unwrap();
        for (name, marked) in [("punctual-load-1-0", true), ("punctual-load-1-1", false)] {
            let path = parent.join(name);
            if marked {
                Scratch::make(&path, &owner).unwrap()
            } else {
                fs::create_dir(&path).unwrap()
            }
        }
        Scratch::make(&parent.join("precious"), &owner).unwrap();
        symlink(parent.join("precious"), parent.join("punctual-load-1-2")).unwrap();
        assert_eq!(marked_in(&parent), [(parent.join("punctual-load-1-0"), owner)]);
        assert_eq!(marked_in(&parent.join("absent")), []);
        fs::remove_dir_all(&parent).unwrap();
    }
}
