//! The journal of what this process has left on the board, and how to undo it.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use punctual_sys::error;
use punctual_sys::gpio::{self, OutputLine};
use punctual_sys::rtc::Rtc;
use punctual_sys::token::{Semaphores, system_v};

use super::entry::{self, CGROUP_PREFIX, Entry, INSTANCE_PREFIX};
use super::folders::{canonical, explained, first_usable, made};
use super::owner::Owner;
use super::scratch::{Refusal, SCRATCH_PREFIX, Scratch};

/// How many names are tried for a scratch folder.
const MAX_SCRATCH_NAMES: u32 = 10_000;

/// What this process has left on the board, on disk and in memory.
///
/// One per process. The file is created with the first entry, so a run that changes nothing
/// writes nothing. Dropping the journal undoes everything.
#[derive(Debug)]
pub struct Journal {
    owner: Owner,
    /// Folder of the file; `None`: the first usable one of [`super::folders::folders`].
    folder: Option<PathBuf>,
    file: Option<(File, PathBuf)>,
    entries: Vec<Entry>,
}

impl Journal {
    /// A journal below `/run/punctual` for root, otherwise below `$XDG_RUNTIME_DIR/punctual`
    /// or `/tmp/punctual-<uid>`.
    ///
    /// # Errors
    /// `/proc/self/stat`, which tells when the owner was started, cannot be read.
    pub fn new() -> io::Result<Self> {
        Ok(Self { owner: Owner::this()?, folder: None, file: None, entries: Vec::new() })
    }

