//! What the tests of trouble, of whole runs, of the report and of the lab share: the released
//! binary in a folder of its own, and everything that is put back at the end.
#![allow(dead_code, reason = "each of the test programs uses a part of it")]

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The variable that marks every process that a test starts, with its folder as value.
pub const MARK: &str = "PUNCTUAL_TEST_FOLDER";

/// The folder of the sources.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The binary that is tested.
pub fn released() -> PathBuf {
    let named = std::env::var_os("PUNCTUAL_RELEASE").map(PathBuf::from);
    named.unwrap_or_else(|| {
        let target = format!("target/{}-unknown-linux-musl", std::env::consts::ARCH);
        sources().join(target).join("release/punctual")
    })
}

/// Says why a test cannot be made here; under CI that is a failure.
pub fn skip(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "cannot be tested here: {reason}");
    println!("skipped: {reason}");
}

/// Whether this is root; where not, the test is skipped.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let root = status.lines().any(|line| line.starts_with("Uid:\t0\t0\t"));
    if !root {
        skip("needs root");
    }
    root
}

/// Whether a program is installed; where not, the test is skipped.
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    if !found {
        skip(&format!("{name} is not installed"));
    }
    found
}

/// How a program ended, and what it said.
#[derive(Debug)]
pub struct Ended {
    /// Exit status; none where a signal ended it.
    pub status: Option<i32>,
    pub stdout: String,
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

/// A folder with a copy of the binary, which any user may execute; all goes with it.
pub struct Place {
    pub path: PathBuf,
    binary: PathBuf,
    /// Process numbers of what was run: names of what they make hold them.
    started: RefCell<Vec<u32>>,
}

impl Place {
    pub fn new() -> Self {
        let mut place = Self::of_build();
        let (from, binary) = (place.binary.clone(), place.path.join("punctual"));
        fs::copy(&from, &binary).unwrap_or_else(|error| {
            panic!("{}: {error}; build it (make build) or set PUNCTUAL_RELEASE", from.display())
        });
        place.binary = binary;
        place
    }

    /// A folder without a copy: the binary where it was built, near those for other boards.
    pub fn of_build() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("punctual-test-{}-{number}", std::process::id());
        // Not below /tmp where that is in memory: loads take room on a disk.
        let path = Path::new("/var/tmp").join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self { path, binary: released(), started: RefCell::default() }
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

    /// The binary with these words behind it.
    pub fn command(&self, line: &[&str]) -> Command {
        self.prepared(Command::new(&self.binary), line)
    }

    /// The binary started by another program, as `setpriv …`.
    pub fn through(&self, program: &[&str], line: &[&str]) -> Command {
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).arg(&self.binary);
        self.prepared(command, line)
    }

    fn prepared(&self, mut command: Command, line: &[&str]) -> Command {
        command
            .args(line)
            .current_dir(&self.path)
            .env(MARK, &self.path)
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null());
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
        let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let path = entry.ok()?.path();
            path.file_name()?.to_str()?.parse::<u32>().ok()?;
            let environment = fs::read(path.join("environ")).ok()?;
            let marked = environment.split(|&byte| byte == 0).any(|pair| pair == mark.as_bytes());
            let command = fs::read(path.join("cmdline")).ok().filter(|_| marked)?;
            Some(format!("{} {}", path.display(), String::from_utf8_lossy(&command)))
        });
        processes.collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Runs a command to its end.
pub fn end_of(command: Command) -> Ended {
    waited(spawned(command))
}

fn spawned(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn waited(child: Child) -> Ended {
    let output = child.wait_with_output().unwrap();
    Ended {
        status: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: format!(
            "{}{}",
            String::from_utf8_lossy(&output.stderr),
            output.status.signal().map_or(String::new(), |signal| format!("[signal {signal}]"))
        ),
    }
}

/// `run.json` of a run directory.
pub fn run_json(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// The files of the only cell of a run.
pub fn cell_file(run: &Path, name: &str) -> PathBuf {
    let mut cells = fs::read_dir(run.join("cells")).unwrap();
    cells.next().unwrap().unwrap().path().join(name)
}

/// Ids of the conditions of a run or of a cell.
pub fn conditions(of: &Value) -> Vec<&str> {
    let list = of["conditions"].as_array().into_iter().flatten();
    list.filter_map(|condition| condition["id"].as_str()).collect()
}

/// Waits until something is so, at most `limit`.
pub fn until(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if so() {
            return true;
        }
        if start.elapsed() > limit {
            return false;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Undoes something when it is dropped, after a failed assertion too.
pub struct Undo<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for Undo<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
