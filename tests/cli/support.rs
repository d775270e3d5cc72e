//! The binary of this build, in a folder of a test.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use punctual_harness::{Place, text, until};
use serde_json::Value;

pub use punctual_harness::processes::signal;

/// A user that is neither root nor known to the machine.
pub const STRANGER: &[&str] =
    &["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "--inh-caps=-all"];

/// A place for the binary of this build, by paths and outputs.
pub struct Scratch(Place);

impl Deref for Scratch {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Scratch {
    pub fn new(name: &str) -> Self {
        Self(Place::with(name, Path::new(env!("CARGO_BIN_EXE_punctual"))))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path.join(name)
    }

    /// Runs punctual in the folder.
    pub fn punctual(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    pub fn spawn(&self, line: &str) -> Child {
        self.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub fn command(&self, line: &str) -> Command {
        self.0.command(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Waits until a file of the run's only cell has `bytes`.
    pub fn wait_for_blocks(&self, run: &str, bytes: u64) {
        let cells = self.path(run).join("cells");
        let written = || {
            let cell = fs::read_dir(&cells).ok()?.next()?.ok()?.path();
            Some(fs::metadata(cell.join("blocks")).ok()?.len())
        };
        let there = until(Duration::from_secs(60), || written().unwrap_or(0) >= bytes);
        assert!(there, "no blocks in {}", cells.display());
    }
}

pub fn json(output: &Output) -> Value {
    let text = stdout(output);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

pub fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

pub fn stderr(output: &Output) -> String {
    text(&output.stderr)
}
