//! The run directory while it is written: records are only appended, and `run.json` is
//! replaced atomically (write to a temporary file, fsync, rename). Once it is large, what its cells
//! become is appended to `cells.jsonl` instead, until the run ends.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use punctual_core::format::{Record, encode};
use punctual_core::layout;
use punctual_core::run::appended;
use punctual_core::schema::Run;
use punctual_sys::folder::{Folder, Locked};
use punctual_sys::{error, written};

/// Bytes reserved at the start, so that results can still be written if the file system fills
/// up during the run.
const RESERVE: usize = 256 * 1024;

/// From this length on `run.json` is not rewritten for each cell, bytes: about a hundred cells.
const LARGE: usize = 256 * 1024;

/// When records are synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncPolicy {
    /// At the end of each cell; a power cut loses the current cell.
    Cell,
    /// Every second. Disturbs the measurement on a journalling file system.
    Block,
}

impl SyncPolicy {
    /// The name as recorded.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cell => "cell",
            Self::Block => "block",
        }
    }
}

/// A run directory that is being written. It is held open: if another user renames it or puts
/// links where it was, what is written still goes to it and nowhere else.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    folder: Folder,
    cells: Folder,
    /// An unlinked file, so the kernel frees its space however this process ends.
    reserve: Option<File>,
    /// Length of `run.json` as it was last written, bytes.
    length: usize,
    /// What the cells have become since then.
    cells_jsonl: Option<File>,
    /// Whether `run.json` is always whole, since others read it meanwhile.
    whole: bool,
    /// Held as long as this process writes.
    #[allow(dead_code, reason = "held, not used")]
    lock: Locked,
}

impl RunDir {
    /// Creates the folder and its parents.
    ///
    /// # Errors
    /// It already exists, or cannot be created or written to; the message names the remedy.
    pub fn create(path: &Path) -> Result<Self, String> {
        let say = |error: &io::Error| {
            format!(
                "cannot make the run directory {}: {}; {}",
                path.display(),
                error::text(error),
                remedy(error)
            )
        };
        let parent = parent_of(path);
        fs::create_dir_all(parent).map_err(|error| match error.kind() {
            // A parent of the run directory is a file.
            io::ErrorKind::AlreadyExists => say(&io::ErrorKind::NotADirectory.into()),
            _ => say(&error),
        })?;
        let name = path.file_name().ok_or_else(|| say(&io::ErrorKind::AlreadyExists.into()))?;
        let parent = Folder::open(parent).map_err(|error| say(&error))?;
        let folder = parent.make_folder(name).map_err(|error| say(&error))?;
        let made = || {
            let reserve = Some(reserve(&folder)?);
            Ok((reserve, folder.make_folder(layout::CELLS)?, written::lock(&folder)?))
        };
        match made() {
            Ok((reserve, cells, lock)) => Ok(Self::of(path, folder, cells, reserve, lock)),
            Err(error) => {
                let _ = folder.remove_folder(layout::CELLS);
                let _ = parent.remove_folder(name);
                Err(say(&error))
            }
        }
    }

    fn of(path: &Path, folder: Folder, cells: Folder, reserve: Option<File>, lock: Locked) -> Self {
        let path = path.to_owned();
        Self { path, folder, cells, reserve, length: 0, cells_jsonl: None, whole: false, lock }
    }

    /// Keeps `run.json` whole after every cell, however long it is.
    pub fn keep_whole(&mut self) {
        self.whole = true;
    }