    /// A journal in a folder of the caller's choice, for [`super::restore_in`].
    ///
    /// # Errors
    /// Those of [`Journal::new`].
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        let mut journal = Self::new()?;
        journal.folder = Some(folder.to_owned());
        Ok(journal)
    }

    /// Creates a private folder `punctual-load-<pid>-<n>` (mode 0700) below `parent`. Undoing
    /// removes it with all its contents.
    ///
    /// # Errors
    /// The journal or the folder cannot be written; the text names it.
    pub fn scratch_dir(&mut self, parent: &Path) -> io::Result<PathBuf> {
        let parent = canonical(parent)?;
        for n in 0..MAX_SCRATCH_NAMES {
            let path = parent.join(format!("{SCRATCH_PREFIX}{}-{n}", self.owner.pid));
            if path.symlink_metadata().is_ok() {
                continue;
            }
            self.add(Entry::Scratch { path: path.clone() })?;
            match Scratch::make(&path, &self.owner) {
                Ok(()) => return Ok(path),
                // Someone else created it meanwhile. The line on disk does no harm: without
                // this process's marker the folder is not removed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.entries.pop();
                }
                Err(error) => {
                    self.entries.pop();
                    return Err(error);
                }
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!(
                "cannot make a scratch folder in {}: {MAX_SCRATCH_NAMES} of this process are there",
                parent.display()
            ),
        ))
    }

    /// Creates a cgroup. Undoing kills every process in it and below it, and removes it.
    ///
    /// # Errors
    /// `InvalidInput` if its name does not begin with [`CGROUP_PREFIX`]; other errors if the
    /// journal or the cgroup cannot be written.
    pub fn cgroup_dir(&mut self, path: &Path) -> io::Result<()> {
        let name = path.file_name().unwrap_or(OsStr::new(""));
        if !name.as_encoded_bytes().starts_with(CGROUP_PREFIX.as_bytes()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "{}: the name of a cgroup of punctual begins with {CGROUP_PREFIX}",
                    path.display()
                ),
            ));
        }
        let path = canonical(path.parent().unwrap_or(Path::new("/")))?.join(name);
        if path.symlink_metadata().is_ok() {
            let error = io::ErrorKind::AlreadyExists.into();
            return Err(explained(&error, "cannot make the cgroup", &path));
        }
        self.add(Entry::Cgroup { path: path.clone() })?;
        fs::create_dir(&path).map_err(|error| explained(&error, "cannot make the cgroup", &path))
    }

    /// Writes `value` to a file of `/proc`, `/sys` or the like, which must exist.
    ///
    /// # Errors
    /// The file cannot be read or refuses the value, or the journal cannot be written; in each
    /// case nothing has changed.
    pub fn setting(&mut self, path: &Path, value: &str) -> io::Result<()> {
        let path = canonical(path)?;
        let old = entry::setting_in_force(&path)
            .map_err(|error| explained(&error, "cannot read the setting", &path))?;
        if old == value {
            return Ok(());
        }
        self.add(Entry::Setting { path: path.clone(), old })?;
        entry::write_setting(&path, value).map_err(|error| {
            let what = format!("cannot write \"{value}\" to the setting");
            explained(&error, &what, &path)
        })
    }

    /// Notes the value of a setting that is going to be changed where there is no time for the
    /// journal.
    ///
    /// # Errors
    /// The file cannot be read, or the journal cannot be written.
    pub fn will_change(&mut self, path: &Path) -> io::Result<()> {
        let path = canonical(path)?;
        let old = entry::setting_in_force(&path)
            .map_err(|error| explained(&error, "cannot read the setting", &path))?;
        self.add(Entry::Setting { path, old })
    }

    /// Makes an instance `punctual-<pid>-<n>` of the trace in a tracefs. Undoing removes it with
    /// all that it traces.
    ///
    /// # Errors
    /// The journal or the instance cannot be written; the text names it.
    pub fn trace_instance(&mut self, tracing: &Path) -> io::Result<PathBuf> {
        let parent = canonical(&tracing.join("instances"))?;
        let name = |n: u32| parent.join(format!("{INSTANCE_PREFIX}{}-{n}", self.owner.pid));
        let free = (0..MAX_SCRATCH_NAMES).map(name).find(|path| path.symlink_metadata().is_err());
        let path = free.ok_or(io::ErrorKind::AlreadyExists)?;
        self.add(Entry::Instance { path: path.clone() })?;
        fs::create_dir(&path).map_err(|error| {
            self.entries.pop();
            explained(&error, "cannot make the trace instance", &path)
        })?;
        Ok(path)
    }

    /// Sets the rate of an open real-time clock's periodic interrupt, Hz.
    ///
    /// # Errors
    /// The journal cannot be written, or those of [`Rtc::rate`] and [`Rtc::set_rate`].
    pub fn rtc_rate(&mut self, path: &Path, rtc: &Rtc, hz: u64) -> io::Result<()> {
        let (path, old) = (canonical(path)?, rtc.rate()?);
        if old == hz {
            return Ok(());
        }
        self.add(Entry::Rate { path, old })?;
        rtc.set_rate(hz)
    }

    /// Binds a PCI device without a driver to one. Undoing takes it from that again.
    ///
    /// # Errors
    /// The journal cannot be written, or the driver refuses the device.
    pub fn bind(&mut self, device: &Path, driver: &str) -> io::Result<()> {
        let path = canonical(device)?;
        self.add(Entry::Driver { path: path.clone(), driver: driver.to_owned() })?;
        let what = format!("cannot bind to {driver}:");
        entry::bind(&path, driver).map_err(|error| explained(&error, &what, &path))
    }

    /// Takes a line of a GPIO chip as an output. Undoing sets it low, and makes it an input if it
    /// was one.
    ///
    /// # Errors
    /// The journal cannot be written, or those of [`OutputLine::take`].
    pub fn output_line(&mut self, chip: &Path, line: u32) -> io::Result<OutputLine> {
        let (input, path) = (gpio::is_input(chip, line)?, canonical(chip)?);
        self.add(Entry::Line { path: path.clone(), line, input })?;
        OutputLine::take(&path, line, input).inspect_err(|_| {
            // It is another's: not to be touched.
            self.entries.pop();
        })
    }

    /// Makes `count` System V semaphores at 0. Undoing removes them.
    ///
    /// # Errors
    /// The journal cannot be written, or those of semget(2).
    pub fn semaphores(&mut self, count: u32) -> io::Result<Semaphores> {
        let key = system_v::free_key();
        self.add(Entry::Semaphores { key })?;
        Semaphores::make(key, count).inspect_err(|_| {
            // Those of another process, if it was faster: not to be removed.
            self.entries.pop();
        })
    }

    /// Forgets a setting: [`Journal::undo`] leaves it as it is.
    pub fn forget(&mut self, path: &Path) {
        let Ok(path) = canonical(path) else { return };
        self.entries
            .retain(|entry| !matches!(entry, Entry::Setting { path: of, .. } if *of == path));
    }

    /// Undoes everything, the latest change first, and returns one sentence for each failure.
    /// The file is removed if nothing failed; otherwise it stays for `punctual restore`.
    pub fn undo(&mut self) -> Vec<String> {
        // A child of fork() has a copy of this journal, but the entries are its parent's. The
        // PID alone could be the same inside a PID namespace.
        let same_number = std::process::id() == self.owner.pid;
        if !Owner::this().map_or(same_number, |this| this.is_same_process(&self.owner)) {
            return Vec::new();
        }
        let mut failed = Vec::new();
        for entry in std::mem::take(&mut self.entries).iter().rev() {
            if let Err(Refusal::NotOurs(message) | Refusal::Hindered(message)) =
                entry.undo(&self.owner)
            {
                failed.push(message);
            }
        }
        if let Some((_, path)) = self.file.take()
            && failed.is_empty()
            && let Err(error) = fs::remove_file(&path)
        {
            failed.push(format!("cannot remove {}: {}", path.display(), error::text(&error)));
        }
        failed
    }

    /// Like [`Journal::undo`], but prints failures to stderr. May be called during a panic, so
    /// a closed stderr must not cause an abort.
    pub fn undo_or_complain(&mut self) {
        for message in self.undo() {
            let _ = writeln!(io::stderr(), "punctual: {message}");
        }
    }

    /// Adds an entry, on disk before in memory.
    fn add(&mut self, entry: Entry) -> io::Result<()> {
        let line = |value: serde_json::Result<String>| value.map_err(io::Error::other);
        let mut text = String::new();
        if self.file.is_none() {
            self.file = Some(self.create()?);
            text = line(serde_json::to_string(&self.owner))? + "\n";
        }
        text += &line(serde_json::to_string(&entry))?;
        text.push('\n');
        let (file, path) = self.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| explained(&error, "cannot write the journal", path))?;
        self.entries.push(entry);
        Ok(())
    }

    fn create(&self) -> io::Result<(File, PathBuf)> {
        let folder = match &self.folder {
            Some(folder) => made(folder)?,
            None => first_usable()?,
        };
        let path = folder.join(self.owner.file_name());
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| explained(&error, "cannot make the journal", &path))?;
        // The directory entry must reach the disk too.
        File::open(&folder).and_then(|folder| folder.sync_all())?;
        Ok((file, path))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.undo_or_complain();
    }
}
