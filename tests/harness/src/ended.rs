//! How a program ended, and what it said.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// How a program ended, and what it said.
#[derive(Debug)]
pub struct Ended {
    /// Exit status; none if a signal ended it.
    pub status: Option<i32>,
    /// What it said.
    pub stdout: String,
    /// What it said of errors and progress, and the signal that ended it.
    pub stderr: String,
}

impl Ended {
    /// Checks the exit status, and that nothing panicked.
    #[track_caller]
    pub fn with(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        self
    }

    /// Checks what stands in stdout or stderr, however the lines are wrapped.
    #[track_caller]
    pub fn says(self, parts: &[&str]) -> Self {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = format!("{} {}", words(&self.stdout), words(&self.stderr));
        for part in parts {
            assert!(all.contains(part), "\"{part}\" is missing in {self:#?}");
        }
        self
    }

    /// What is on stdout as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// Output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command to its end.
pub fn end_of(command: Command) -> Ended {
    waited(spawned(command))
}

pub(crate) fn spawned(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Waits for the end of a program whose output is piped.
pub fn waited(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    let signal = output.status.signal();
    let signal = signal.map_or(String::new(), |signal| format!("[signal {signal}]"));
    Ended {
        status: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr) + &signal,
    }
}
