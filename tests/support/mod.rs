//! What the tests of the release binary have in common.
#![allow(dead_code, reason = "each of the tests uses its part")]

pub mod cyclictest;
pub mod histogram;
pub mod processes;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Ends a test where something that it needs is absent: under `CI` as a failure,
/// else with the reason.
macro_rules! need {
    ($needed:expr) => {
        match $needed {
            Ok(value) => value,
            Err(reason) => return $crate::support::skipped(&reason),
        }
    };
}
pub(crate) use need;

/// Prints why a test was skipped.
pub fn skipped(reason: &str) {
    assert!(std::env::var_os("CI").is_none(), "cannot be tested here: {reason}");
    println!("skipped: {reason}");
}

/// The release binary: `PUNCTUAL_RELEASE`, else where `make build` puts it.
pub fn release() -> Result<PathBuf, String> {
    let named = std::env::var_os("PUNCTUAL_RELEASE").map(PathBuf::from);
    let path = named.unwrap_or_else(|| {
        let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        root.join("target").join(target).join("release/punctual")
    });
    path.canonicalize().map_err(|error| format!("{}: {error}; run make build", path.display()))
}

/// Whether all these programs are installed.
pub fn programs(names: &[&str]) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let absent = |name: &&&str| {
        !Path::new(name).is_file()
            && !std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    match names.iter().find(absent) {
        Some(name) => Err(format!("{name} is not installed; run make deps")),
        None => Ok(()),
    }
}

/// Whether this is root.
pub fn root() -> Result<(), String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let root = status.lines().any(|line| line.starts_with("Uid:\t0\t0\t"));
    if root { Ok(()) } else { Err("run as root: real-time priorities are compared".to_owned()) }
}

/// A folder of a test with everything in it, removed at its end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let own = format!("{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs a program in the folder and returns what it said. It must end with 0.
    pub fn run(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Output {
        let output = self.try_run(program, args);
        assert!(output.status.success(), "{args:?}: {}: {}", output.status, text(&output.stderr));
        output
    }

    /// Runs a program in the folder and returns how it ended.
    pub fn try_run(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Output {
        let program = program.as_ref();
        let output = Command::new(program).args(args).current_dir(&self.0).output();
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

/// Output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A count of a result; fails where it is absent.
pub fn count(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// What a process used.
pub struct Usage {
    /// User and system CPU time, s, with a resolution of 10 ms.
    pub cpu: f64,
    /// Time from start to end, s.
    pub wall: f64,
    /// Peak resident size, bytes.
    pub peak: u64,
}

const TIME: &str = "/usr/bin/time";

/// What [`usage`] needs.
pub fn has_time() -> Result<(), String> {
    programs(&[TIME])
}

/// Runs a program in the folder to its successful end and returns what it used.
pub fn usage(folder: &Folder, program: &Path, args: &[&str]) -> Usage {
    let file = folder.path("usage");
    let front = ["-f", "%U %S %e %M", "-o", file.to_str().unwrap(), program.to_str().unwrap()];
    folder.run(TIME, &[&front, args].concat());
    let line = fs::read_to_string(&file).unwrap();
    let fields: Vec<f64> = line.split_whitespace().map(|field| field.parse().unwrap()).collect();
    let [user, system, wall, _] = fields[..] else { panic!("{TIME} said {line}") };
    let kib: u64 = line.split_whitespace().last().unwrap().parse().unwrap();
    Usage { cpu: user + system, wall, peak: kib * 1024 }
}

/// Bytes as MB.
pub fn megabytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes).unwrap()) / 1e6
}
