//! Files that are replaced as a whole: readers find the old one or the new one, and an error
//! leaves the old one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use punctual_sys::folder::Folder;

/// Writes a file beside its place and renames it. What is no regular file (a pipe, a terminal,
/// a symbolic link) is written to as it is, and so is a file in a folder that is closed to this
/// user.
///
/// # Errors
/// The file system's; the old file is then unchanged if it is a regular one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let before = path.symlink_metadata().ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return fs::write(path, bytes);
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = Folder::open(parent.unwrap_or(Path::new(".")))?;
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let file = match folder.make_file_anew(&beside) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return fs::write(path, bytes);
        }
        made => made?,
    };
    let write = |mut file: File| {
        if let Some(before) = &before {
            file.set_permissions(before.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        folder.rename(&beside, name)
    };
    write(file).inspect_err(|_| drop(folder.remove_file(&beside)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use punctual_harness::Folder as Scratch;

    #[test]
    fn a_file_keeps_its_permissions_and_a_link_its_target() {
        let scratch = Scratch::new("replace");
        let (file, link) = (scratch.path("file"), scratch.path("link"));
        replace(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let open = File::open(&file).unwrap();
        replace(&file, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(io::read_to_string(open).unwrap(), "one", "who reads the old one goes on");
        symlink(&file, &link).unwrap();
        replace(&link, b"three").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"three");
        assert!(replace(Path::new("/"), b"").is_err());
        assert_eq!(scratch.entries().len(), 2, "{:?}", scratch.entries());
    }
}
