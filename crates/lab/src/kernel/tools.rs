//! The commands of apt and dpkg.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::Result;

/// The commands of apt and dpkg.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// The folder that contains them; `None`: they are found in `PATH`. For tests.
    pub(super) folder: Option<PathBuf>,
}

impl Tools {
    /// One of the commands, without our input and with a fixed locale.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let path =
            self.folder.as_ref().map_or_else(|| program.into(), |folder| folder.join(program));
        let mut command = Command::new(path);
        // Their output is parsed, so it must not be translated.
        command.args(arguments).env("LC_ALL", "C").stdin(Stdio::null());
        command
    }

    /// Runs it and waits for its output.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn output(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        self.command(program, arguments).output().map_err(|error| not_run(program, error))
    }

    /// Its standard output, whether it fails or not: apt-cache and dpkg-query fail for a
    /// missing package, but still print the others.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn text(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let output = self.output(program, arguments)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Explains why a command could not be started.
pub(super) fn not_run(program: &str, error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return anyhow::anyhow!(
            "{program} is not installed: kernels called debian:... are Debian packages; give the \
             path of a kernel instead"
        );
    }
    anyhow::Error::new(error).context(format!("cannot run {program}"))
}
