//! Files that readers find complete or not at all, even after a power cut.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file's content atomically: readers get the old content or the new. On disk when
/// this returns.
///
/// # Errors
/// The file system's error; the old file is then unchanged, and no temporary file is left.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let temporary = path.with_file_name(name);
    write(&temporary, content).and_then(|()| rename(&temporary, path)).inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// Writes a file that nobody reads yet. On disk when this returns, so a later rename can never
/// expose an empty file.
///
/// # Errors
/// The file system's error.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Renames a file or folder. On disk when this returns.
///
/// # Errors
/// The file system's error.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let folder = Folder::new();
        let path = folder.0.join("run.json");
        for content in [&b"one"[..], b"two, longer", b""] {
            replace(&path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
            assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        }
    }

    #[test]
    fn what_cannot_be_replaced_stays() {
        let folder = Folder::new();
        folder.write("taken/file", b"");
        assert!(replace(&folder.0.join("taken"), b"content").is_err());
        assert!(folder.0.join("taken/file").exists());
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
        assert!(replace(&folder.0.join("gone/run.json"), b"").is_err());
    }
}
