//! The run directory while it is written: records are only appended, and `run.json` is
//! replaced atomically (write to a temporary file, fsync, rename).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use punctual_core::format::{Record, encode};
use punctual_core::layout;
use punctual_core::schema::Run;
use punctual_sys::error;

/// Bytes reserved at the start, so that results can still be written if the file system fills
/// up during the run.
const RESERVE: usize = 256 * 1024;

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

/// A run directory that is being written.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// An unlinked file, so the kernel frees its space however this process ends.
    reserve: Option<File>,
}

impl RunDir {
    /// Creates the folder and its parents.
    ///
    /// # Errors
    /// It already exists, or cannot be created or written to; the message names the remedy.
    pub fn create(path: &Path) -> Result<Self, String> {
        let say = |error: &io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::AlreadyExists => {
                    "a run is never overwritten; name another folder with --out"
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "name a folder that can be written to with --out"
                }
                io::ErrorKind::StorageFull => "free some space, or name another folder with --out",
                _ => "name another folder with --out",
            };
            format!(
                "cannot make the run directory {}: {}; {hint}",
                path.display(),
                error::text(error)
            )
        };
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent).map_err(|error| match error.kind() {
                // A parent of the run directory is a file.
                io::ErrorKind::AlreadyExists => say(&io::ErrorKind::NotADirectory.into()),
                _ => say(&error),
            })?;
        }
        fs::create_dir(path).map_err(|error| say(&error))?;
        let mut dir = Self { path: path.to_owned(), reserve: None };
        let reserve = dir.reserve().and_then(|()| fs::create_dir(path.join(layout::CELLS)));
        if let Err(error) = reserve {
            let text = say(&error);
            let _ = fs::remove_dir_all(path);
            return Err(text);
        }
        Ok(dir)
    }

    fn reserve(&mut self) -> io::Result<()> {
        let path = self.path.join(".reserve");
        let mut file = File::create(&path)?;
        fs::remove_file(&path)?;
        file.write_all(&vec![0; RESERVE])?;
        self.reserve = Some(file);
        Ok(())
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
        let folder = self.path.join(layout::CELLS).join(name);
        let open = || {
            fs::create_dir(&folder)?;
            OpenOptions::new().create_new(true).append(true).open(folder.join(layout::BLOCKS))
        };
        let blocks = open().map_err(|error| at(&folder, &error))?;
        Ok(CellFiles { folder, blocks, buffer: Vec::with_capacity(64 * 1024), failed: None })
    }

    /// Rewrites `run.json`. Readers see the old file or the new one, never a part.
    ///
    /// # Errors
    /// The file system's error, with the path; the old file is then still in place.
    pub fn write_run(&mut self, run: &Run) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(run)?;
        let done = self.replace(layout::RUN_JSON, &text);
        if done.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::StorageFull)
            && self.reserve.is_some()
        {
            self.release_reserve();
            return self.replace(layout::RUN_JSON, &text);
        }
        done
    }

    fn replace(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let (temporary, path) = (self.path.join(format!(".{name}.new")), self.path.join(name));
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(text)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            at(&path, &error)
        })
    }
}

/// The records of one cell while it is being measured.
#[derive(Debug)]
pub struct CellFiles {
    folder: PathBuf,
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
            self.failed = Some(format!(
                "{}: {}",
                self.folder.join(layout::BLOCKS).display(),
                error::text(&error)
            ));
        }
    }

    /// Why blocks could not be written, if they could not.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Writes the final records of the cell and syncs everything. Uses the space that `store`
    /// has reserved if the disk is full.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn finish(mut self, records: &[Record], store: &mut RunDir) -> io::Result<()> {
        self.flush(SyncPolicy::Cell);
        // A full disk also refuses to sync what it accepted before; `failed` reports that.
        let _ = self.blocks.sync_data();
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(record, &mut bytes));
        let path = self.folder.join(layout::HISTOGRAMS);
        let write = || {
            let mut file = File::create(&path)?;
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
        done.map_err(|error| at(&path, &error))
    }
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {}", path.display(), error::text(error)))
}
