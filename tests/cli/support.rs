//! What the tests have in common.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A folder of its own for each test, which goes with everything in it.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs punctual in the folder.
    pub fn punctual(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    pub fn spawn(&self, line: &str) -> Child {
        self.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_punctual"));
        command.args(line.split_whitespace()).current_dir(&self.0);
        command
    }

    /// Waits until a file of the run's only cell has `bytes`.
    pub fn wait_for_blocks(&self, run: &str, bytes: u64) {
        let limit = Instant::now() + Duration::from_secs(20);
        let cells = self.path(run).join("cells");
        let written = || {
            let cell = fs::read_dir(&cells).ok()?.next()?.ok()?.path();
            Some(fs::metadata(cell.join("blocks")).ok()?.len())
        };
        while written().unwrap_or(0) < bytes {
            assert!(Instant::now() < limit, "no blocks in {}", cells.display());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
}
