//! What metrics of memory and files need of the machine: areas of memory, files without a name.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use punctual_sys::error;
use punctual_sys::storage::{self, Room};

use crate::harness::context::default_scratch_parent;
use crate::harness::set::available_memory;
use crate::registry::room::default_reserve;
use crate::registry::{Default, Kind, Param, Values, any_text};

/// The parameter `dir` of metrics with files.
pub(super) const DIR: Param = Param {
    name: "dir",
    kind: Kind::Text { value: "DIR", check: any_text },
    default: Default::OfMachine("$TMPDIR or /var/tmp"),
    help: "folder for its files",
};

/// The parameter `size` of metrics with an area of memory or a file.
pub(super) const fn size(default: &'static str, help: &'static str) -> Param {
    Param { name: "size", kind: Kind::Size { low: 4096 }, default: Default::Value(default), help }
}

/// Refuses to use more than half of the memory that is available.
///
/// # Errors
/// What is needed and available.
pub(super) fn claim_memory(bytes: u64) -> io::Result<()> {
    let available = available_memory(Path::new("/proc"));
    if bytes <= available / 2 {
        return Ok(());
    }
    let text = format!(
        "it needs {bytes} bytes of memory, more than half of the {available} that are available"
    );
    Err(io::Error::new(io::ErrorKind::OutOfMemory, text))
}

/// An area of whole words, each of which has been written.
///
/// # Errors
/// There is not that much memory.
pub(super) fn words(bytes: u64, value: u64) -> io::Result<Vec<u64>> {
    let count = usize::try_from(bytes / 8).map_err(io::Error::other)?;
    let mut words = Vec::new();
    // Where memory is locked, a limit is an error here and would end the process later.
    words.try_reserve_exact(count).map_err(|_| {
        io::Error::new(io::ErrorKind::OutOfMemory, format!("no memory for {bytes} bytes"))
    })?;
    words.resize(count, value);
    Ok(words)
}

/// The folder that was asked for, or where scratch files go.
pub(super) fn folder(values: &Values) -> PathBuf {
    let given = values.is_known(DIR.name).then(|| PathBuf::from(values.text(DIR.name)));
    given.unwrap_or_else(default_scratch_parent)
}

/// A file is written by so many bytes, as LMbench's lmdd writes them. Where the page cache has large
/// folios, they are as large as what is written at a time, and so is what a page fault maps.
pub(super) const WRITTEN_BYTES: usize = 8 << 10;

/// A file without a name in this folder, for which there are `bytes` besides what is to stay free.
///
/// # Errors
/// Why it cannot be made, with the folder's name.
pub(super) fn file(folder: &Path, bytes: u64) -> io::Result<File> {
    claim_space(folder, bytes)?;
    storage::unnamed_file(folder).map_err(|error| in_folder(folder, &error))
}

/// Refuses to use more than what is free besides a reserve.
///
/// # Errors
/// What is needed, and what is free.
pub(super) fn claim_space(folder: &Path, bytes: u64) -> io::Result<Room> {
    let room = storage::room(folder).map_err(|error| in_folder(folder, &error))?;
    let reserve = default_reserve(room.total);
    if bytes <= room.free.saturating_sub(reserve) {
        return Ok(room);
    }
    let text = format!(
        "{}: it needs {bytes} bytes, and {} are free, {reserve} of which are kept free",
        folder.display(),
        room.free
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, text))
}

/// An error that says in which folder it was.
pub(super) fn in_folder(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error::kind(error), format!("{}: {}", folder.display(), error::text(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_memory_than_there_is_and_folders_that_are_not_there_are_told() {
        let said = claim_memory(1 << 50).unwrap_err().to_string();
        assert!(said.contains("1125899906842624 bytes of memory, more than half"), "{said}");
        claim_memory(1 << 20).unwrap();
        assert!(words(1 << 60, 0).unwrap_err().to_string().starts_with("no memory for"));
        assert_eq!(words(20, 7).unwrap(), [7, 7]);
        let absent = Path::new("/does/not/exist");
        let said = file(absent, 1).unwrap_err().to_string();
        assert_eq!(said, "/does/not/exist: No such file or directory");
        let temporary = std::env::temp_dir();
        let said = file(&temporary, u64::MAX / 2).unwrap_err();
        assert_eq!(said.kind(), io::ErrorKind::StorageFull);
        file(&temporary, 1).unwrap();
    }
}
