//! Helpers for the tests of several modules.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::emulator::Emulator;

/// A test's folder, removed on drop.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-lab-{}-{number}", std::process::id());
        let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// Writes a file and creates its parent folders.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An emulator of this version that is nowhere.
pub(crate) fn emulator(version: &str) -> Emulator {
    Emulator {
        program: "qemu".into(),
        version: version.to_owned(),
        cpu: "max".to_owned(),
        sha256: None,
        firmware_sha256: None,
    }
}
