//! punctual in a folder of a test.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::ended::{Ended, spawned, waited};
use crate::folder::{Folder, MARK};
use crate::mounts::Namespace;
use crate::needs::release;
use crate::processes::{command_line, marked};

/// A folder and the punctual that is tested in it; all goes with it.
pub struct Place {
    folder: Folder,
    /// The folder.
    pub path: PathBuf,
    binary: PathBuf,
    /// What it runs in, if not in the test's own mount namespace.
    namespace: Option<Namespace>,
    /// Process numbers of what was run: names of what they make hold them.
    started: RefCell<Vec<u32>>,
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// A copy of the release binary, which any user may execute.
    pub fn new() -> Self {
        let mut place = Self::of_build();
        let binary = place.path.join("punctual");
        fs::copy(&place.binary, &binary)
            .unwrap_or_else(|error| panic!("{}: {error}", binary.display()));
        place.binary = binary;
        place
    }

    /// The release binary where it was built, near those for other boards.
    pub fn of_build() -> Self {
        let binary = release().unwrap_or_else(|reason| panic!("{reason}, or set PUNCTUAL_RELEASE"));
        Self::with("run", &binary)
    }

    /// Another binary.
    pub fn with(name: &str, binary: &Path) -> Self {
        let folder = Folder::new(name);
        let path = folder.root().to_owned();
        let binary = binary.to_owned();
        Self { folder, path, binary, namespace: None, started: RefCell::default() }
    }

    /// A copy of the release binary that runs in a mount namespace of its own, if this is
    /// root: no neighbour's mounts are seen in it, and any that stays is a leftover.
    pub fn apart() -> Self {
        let mut place = Self::new();
        place.namespace = crate::needs::root().is_ok().then(Namespace::new);
        place
    }

    /// What is mounted where punctual runs, one line for each mount.
    pub fn mounts(&self) -> Vec<String> {
        match &self.namespace {
            Some(namespace) => namespace.mounts(),
            // A user mounts nothing; a neighbour's mounts are none of the test's.
            None => Vec::new(),
        }
    }

    /// The namespace that punctual runs in, if not in the test's own.
    pub fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    /// The folder, for programs other than punctual.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The binary that is tested.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// A path below the folder, as text.
    pub fn at(&self, name: &str) -> String {
        self.path.join(name).to_str().unwrap().to_owned()
    }

    /// A folder in which anyone may write.
    pub fn open_folder(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        path
    }

    /// The binary with these words after it.
    pub fn command(&self, line: &[&str]) -> Command {
        self.through(&[], line)
    }

    /// The binary started by another program, such as `setpriv …`.
    pub fn through(&self, program: &[&str], line: &[&str]) -> Command {
        let mut command = match &self.namespace {
            Some(namespace) => {
                let mut enter = namespace.enter(&self.path);
                enter.args(program).arg(&self.binary).env(MARK, &self.path);
                enter.env_remove("RUST_BACKTRACE").current_dir(&self.path);
                enter
            }
            None => match program {
                [] => self.folder.command(&self.binary),
                [first, rest @ ..] => {
                    let mut command = self.folder.command(first);
                    command.args(rest).arg(&self.binary);
                    command
                }
            },
        };
        // Texts are as on a usual terminal, whatever that of the tests is.
        command.env_remove("COLUMNS").env("LC_ALL", "C.UTF-8");
        command.args(line).stdin(Stdio::null());
        command
    }

    /// Runs the binary with the words of a line.
    pub fn run(&self, line: &str) -> Ended {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.words(&words)
    }

    /// Runs the binary with these words.
    pub fn words(&self, words: &[&str]) -> Ended {
        let child = spawned(self.command(words));
        self.started.borrow_mut().push(child.id());
        waited(child)
    }

    /// The number of the process that was run last.
    pub fn last_started(&self) -> u32 {
        *self.started.borrow().last().unwrap()
    }

    /// Whether a name holds the number of a process that was run here.
    pub fn has_made(&self, name: &str) -> bool {
        let mut numbers = name.split(|c: char| !c.is_ascii_digit()).flat_map(str::parse::<u32>);
        numbers.any(|number| self.started.borrow().contains(&number))
    }

    /// The processes that this test has started and that live.
    pub fn living(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.path.display());
        let pids = marked(|pair| pair == mark.as_bytes());
        pids.into_iter().filter_map(command_line).collect()
    }
}
