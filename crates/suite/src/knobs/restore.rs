//! Undoes what processes left behind that can no longer do it themselves.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_sys::folder::Locked;

use super::entry::Entry;
use super::folders::{checked, explained, folders, is_anothers, temporary_folders};
use super::owner::{Owner, this_machine};
use super::scratch::{Refusal, marked_in};

/// Largest size of a journal, which has one line for each load and setting; a larger file is
/// not a journal.
const MAX_JOURNAL_BYTES: u64 = 1 << 20;

/// What [`restore`] did, one sentence for each item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// What was undone; on a dry run, what would be.
    pub done: Vec<String>,
    /// What could not be undone or read.
    pub failed: Vec<String>,
    /// Journals that were left alone, such as those of processes that are still running.
    pub kept: Vec<String>,
}

impl RestoreReport {
    /// Undoes one thing, or only says what that would do; returns whether it is pointless to try
    /// again.
    fn undo(&mut self, entry: &Entry, owner: &Owner, dry_run: bool) -> bool {
        match if dry_run { entry.pending(owner) } else { entry.undo(owner) } {
            Ok(action) => self.done.extend(action),
            Err(refusal) => {
                let over = matches!(refusal, Refusal::NotOurs(_));
                self.refused(refusal);
                return over;
            }
        }
        true
    }

    fn refused(&mut self, refusal: Refusal) {
        match refusal {
            Refusal::NotOurs(text) => self.kept.push(text),
            Refusal::Hindered(text) => self.failed.push(text),
        }
    }
}

/// Undoes what terminated processes left, in all places where this user's journals can be, and
/// removes marked scratch folders without a journal (which a power cut leaves) from the
/// temporary folders. With `dry_run` it only reports what it would do.
#[must_use]
pub fn restore(dry_run: bool) -> RestoreReport {
    restore_all(&folders(), &temporary_folders(), dry_run)
}

fn restore_all(journals: &[PathBuf], temporary: &[PathBuf], dry_run: bool) -> RestoreReport {
    let mut report = RestoreReport::default();
    let mut seen = BTreeSet::new();
    for folder in journals {
        match undo_journals(folder, dry_run, &mut report, &mut seen) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // Another user's folder has no journal of this one in it.
            Err(error) if is_anothers(folder) => report.kept.push(error.to_string()),
            Err(error) => report.failed.push(error.to_string()),
        }
    }
    for parent in temporary {
        undo_abandoned(parent, dry_run, &mut report, &mut seen);
    }
    report
}

/// Removes the marked scratch folders in `parent` whose process is gone and which no journal
/// names.
pub fn remove_abandoned(parent: &Path, dry_run: bool, report: &mut RestoreReport) {
    undo_abandoned(parent, dry_run, report, &mut BTreeSet::new());
}

/// `seen` are the folders that were looked at.
fn undo_abandoned(
    parent: &Path,
    dry_run: bool,
    report: &mut RestoreReport,
    seen: &mut BTreeSet<PathBuf>,
) {
    // A link and what it leads to are one folder.
    let Ok(parent) = fs::canonicalize(parent) else { return };
    for (path, owner) in marked_in(&parent) {
        if !seen.insert(path.clone()) || owner.lives() {
            continue;
        }
        if let Some(reason) = reason_to_keep(&owner) {
            report.kept.push(format!("{}: {reason}", path.display()));
            continue;
        }
        report.undo(&Entry::Scratch { path }, &owner, dry_run);
    }
}

/// [`restore`] for one folder.
///
/// # Errors
/// Those of [`restore`]; `NotFound` if the folder does not exist.
pub fn restore_in(folder: &Path, dry_run: bool) -> io::Result<RestoreReport> {
    let mut report = RestoreReport::default();
    undo_journals(folder, dry_run, &mut report, &mut BTreeSet::new())?;
    Ok(report)
}

fn undo_journals(
    folder: &Path,
    dry_run: bool,
    report: &mut RestoreReport,
    seen: &mut BTreeSet<PathBuf>,
) -> io::Result<()> {
    checked(folder)?;
    let mut names: Vec<_> = fs::read_dir(folder)
        .map_err(|error| explained(&error, "cannot list", folder))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".journal"))
        .collect();
    names.sort();
    for name in names {
        restore_one(&folder.join(&name), &name, dry_run, report, seen);
    }
    Ok(())
}

/// Leaves the journal to its owner if that is alive.
fn restore_one(
    path: &Path,
    name: &str,
    dry_run: bool,
    report: &mut RestoreReport,
    seen: &mut BTreeSet<PathBuf>,
) {
    let (file, text) = match locked(path) {
        Ok(Some(content)) => content,
        Ok(None) => {
            let text = format!("{}: another restore is at it", path.display());
            return report.kept.push(text);
        }
        // Another restore has already done it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            let text = explained(&error, "cannot read", path);
            return report.failed.push(text.to_string());
        }
    };
    let mut lines = text.lines().enumerate().peekable();
    let header = lines.peek().and_then(|(_, line)| serde_json::from_str::<Owner>(line).ok());
    let Some(owner) = header.clone().or_else(|| Owner::from_name(name)) else {
        let text = format!("{}: not a journal of punctual; remove it", path.display());
        return report.kept.push(text);
    };
    if header.is_some() {
        lines.next();
    }
    if let Some(reason) = reason_to_keep(&owner) {
        return report.kept.push(format!("{}: {reason}", path.display()));
    }
    let mut entries = Vec::new();
    for (number, line) in lines {
        match serde_json::from_str::<Entry>(line) {
            Ok(entry) => entries.push(entry),
            Err(error) => report.failed.push(format!(
                "{} line {} cannot be read ({error}): {line}",
                path.display(),
                number + 1
            )),
        }
    }
    seen.extend(entries.iter().map(Entry::path).map(Path::to_owned));
    let undone = undo_all(&entries, &owner, dry_run, report);
    if undone
        && !dry_run
        && let Err(error) = fs::remove_file(path)
    {
        let text = explained(&error, "cannot remove", path);
        report.failed.push(text.to_string());
    }
    // It is locked until here.
    drop(file);
}

