//! Journals of what is to be undone: their lines are read, and nothing is undone.

use std::cell::OnceCell;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use punctual_suite::knobs::restore_in;

/// A folder in memory, gone with the process.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = PathBuf::from(format!("/dev/shm/punctual-journals-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

thread_local!(static FOLDER: OnceCell<Folder> = const { OnceCell::new() });

pub fn target(bytes: &[u8]) {
    FOLDER.with(|folder| {
        let folder = &folder.get_or_init(Folder::new).0;
        // Process 4194304 and those above cannot exist.
        let file = folder.join("4194305-1.journal");
        fs::write(&file, bytes).unwrap();
        let report = restore_in(folder, true).unwrap();
        assert!(file.exists(), "a dry run undoes nothing: {report:?}");
    });
}
