//! make of a real tree, in a copy of it.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use punctual_sys::error;
use punctual_sys::storage;

use super::{BUILDS, UNITS};
use crate::harness::worker::{LoadError, Worker};
use crate::registry::room;

/// The copy, in the scratch folder.
const COPY: &str = "tree";
/// What make says of errors.
const ERRORS: &str = "errors";

/// The absolute path of the tree.
pub(super) fn check(tree: &str, scratch_parent: &Path) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("tree={tree}: {}", error::text(&error));
    let path = fs::canonicalize(tree).map_err(wrong)?;
    if !["GNUmakefile", "makefile", "Makefile"].iter().any(|name| path.join(name).is_file()) {
        return Err(format!("tree={tree}: there is no Makefile"));
    }
    // It would be copied into itself.
    if scratch_parent.starts_with(&path) {
        return Err(format!("tree={tree}: {} is in it; set dir", scratch_parent.display()));
    }
    path.to_str().map(str::to_owned).ok_or(format!("tree={tree}: not UTF-8"))
}

pub(super) fn run(worker: &Worker<'_>, tree: &str) -> Result<Infallible, LoadError> {
    // Before anything is copied, which counts as a start.
    let version = Command::new("make").arg("--version").stdout(Stdio::null()).status();
    version.map_err(|error| LoadError::CannotStart(format!("make: {}", error::text(&error))))?;
    // Left by a worker that was killed.
    if Path::new(COPY).exists() {
        fs::remove_dir_all(COPY).map_err(|error| LoadError::io(COPY, &error))?;
    }
    copy(worker, Path::new(tree), Path::new(COPY))?;
    let jobs = format!("-j{}", worker.values().number("jobs"));
    loop {
        make(worker, &[&jobs])?;
        worker.add(BUILDS, 1);
        make(worker, &["clean"])?;
    }
}

/// Copies a folder, with the times that make compares.
fn copy(worker: &Worker<'_>, from: &Path, to: &Path) -> Result<(), LoadError> {
    let failed = |error| LoadError::io(from.display(), &error);
    fs::create_dir(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            copy(worker, &source, &target)?;
        } else if kind.is_symlink() {
            let link = fs::read_link(&source).map_err(failed)?;
            std::os::unix::fs::symlink(link, target).map_err(failed)?;
        } else if kind.is_file() {
            let status = entry.metadata().map_err(failed)?;
            // Of each file: the copies before it have taken of what was free.
            let room = storage::room(Path::new(".")).map_err(failed)?;
            let reserve = room::default_reserve(room.total);
            room::check(room, reserve, status.len()).map_err(LoadError::CannotStart)?;
            fs::copy(&source, &target).map_err(failed)?;
            let times = fs::FileTimes::new().set_modified(status.modified().map_err(failed)?);
            // A copy that is read-only keeps the time of the copying: make may then do more.
            let _ = File::options().append(true).open(target).and_then(|f| f.set_times(times));
            worker.ready();
        }
    }
    Ok(())
}

/// Runs make in the copy. Each line that it prints of a build is a step of it.
fn make(worker: &Worker<'_>, args: &[&str]) -> Result<(), LoadError> {
    let failed = |error| LoadError::io("make", &error);
    let errors = File::create(ERRORS).map_err(failed)?;
    let mut command = Command::new("make");
    // Of a make that punctual was started from: it would have this one say where it is, and
    // share its jobs.
    ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"].iter().for_each(|name| {
        command.env_remove(name);
    });
    let mut child = command
        .args(args)
        .current_dir(COPY)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(failed)?;
    let lines = child.stdout.take().map(|out| BufReader::new(out).split(b'\n'));
    for line in lines.into_iter().flatten() {
        line.map_err(failed)?;
        worker.add(UNITS, u64::from(args != ["clean"]));
    }
    let status = child.wait().map_err(failed)?;
    if status.success() {
        return Ok(());
    }
    let said = fs::read(ERRORS).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().last().unwrap_or("it said nothing").to_owned();
    Err(LoadError::Failed(format!("make {}: {last}", args.join(" "))))
}