fn reason_to_keep(owner: &Owner) -> Option<String> {
    let pid = owner.pid;
    if !owner.same_machine() {
        return Some(if owner.machine.is_empty() || this_machine().is_empty() {
            format!(
                "process {pid} was of an earlier boot or of another machine, which cannot be told \
                 (no /etc/machine-id); remove it by hand if no other machine uses this folder"
            )
        } else {
            format!("process {pid} is of another machine; run restore there")
        });
    }
    if owner.same_boot() && !owner.same_namespace() {
        return Some(format!("process {pid} is of another PID namespace; run restore there"));
    }
    owner.lives().then(|| format!("process {pid} still runs and undoes it itself"))
}

/// Undoes the latest change first; returns whether nothing is left to undo.
fn undo_all(entries: &[Entry], owner: &Owner, dry_run: bool, report: &mut RestoreReport) -> bool {
    let same_boot = owner.same_boot();
    let mut undone = true;
    for entry in entries.iter().rev() {
        // After a reboot, the current value is someone's later choice.
        if !entry.ends_with_boot() || same_boot {
            undone &= report.undo(entry, owner, dry_run);
        }
    }
    undone
}

/// Reads a journal under a lock, so that only one of several restores does the work. `None` if
/// another has the lock.
fn locked(path: &Path) -> io::Result<Option<(Locked, String)>> {
    let metadata = path.symlink_metadata()?;
    let own = metadata.uid() == punctual_sys::process::effective_uid();
    if !metadata.is_file() || !own || metadata.len() > MAX_JOURNAL_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not a plain file of this user, or too large; remove it",
        ));
    }
    let file = OpenOptions::new().read(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut file = Locked(file);
    let mut bytes = Vec::new();
    file.0.read_to_end(&mut bytes)?;
    Ok(Some((file, String::from_utf8_lossy(&bytes).into_owned())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::DirBuilderExt;

    use super::super::scratch::Scratch;
    use super::*;

    #[test]
    fn a_folder_of_another_user_is_left_alone_and_the_rest_is_undone() {
        let parent = std::env::temp_dir().join(format!("punctual-restore-{}", std::process::id()));
        let _ = fs::remove_dir_all(&parent);
        fs::create_dir(&parent).unwrap();
        let parent = parent.canonicalize().unwrap();
        let (anothers, own) = (parent.join("anothers"), parent.join("own"));
        // What no user but its maker may use, made without root: not even a folder.
        fs::write(&anothers, "").unwrap();
        fs::DirBuilder::new().mode(0o700).create(&own).unwrap();
        let open = parent.join("open");
        fs::DirBuilder::new().mode(0o777).create(&open).unwrap();
        fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let dead = Owner { start: u64::MAX, ..Owner::this().unwrap() };
        let scratch = parent.join("punctual-load-1-0");
        Scratch::make(&scratch, &dead).unwrap();
        let entry = serde_json::to_string(&Entry::Scratch { path: scratch.clone() }).unwrap();
        let header = serde_json::to_string(&dead).unwrap();
        fs::write(own.join(dead.file_name()), format!("{header}\n{entry}\n")).unwrap();
        let abandoned = parent.join("punctual-load-1-1");
        Scratch::make(&abandoned, &dead).unwrap();

        let absent = parent.join("absent");
        let journals = [anothers.clone(), absent, own];
        let report = restore_all(&journals, std::slice::from_ref(&parent), false);
        let removed = [&scratch, &abandoned].map(|path| format!("remove {}", path.display()));
        assert_eq!((&report.done[..], &report.failed[..]), (&removed[..], &[][..]));
        assert!(report.kept.len() == 1 && report.kept[0].contains("anothers"), "{report:?}");
        assert!(!scratch.exists() && !abandoned.exists());
        // What another machine has made on a file system that both use is not this one's.
        let elsewhere =
            Owner { boot_id: "there".to_owned(), machine: "f".repeat(32), ..dead.clone() };
        let nowhere = Owner { machine: String::new(), ..elsewhere.clone() };
        for (owner, word) in [(elsewhere, "another machine; run"), (nowhere, "by hand")] {
            let scratch = parent.join("punctual-load-1-2");
            Scratch::make(&scratch, &owner).unwrap();
            let journal = journals[2].join(owner.file_name());
            let header = serde_json::to_string(&owner).unwrap();
            fs::write(&journal, format!("{header}\n")).unwrap();
            for dry_run in [true, false] {
                let report = restore_all(&journals, std::slice::from_ref(&parent), dry_run);
                assert_eq!((report.done.len(), report.failed.len()), (0, 0), "{report:?}");
                let of_it: Vec<_> = report.kept.iter().filter(|s| s.contains(word)).collect();
                assert_eq!(of_it.len(), 2, "the journal and the folder: {report:?}");
            }
            assert!(scratch.exists() && journal.exists());
            fs::remove_dir_all(&scratch).unwrap();
            fs::remove_file(&journal).unwrap();
        }
        // This user's own folder may hold this user's journals: nobody may have changed them.
        let report = restore_all(&[open], &[], false);
        assert!(report.failed[0].contains("open to other users"), "{report:?}");
        fs::remove_dir_all(&parent).unwrap();
    }
}