    /// Opens the folder of a run that was cut short, to go on with it.
    ///
    /// # Errors
    /// Another process writes it, or it cannot be written to; the message names the remedy.
    pub fn reopen(path: &Path) -> Result<Self, String> {
        let open = || {
            let folder = Folder::open(path)?;
            let lock = written::lock(&folder)?;
            let reserve = Some(reserve(&folder)?);
            let cells = folder.folder(layout::CELLS)?;
            Ok(Self::of(path, folder, cells, reserve, lock))
        };
        open().map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => {
                format!("{}: another punctual is writing it; wait for its end", path.display())
            }
            _ => format!("cannot continue {}: {}", path.display(), error::text(&error)),
        })
    }

    /// What is unsafe about the folder that it is in: whoever can rename the run directory can
    /// put another in its place, for those who read it later.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let who = written::who_can_replace(parent_of(&self.path))?;
        Some(format!("{who}; name a folder of your own with --out"))
    }

    /// Its path when it was made or opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of `run.json`.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn read_run(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        let read = self.folder.file(layout::RUN_JSON).and_then(|mut f| f.read_to_end(&mut text));
        read.map(|_| text).map_err(|error| at(&self.path.join(layout::RUN_JSON), &error))
    }

    /// Begins a file that gets its name, and replaces what had it, when it is complete.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn draft<'d>(&'d self, name: &'d str) -> io::Result<Draft<'d>> {
        let temporary = format!(".{name}.new");
        match self.folder.make_file_anew(&temporary) {
            Ok(file) => Ok(Draft { dir: self, name, temporary, file, kept: false }),
            Err(error) => Err(at(&self.path.join(name), &error)),
        }
    }

    /// Releases the reserved space, because the disk is full or the run ends.
    pub fn release_reserve(&mut self) {
        self.reserve = None;
    }

    /// Creates the folder of a cell and its file of records.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn cell(&mut self, name: &str) -> io::Result<CellFiles> {
        let path = self.path.join(layout::CELLS).join(name);
        let open = || {
            let folder = self.cells.make_folder(name)?;
            let blocks = folder.make_file(layout::BLOCKS)?;
            Ok((folder, blocks))
        };
        let (folder, blocks) = open().map_err(|error| at(&path, &error))?;
        let buffer = Vec::with_capacity(64 * 1024);
        Ok(CellFiles { path, folder, blocks, buffer, failed: None })
    }

    /// Rewrites `run.json`. Readers see the old file or the new one, never a part.
    ///
    /// # Errors
    /// The file system's error, with the path; the old file is then still in place.
    pub fn write_run(&mut self, run: &Run) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(run)?;
        self.with_reserve(|dir| dir.replace(layout::RUN_JSON, &text))?;
        self.length = text.len();
        self.cells_jsonl = None;
        match self.folder.remove_file(layout::CELLS_JSONL) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(at(&self.path.join(layout::CELLS_JSONL), &error))
            }
            _ => Ok(()),
        }
    }

    /// Writes what a cell has become: its line alone if `run.json` is large.
    ///
    /// # Errors
    /// The file system's error, with the path; what was written before is still in place.
    pub fn write_cell(&mut self, run: &Run, number: usize) -> io::Result<()> {
        if self.whole || self.length < LARGE {
            return self.write_run(run);
        }
        let line = appended::line_of(run, number)?;
        self.with_reserve(|dir| {
            let mut append = || {
                let file = match dir.cells_jsonl.take() {
                    Some(file) => file,
                    None => dir.folder.append(layout::CELLS_JSONL)?,
                };
                let file = dir.cells_jsonl.insert(file);
                file.write_all(&line)?;
                file.sync_data()
            };
            append().map_err(|error| at(&dir.path.join(layout::CELLS_JSONL), &error))
        })
    }

    /// Writes something, and again with the reserved space if the disk is full.
    fn with_reserve(
        &mut self,
        mut write: impl FnMut(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        let done = write(self);
        if done.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::StorageFull)
            && self.reserve.is_some()
        {
            self.release_reserve();
            return write(self);
        }
        done
    }

    fn replace(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let draft = self.draft(name)?;
        let write = |mut file: &File| {
            file.write_all(text)?;
            file.write_all(b"\n")
        };
        write(draft.file()).map_err(|error| at(&self.path.join(name), &error))?;
        draft.keep()
    }
}

/// A file of the run directory that is not complete yet. Dropping it removes it.
#[derive(Debug)]
pub struct Draft<'d> {
    dir: &'d RunDir,
    name: &'d str,
    temporary: String,
    file: File,
    kept: bool,
}

