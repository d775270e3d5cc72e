//! What a test may need of the machine.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io, thread};

use crate::sources;

/// Prints why a test is skipped.
pub fn skipped(reason: &str) {
    let ci = env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "cannot be tested here: {reason}");
    refused(reason);
}

/// Prints why a test is skipped that no preparation could make possible here: the machine
/// refuses what it needs. No failure under `CI`.
pub fn refused(reason: &str) {
    let thread = thread::current();
    // Written past the capture of the test's output: a skip is never silent.
    let _ = writeln!(io::stderr(), "skipped: {}: {reason}", thread.name().unwrap_or("a test"));
}

/// Whether this user can make a user namespace with a PID namespace in it.
pub fn user_namespaces() -> Result<(), String> {
    let words = ["--user", "--pid", "--fork", "true"];
    let made = Command::new("unshare").args(words).output();
    let made = made.map_err(|error| format!("unshare: {error}; run make deps"))?;
    let said = String::from_utf8_lossy(&made.stderr);
    let reason = format!(
        "this machine refuses user namespaces (user.max_user_namespaces, \
         kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns): {}",
        said.trim()
    );
    if made.status.success() { Ok(()) } else { Err(reason) }
}

/// The release binary: `PUNCTUAL_RELEASE`, else where `make build` puts it.
pub fn release() -> Result<PathBuf, String> {
    let named = env::var_os("PUNCTUAL_RELEASE").map(PathBuf::from);
    let path = named.unwrap_or_else(|| {
        let target = format!("target/{}-unknown-linux-musl", env::consts::ARCH);
        sources().join(target).join("release/punctual")
    });
    path.canonicalize().map_err(|error| format!("{}: {error}; run make build", path.display()))
}

/// The program for boards of this architecture, where `make boards` puts it.
pub fn board() -> Result<PathBuf, String> {
    let path =
        sources().join("target/boards").join(format!("punctual-board-{}", env::consts::ARCH));
    path.canonicalize().map_err(|error| format!("{}: {error}; run make boards", path.display()))
}

/// Whether all these programs are installed.
pub fn programs(names: &[&str]) -> Result<(), String> {
    let path = env::var_os("PATH").unwrap_or_default();
    let absent = |name: &&&str| {
        !Path::new(name).is_file()
            && !env::split_paths(&path).any(|folder| folder.join(name).is_file())
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
    if root { Ok(()) } else { Err("needs root".to_owned()) }
}
