//! The commands of apt and dpkg.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::Result;

/// The commands of apt and dpkg.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// The folder that they are in; none: as `PATH` has them. For tests.
    pub(super) folder: Option<PathBuf>,
}

impl Tools {
    /// One of them, with what it reads and says kept apart from ours.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let path =
            self.folder.as_ref().map_or_else(|| program.into(), |folder| folder.join(program));
        let mut command = Command::new(path);
        // What they print is read, in the language of its authors.
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    /// What it does, waited for.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn output(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        self.command(program, arguments).output().map_err(|error| not_run(program, error))
    }

    /// What it prints, whether it fails or not: a package that is not there is a
    /// failure of apt-cache and dpkg-query, and what is there they print.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn text(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = self.output(program, arguments)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The error of a command that could not be started.
pub(super) fn not_run(program: &str, error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return anyhow::anyhow!(
            "{program} is not installed: kernels called debian:... are Debian packages; give the \
             path of a kernel instead"
        );
    }
    anyhow::Error::new(error).context(format!("cannot run {program}"))
}

/// The last line of an output of apt or dpkg that says what went wrong.
pub(super) fn last_error(stderr: &str) -> String {
    let is_error = |line: &&str| line.starts_with("E:") || line.contains("error:");
    let last = stderr.lines().rfind(is_error).or_else(|| stderr.lines().next_back());
    last.unwrap_or("no error message").trim_start_matches("E:").trim().to_owned()
}