impl Draft<'_> {
    /// The file, open for writing.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Forces the file to disk and gives it its name.
    ///
    /// # Errors
    /// The file system's error, with the path; what had the name is then still in place.
    pub fn keep(mut self) -> io::Result<()> {
        let folder = &self.dir.folder;
        let kept = self.file.sync_all().and_then(|()| folder.rename(&self.temporary, self.name));
        self.kept = kept.is_ok();
        kept.and_then(|()| folder.sync())
            .map_err(|error| at(&self.dir.path.join(self.name), &error))
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let _ = self.dir.folder.remove_file(&self.temporary);
        }
    }
}

/// The folder of a run directory that is to be made.
fn parent_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            "a run is never overwritten; name another folder with --out"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a folder that can be written to with --out"
        }
        io::ErrorKind::StorageFull => "free some space, or name another folder with --out",
        io::ErrorKind::FileTooLarge => "raise the limit on the size of files (ulimit -f)",
        _ => "name another folder with --out",
    }
}

fn reserve(folder: &Folder) -> io::Result<File> {
    const NAME: &str = ".reserve";
    let mut file = folder.make_file_anew(NAME)?;
    folder.remove_file(NAME)?;
    file.write_all(&vec![0; RESERVE])?;
    Ok(file)
}

/// The records of one cell while it is being measured.
#[derive(Debug)]
pub struct CellFiles {
    /// Path of the cell's folder, for messages.
    path: PathBuf,
    folder: Folder,
    blocks: File,
    buffer: Vec<u8>,
    failed: Option<String>,
}

impl CellFiles {
    /// Appends a record to the buffer.
    pub fn push(&mut self, record: &Record) {
        if self.failed.is_none() {
            encode(record, &mut self.buffer);
        }
    }

    /// Writes the buffer out. After a first failure nothing more is written: the measurement
    /// goes on, and the cell says what is missing when it ends.
    pub fn flush(&mut self, sync: SyncPolicy) {
        if self.buffer.is_empty() || self.failed.is_some() {
            return;
        }
        let write = self.blocks.write_all(&self.buffer).and_then(|()| match sync {
            SyncPolicy::Block => self.blocks.sync_data(),
            SyncPolicy::Cell => Ok(()),
        });
        self.buffer.clear();
        if let Err(error) = write {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.failed.get_or_insert(at(&self.path.join(layout::BLOCKS), error).to_string());
    }

    /// Makes another file of the cell, which is written at its end.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn make_file(&self, name: &str) -> io::Result<File> {
        self.folder.make_file(name).map_err(|error| at(&self.path.join(name), &error))
    }

    /// What was written so far of the cell's blocks file, at most `most` bytes, and whether
    /// that is all of it.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn read_back(&mut self, most: u64) -> io::Result<(Vec<u8>, bool)> {
        self.flush(SyncPolicy::Cell);
        let read = || {
            let mut bytes = Vec::new();
            let file = self.folder.file(layout::BLOCKS)?;
            let length = file.metadata()?.len();
            file.take(most).read_to_end(&mut bytes)?;
            Ok((bytes, length <= most))
        };
        read().map_err(|error| at(&self.path.join(layout::BLOCKS), &error))
    }

    /// Why blocks could not be written, if they could not.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Forces all records so far to disk: with some file systems a write that failed is not
    /// reported before.
    pub fn sync(&mut self) {
        self.flush(SyncPolicy::Cell);
        if let Err(error) = self.blocks.sync_data() {
            self.fail(&error);
        }
    }

    /// Writes the final records of the cell and syncs them. Uses the space that `store` has
    /// reserved if the disk is full.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn finish(self, records: &[Record], store: &mut RunDir) -> io::Result<()> {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(record, &mut bytes));
        let write = || {
            let mut file = self.folder.make_file_anew(layout::HISTOGRAMS)?;
            file.write_all(&bytes)?;
            file.sync_data()
        };
        let mut done = write();
        if done.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::StorageFull)
            && store.reserve.is_some()
        {
            store.release_reserve();
            done = write();
        }
        done.map_err(|error| at(&self.path.join(layout::HISTOGRAMS), &error))
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {}", path.display(), error::text(error)))
}
