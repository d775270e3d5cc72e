//! One thing left on the board, and how it is undone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use punctual_sys::{error, process};
use serde::{Deserialize, Serialize};

use super::folders::canonical;
use crate::facts::root::marked_word;
use crate::procfs::Mount;

/// Prefix of the names of scratch folders.
pub const SCRATCH_PREFIX: &str = "punctual-load-";
/// Prefix of the names of cgroups.
pub const CGROUP_PREFIX: &str = "punctual-";
/// A file in every scratch folder that contains the identity of its owner.
pub(super) const MARKER: &str = ".punctual";

/// A killed process leaves its cgroup only when its memory has been freed, which takes a while
/// under load.
const CGROUP_EMPTIES: Duration = Duration::from_secs(2);
const CGROUP_POLL: Duration = Duration::from_millis(5);

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum Entry {
    /// A scratch folder of a load.
    Scratch {
        /// Its path.
        path: PathBuf,
    },
    /// A cgroup that contains a load.
    Cgroup {
        /// Its path.
        path: PathBuf,
    },
    /// A changed setting.
    Setting {
        /// The file.
        path: PathBuf,
        /// Its value before the change.
        old: String,
    },
}

impl Entry {
    /// What undoing it would do, or `None` if there is nothing to undo. `owner` is the
    /// identity of the journal's process.
    pub fn pending(&self, owner: &str) -> Result<Option<String>, String> {
        if !self.path().is_absolute() || !self.is_there()? {
            return Ok(None);
        }
        match self {
            Self::Scratch { path } => {
                removable(path, owner)?;
                Ok(Some(format!("remove {}", path.display())))
            }
            Self::Cgroup { path } => {
                cgroup_of_punctual(path)?;
                Ok(Some(format!("end and remove the cgroup {}", path.display())))
            }
            Self::Setting { path, old } => {
                let now = setting_in_force(path).map_err(|error| {
                    format!("cannot read {}: {}", path.display(), error::text(&error))
                })?;
                let change = format!("set {} from \"{now}\" to \"{old}\"", path.display());
                Ok((now != *old).then_some(change))
            }
        }
    }

    /// Undoes it. `Ok(None)` if there was nothing to undo.
    pub fn undo(&self, owner: &str) -> Result<Option<String>, String> {
        let Some(action) = self.pending(owner)? else {
            return Ok(None);
        };
        let done = match self {
            Self::Scratch { path } => remove_scratch(path),
            Self::Cgroup { path } => end_cgroup(path),
            Self::Setting { path, old } => write_setting(path, old),
        };
        done.map_err(|error| format!("cannot {action}: {}", error::text(&error)))?;
        Ok(Some(action))
    }

    /// Whether a reboot undoes it.
    pub fn ends_with_boot(&self) -> bool {
        !matches!(self, Self::Scratch { .. })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Scratch { path } | Self::Cgroup { path } | Self::Setting { path, .. } => path,
        }
    }

    fn is_there(&self) -> Result<bool, String> {
        let path = self.path();
        match path.symlink_metadata() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                Err(format!("cannot look at {}: {}", path.display(), error::text(&error)))
            }
        }
    }
}

/// Refuses any folder that this journal's process did not certainly create.
fn removable(path: &Path, owner: &str) -> Result<(), String> {
    let refused = |reason: &str| Err(format!("{} is left: {reason}", path.display()));
    if !name_begins(path, SCRATCH_PREFIX) {
        return refused("its name is not one of punctual");
    }
    let metadata = path.symlink_metadata().map_err(|error| error::text(&error))?;
    if !metadata.is_dir() || canonical(path).ok().as_deref() != Some(path) {
        return refused("it is not a folder, or a link leads to it");
    }
    if metadata.uid() != process::effective_uid() {
        return refused("it belongs to another user");
    }
    let mounts = fs::read("/proc/self/mountinfo");
    let mounts =
        mounts.map_err(|error| format!("/proc/self/mountinfo: {}", error::text(&error)))?;
    if let Some(mount) = Mount::all(&mounts).iter().find(|mount| mount.point.starts_with(path)) {
        let reason = format!("unmount {} first", mount.point.display());
        return refused(&reason);
    }
    let marker = path.join(MARKER);
    let marked = marker.symlink_metadata().is_ok_and(|file| file.is_file())
        && fs::read_to_string(&marker).is_ok_and(|text| text == owner);
    if !marked && !is_unfinished(path, owner) {
        return refused("its marker is not that of the process that made it");
    }
    Ok(())
}

