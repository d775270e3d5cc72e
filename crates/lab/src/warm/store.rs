//! The cache of kept boards.
//!
//! ```text
//! boards/.lock               locked by whoever adds or removes
//! boards/KEY/state           the state of a board, as QEMU writes it
//! boards/KEY/snapshot.json   what it comes from, and its SHA-256
//! boards/partial-KEY/        being written, then renamed
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use punctual_core::hash::Hasher;
use punctual_sys::file;
use punctual_sys::folder::{Locked, open_lock};
use punctual_sys::storage::room;
use serde::Deserialize;
use serde_json::json;

use super::origin::Origin;
use crate::files;
use crate::user_cache::{self, Partial, clean};

/// The state in a board's folder.
pub(crate) const STATE: &str = "state";

/// Its description.
const SNAPSHOT: &str = "snapshot.json";

/// All boards together may take so much, bytes: about 25 of the default size.
const MOST: u64 = 2 << 30;

/// What a state takes besides the memory of its board, and its boot beside it, at most, bytes.
const BESIDES: u64 = 64 << 20;

/// Longest description, bytes.
const LONGEST: u64 = 1 << 20;

/// A kept state, open: it can be used even when it has been removed.
#[derive(Debug)]
pub(crate) struct Snapshot {
    file: File,
    /// SHA-256 of the state.
    pub(crate) sha256: String,
}

impl Snapshot {
    /// A path to it for children of this process.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }
}

/// The kept boards; the folder is created when the first is kept.
#[derive(Debug)]
pub(crate) struct Boards {
    folder: PathBuf,
}

/// The right to add and remove, until it is dropped.
pub(crate) struct Keeper<'a> {
    boards: &'a Boards,
    _lock: Locked,
}

/// What there is of a board.
#[derive(Debug)]
pub(crate) enum Found {
    Kept(Snapshot),
    Nothing,
    /// Something that is of no use, for this reason.
    Damaged(String),
}

impl Boards {
    /// Those of the user.
    pub(crate) fn of_user() -> Result<Self> {
        Ok(Self { folder: user_cache::folder()?.join("boards") })
    }

    /// The kept state of a board, if its bytes are those that were written.
    pub(crate) fn find(&self, origin: &Origin) -> Found {
        let folder = self.folder.join(origin.key());
        if !folder.exists() {
            return Found::Nothing;
        }
        match read(&folder) {
            Ok(snapshot) => Found::Kept(snapshot),
            Err(error) => Found::Damaged(format!("{}: {error:#}", folder.display())),
        }
    }

    /// Checks that there is room for the state of a board with so much memory, bytes. What QEMU
    /// cannot write it does not explain.
    ///
    /// # Errors
    /// There is none, and what to do.
    pub(crate) fn check_room(&self, memory: u64) -> Result<()> {
        let needed = memory.saturating_add(BESIDES);
        let free = room(&self.folder).context("the cache of boards")?.free;
        ensure!(
            free >= needed,
            "no room to keep a board in {}: it may take {} MiB, and {} are free: free some, set \
             PUNCTUAL_CACHE to another folder, or leave out --warm",
            self.folder.display(),
            needed >> 20,
            free >> 20
        );
        Ok(())
    }

    /// The right to change something; `None` as long as another process has it.
    pub(crate) fn writer(&self) -> Result<Option<Keeper<'_>>> {
        let cannot = || format!("cannot write {}: set PUNCTUAL_CACHE", self.folder.display());
        fs::create_dir_all(&self.folder).with_context(cannot)?;
        let lock = open_lock(&self.folder.join(".lock")).with_context(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
        }
        let writer = Keeper { boards: self, _lock: Locked(lock) };
        clean(&self.folder)?;
        Ok(Some(writer))
    }
}

