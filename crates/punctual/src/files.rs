//! Files that are replaced as a whole: readers find the old one or the new one, and an error
//! leaves the old one.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use punctual_sys::folder::Folder;
use punctual_sys::process::effective_uid;
use punctual_sys::written::who_can_replace;

/// Writes a file beside its place and renames it. What is no regular file (a pipe, a terminal,
/// a symbolic link) is written to as it is, and so is a file in a folder that is closed to this
/// user. But a link that another user made or may have put there is itself replaced: where it leads
/// is that user's choice.
///
/// # Errors
/// The file system's; the old file is then unchanged if it is a regular one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let before = path.symlink_metadata().ok();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let is_anothers_link = before.as_ref().is_some_and(|before| {
        before.is_symlink() && (is_anothers(before) || who_can_replace(parent).is_some())
    });
    if !is_anothers_link && before.as_ref().is_some_and(|before| !before.is_file()) {
        return fs::write(path, bytes);
    }
    let folder = Folder::open(parent)?;
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let file = match folder.make_file_anew(&beside) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !is_anothers_link => {
            return fs::write(path, bytes);
        }
        made => made?,
    };
    let write = |mut file: File| {
        if let Some(before) = before.as_ref().filter(|before| before.is_file()) {
            file.set_permissions(before.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        folder.rename(&beside, name)
    };
    write(file).inspect_err(|_| drop(folder.remove_file(&beside)))
}

/// Whether another user made it; root, and below sudo(8) the user that it serves, are none.
fn is_anothers(link: &Metadata) -> bool {
    let (me, owner) = (effective_uid(), link.uid());
    let sudo = || std::env::var("SUDO_UID").ok()?.parse::<u32>().ok();
    ![0, me].contains(&owner) && (me != 0 || sudo() != Some(owner))
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
        // Whoever may write to the folder may have put the link there.
        let (open, victim) = (scratch.path("open"), scratch.path("file"));
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let planted = open.join("report.html");
        symlink(&victim, &planted).unwrap();
        replace(&planted, b"four").unwrap();
        assert!(!planted.is_symlink());
        assert_eq!(fs::read(&planted).unwrap(), b"four");
        assert_eq!(fs::read(&victim).unwrap(), b"three");
        fs::remove_dir_all(&open).unwrap();
        assert!(replace(Path::new("/"), b"").is_err());
        assert_eq!(scratch.entries().len(), 2, "{:?}", scratch.entries());
    }
}
