//! Files of the user's that a guest finds in its root: programs and libraries to load it with.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Files and their bytes: more would not fit into a board.
const MOST_BYTES: u64 = 2 << 30;

/// One file of the guest's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraFile {
    /// Where it lies, relative to the root.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// Its content.
    pub content: Vec<u8>,
}

/// Reads a folder that becomes the root of guests, in the order of the paths. Links are followed:
/// a guest has a file for each.
///
/// # Errors
/// Something cannot be read, is no file, folder or link to one, has no name in UTF-8, or it is too
/// much.
pub fn read(folder: &Path) -> Result<Vec<ExtraFile>> {
    let mut files = Vec::new();
    let mut bytes = 0;
    below(folder, "", &mut bytes, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn below(folder: &Path, path: &str, bytes: &mut u64, files: &mut Vec<ExtraFile>) -> Result<()> {
    let said = || folder.display().to_string();
    for entry in fs::read_dir(folder).with_context(said)? {
        let place = entry.with_context(said)?.path();
        let said = || place.display().to_string();
        let name = place.file_name().and_then(|name| name.to_str());
        let name = name.with_context(|| format!("{}: its name is not UTF-8", said()))?;
        let path = format!("{path}{name}");
        // Of what a link leads to.
        let facts = fs::metadata(&place).with_context(said)?;
        if facts.is_dir() {
            ensure!(path.matches('/').count() < 32, "{}: too deep", said());
            below(&place, &format!("{path}/"), bytes, files)?;
            continue;
        }
        ensure!(facts.is_file(), "{}: neither a file nor a folder", said());
        *bytes += facts.len();
        ensure!(*bytes <= MOST_BYTES, "{}: with it these are more than 2 GiB", said());
        let content = fs::read(&place).with_context(said)?;
        files.push(ExtraFile { path, mode: facts.permissions().mode() & 0o777, content });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_folder_is_read_in_the_order_of_its_paths_and_links_are_followed() {
        let folder = Folder::new();
        folder.write("usr/bin/tool", b"#!");
        folder.write("a", b"x");
        let tool = folder.0.join("usr/bin/tool");
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("tool", folder.0.join("usr/bin/link")).unwrap();
        let found = read(&folder.0).unwrap();
        let paths: Vec<_> = found.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a", "usr/bin/link", "usr/bin/tool"]);
        assert_eq!([found[1].mode, found[2].mode], [0o755; 2]);
        assert_eq!((&found[0].content[..], &found[1].content[..]), (&b"x"[..], &b"#!"[..]));
    }

    #[test]
    fn what_cannot_be_a_file_of_a_guest_is_named() {
        let folder = Folder::new();
        let said = || format!("{:#}", read(&folder.0).unwrap_err());
        symlink("nowhere", folder.0.join("dangling")).unwrap();
        assert!(said().contains("dangling"), "{}", said());
        fs::remove_file(folder.0.join("dangling")).unwrap();
        // A link into itself.
        symlink(".", folder.0.join("loop")).unwrap();
        assert!(said().contains("too deep") || said().contains("levels"), "{}", said());
        assert!(read(&folder.0.join("none")).is_err());
    }
}
