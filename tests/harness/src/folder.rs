//! A folder of a test.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::ended::text;

/// The variable that marks every process that a test starts, with its folder as value.
pub const MARK: &str = "PUNCTUAL_TEST_FOLDER";

/// A folder of a test with everything in it, removed at its end.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder, which any user may enter.
    pub fn new(name: &str) -> Self {
        // Tests send signals, and may run in the background of a script.
        punctual_sys::signal::heed_all();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Not below /tmp, which may be in memory: loads take room on a disk.
        let path = Path::new("/var/tmp")
            .join(format!("punctual-test-{name}-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// A path below the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of what is in it.
    pub fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// A program that starts in the folder and bears its mark.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.0).env(MARK, &self.0).env_remove("RUST_BACKTRACE");
        command
    }

    /// Runs a program in the folder and returns what it said. It must end with 0.
    #[track_caller]
    pub fn run(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Output {
        let output = self.try_run(program, args);
        assert!(output.status.success(), "{args:?}: {}: {}", output.status, text(&output.stderr));
        output
    }

    /// Runs a program in the folder and returns how it ended.
    #[track_caller]
    pub fn try_run(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Output {
        let program = program.as_ref();
        let output = self.command(program).args(args).output();
        output.unwrap_or_else(|error| panic!("{}: {error}", program.display()))
    }

    /// A file of JSON in the folder.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).unwrap()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