/// Whether the process was killed between creating the folder and marking it, or between
/// removing the marker and the folder: there is nothing in it but a part of the marker.
fn is_unfinished(path: &Path, owner: &str) -> bool {
    let part = |name: &std::ffi::OsStr| {
        let text = fs::read_to_string(path.join(name));
        name == MARKER && text.is_ok_and(|text| owner.starts_with(&text))
    };
    fs::read_dir(path).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| part(&entry.file_name())))
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

fn name_begins(path: &Path, prefix: &str) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

fn cgroup_of_punctual(path: &Path) -> Result<(), String> {
    let procs = path.join("cgroup.procs");
    let refused = |reason: &str| Err(format!("{} is left: {reason}", path.display()));
    if !name_begins(path, CGROUP_PREFIX) || canonical(path).ok().as_deref() != Some(path) {
        return refused("its name is not one of punctual, or a link leads to it");
    }
    match fs::read_to_string(procs) {
        Err(_) => refused("it is not a cgroup"),
        Ok(pids) if pids.lines().any(|pid| pid == std::process::id().to_string()) => {
            refused("this process is in it")
        }
        Ok(_) => Ok(()),
    }
}

/// Kills everything in a cgroup and below it, and removes it.
fn end_cgroup(path: &Path) -> io::Result<()> {
    let end = std::time::Instant::now() + CGROUP_EMPTIES;
    loop {
        // cgroup.kill exists since Linux 5.14, in cgroup v2 only.
        let killed = OpenOptions::new()
            .write(true)
            .open(path.join("cgroup.kill"))
            .and_then(|mut file| file.write_all(b"1"));
        match remove_cgroups(path, killed.is_err()) {
            Err(_) if std::time::Instant::now() < end => sleep(CGROUP_POLL),
            result => return result,
        }
    }
}

/// Removes a cgroup after those below it; with `kill`, kills the members of each first.
fn remove_cgroups(path: &Path, kill: bool) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroups(&entry.path(), kill)?;
        }
    }
    if kill {
        let pids = fs::read_to_string(path.join("cgroup.procs"))?;
        for pid in pids.lines().filter_map(|line| line.parse().ok()) {
            // If it is already gone that is fine; a refusal shows when the folder stays.
            let _ = process::kill(pid);
        }
    }
    fs::remove_dir(path)
}

/// The value of a setting; for a file that lists its choices, the active one.
pub(super) fn setting_in_force(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    let text = text.trim();
    Ok(marked_word(text).unwrap_or(text).to_owned())
}

/// Writes a setting in a single write. The file must exist.
pub(super) fn write_setting(path: &Path, value: &str) -> io::Result<()> {
    // Truncating matters only for plain files, whose old value may be longer.
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let path =
            std::env::temp_dir().join(format!("{SCRATCH_PREFIX}{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("deep/er")).unwrap();
        fs::write(path.join("deep/er/file"), "x").unwrap();
        path
    }

    #[test]
    fn a_folder_whose_marker_was_cut_short_is_removed_if_nothing_else_is_in_it() {
        let path = folder("cut");
        fs::write(path.join(MARKER), "own").unwrap();
        assert!(removable(&path, "owner").is_err(), "it has contents that nobody marked");
        fs::remove_dir_all(path.join("deep")).unwrap();
        assert_eq!(removable(&path, "owner"), Ok(()));
        assert!(removable(&path, "other").is_err(), "the marker is another's");
        remove_scratch(&path).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn the_marker_is_removed_last() {
        let path = folder("last");
        fs::write(path.join(MARKER), "owner").unwrap();
        // A removal that fails midway leaves a folder that can still be removed.
        let deep = path.join("deep");
        let denied = std::process::Command::new("chattr").arg("+i").arg(&deep).status();
        if denied.is_ok_and(|status| status.success()) {
            assert!(remove_scratch(&path).is_err());
            assert_eq!(removable(&path, "owner"), Ok(()));
            std::process::Command::new("chattr").arg("-i").arg(&deep).status().unwrap();
        }
        remove_scratch(&path).unwrap();
        assert!(!path.exists());
    }
}