impl Keeper<'_> {
    /// A new folder for the state of a board.
    pub(crate) fn partial(&self, origin: &Origin) -> Result<Partial> {
        let folder = &self.boards.folder;
        Partial::new(folder, &origin.key())
            .with_context(|| format!("cannot write {}", folder.display()))
    }

    /// Keeps the state in a folder, and removes those that were used the longest ago if all
    /// together take too much.
    pub(crate) fn keep(&self, partial: Partial, origin: &Origin) -> Result<Snapshot> {
        let (sha256, bytes) = hash(&open(&partial.0)?)?;
        let description = json!({ "origin": origin, "sha256": sha256, "bytes": bytes });
        let path = partial.0.join(SNAPSHOT);
        files::write(&path, format!("{description:#}\n").as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))?;
        let folder = self.boards.folder.join(origin.key());
        files::rename(&partial.0, &folder)
            .with_context(|| format!("cannot write {}", folder.display()))?;
        self.bound(&folder, MOST)?;
        Ok(Snapshot { file: open(&folder)?, sha256 })
    }

    /// Removes what there is of a board.
    pub(crate) fn remove(&self, origin: &Origin) -> Result<()> {
        remove(&self.boards.folder.join(origin.key()))
    }

    fn bound(&self, newest: &Path, most: u64) -> Result<()> {
        let mut entries = self.entries()?;
        entries.retain(|(path, _)| path != newest);
        entries.sort_by_key(|(_, used)| std::cmp::Reverse(*used));
        let mut sum = length(newest);
        for (path, _) in entries {
            sum = sum.saturating_add(length(&path));
            if sum > most {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// The folders, with the time of their last use.
    fn entries(&self) -> Result<Vec<(PathBuf, SystemTime)>> {
        let folder = &self.boards.folder;
        let entries =
            fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut found = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                let used = fs::metadata(path.join(SNAPSHOT)).and_then(|file| file.modified());
                found.push((path, used.unwrap_or(SystemTime::UNIX_EPOCH)));
            }
        }
        Ok(found)
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn length(folder: &Path) -> u64 {
    fs::metadata(folder.join(STATE)).map_or(0, |file| file.len())
}

/// What is read of a description.
#[derive(Deserialize)]
struct Described {
    sha256: String,
}

/// A whole board; it counts as used now.
fn read(folder: &Path) -> Result<Snapshot> {
    let path = folder.join(SNAPSHOT);
    let text = file::read(&path, LONGEST).with_context(|| SNAPSHOT.to_owned())?;
    let described: Described = serde_json::from_slice(&text).context(SNAPSHOT)?;
    let state = open(folder)?;
    let (found, _) = hash(&state)?;
    ensure!(found == described.sha256, "the state is not what was written");
    // Where this is not allowed, the board counts as used when it was made.
    let _ = File::options().append(true).open(path).and_then(|f| f.set_modified(SystemTime::now()));
    Ok(Snapshot { file: state, sha256: found })
}

fn open(folder: &Path) -> Result<File> {
    File::open(folder.join(STATE)).context(STATE)
}

/// SHA-256 and length of a file.
fn hash(mut file: &File) -> Result<(String, u64)> {
    let (mut hasher, mut bytes) = (Hasher::default(), 0);
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer).context(STATE)? {
            0 => return Ok((hasher.finish(), bytes)),
            count => {
                hasher.update(&buffer[..count]);
                bytes += count as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_core::hash::sha256;

    use super::*;
    use crate::testing::{Folder, emulator};

    fn origin(name: &str) -> Origin {
        Origin::new(&emulator("7.2"), &[], name, "", b"")
    }

    fn boards(folder: &Folder) -> Boards {
        Boards { folder: folder.0.join("boards") }
    }

    fn keep(boards: &Boards, name: &str, state: &[u8]) -> Snapshot {
        let writer = boards.writer().unwrap().unwrap();
        let partial = writer.partial(&origin(name)).unwrap();
        fs::write(partial.0.join(STATE), state).unwrap();
        writer.keep(partial, &origin(name)).unwrap()
    }

    #[test]
    fn what_was_kept_is_found_with_its_hash() {
        let folder = Folder::new();
        let boards = boards(&folder);
        assert!(matches!(boards.find(&origin("a")), Found::Nothing));
        assert_eq!(keep(&boards, "a", b"state of a").sha256, sha256(b"state of a"));
        let Found::Kept(snapshot) = boards.find(&origin("a")) else { panic!() };
        assert_eq!(snapshot.sha256, sha256(b"state of a"));
        assert!(matches!(boards.find(&origin("b")), Found::Nothing));
        // Whoever uses it does not need its folder any more.
        boards.writer().unwrap().unwrap().remove(&origin("a")).unwrap();
        assert_eq!(fs::read(snapshot.path()).unwrap(), b"state of a");
        assert!(matches!(boards.find(&origin("a")), Found::Nothing));
    }

    #[test]
    fn a_board_for_which_there_is_no_room_is_refused() {
        let folder = Folder::new();
        let boards = boards(&folder);
        drop(boards.writer().unwrap());
        boards.check_room(0).unwrap();
        let error = boards.check_room(1 << 60).unwrap_err().to_string();
        assert!(error.contains("PUNCTUAL_CACHE") && error.contains("--warm"), "{error}");
    }

    #[test]
    fn damage_is_noticed_and_told() {
        let folder = Folder::new();
        let boards = boards(&folder);
        keep(&boards, "a", b"state of a");
        let damaged = |file: &str, content: &[u8]| {
            let path = boards.folder.join(origin("a").key()).join(file);
            let before = fs::read(&path).unwrap();
            fs::write(&path, content).unwrap();
            let found = boards.find(&origin("a"));
            fs::write(&path, before).unwrap();
            let Found::Damaged(why) = found else { panic!("{file}: {found:?}") };
            why
        };
        assert!(damaged(STATE, b"state of b").contains("is not what was written"));
        assert!(damaged(STATE, b"state").contains("is not what was written"));
        assert!(damaged(SNAPSHOT, b"{").contains(SNAPSHOT));
        assert!(matches!(boards.find(&origin("a")), Found::Kept(_)));
        fs::remove_file(boards.folder.join(origin("a").key()).join(STATE)).unwrap();
        assert!(matches!(boards.find(&origin("a")), Found::Damaged(_)));
    }

    #[test]
    fn one_writes_at_a_time_and_what_was_cut_short_goes() {
        let folder = Folder::new();
        let boards = boards(&folder);
        let first = boards.writer().unwrap().unwrap();
        let partial = first.partial(&origin("a")).unwrap();
        assert!(boards.writer().unwrap().is_none());
        let path = partial.0.clone();
        // As if it had been killed.
        std::mem::forget(partial);
        drop(first);
        assert!(path.exists());
        let second = boards.writer().unwrap().unwrap();
        assert!(!path.exists());
        let partial = second.partial(&origin("a")).unwrap();
        drop(partial);
        assert!(!path.exists());
    }

    #[test]
    fn the_longest_unused_go_when_all_take_too_much() {
        let folder = Folder::new();
        let boards = boards(&folder);
        for name in ["a", "b", "c", "d"] {
            keep(&boards, name, &[0; 100]);
        }
        let path = |name: &str| boards.folder.join(origin(name).key());
        let used = |name: &str, days: u64| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400);
            let file = File::options().append(true).open(path(name).join(SNAPSHOT)).unwrap();
            file.set_modified(time).unwrap();
        };
        ["b", "a", "c", "d"].iter().zip(10..).for_each(|(name, days)| used(name, days));
        let writer = boards.writer().unwrap().unwrap();
        // The newest stays whatever its time.
        writer.bound(&path("b"), 300).unwrap();
        let kept: Vec<_> = ["a", "b", "c", "d"].into_iter().filter(|n| path(n).exists()).collect();
        assert_eq!(kept, ["b", "c", "d"]);
        writer.bound(&path("b"), 99).unwrap();
        assert!(path("b").exists() && !path("c").exists() && !path("d").exists());
    }
}
