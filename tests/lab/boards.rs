//! What the tests of the lab need and share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;

use punctual_harness::{Ended, Place, Undo, end_of, programs, release};

/// Whether x86_64 boards can boot Debian's kernels.
pub fn x86_64() -> Result<(), String> {
    static KERNELS: LazyLock<Ended> = LazyLock::new(|| fetch("x86_64", "debian:none debian:rt"));
    programs(&["qemu-system-x86_64"]).and_then(|()| binary("x86_64")).and_then(|()| here(&KERNELS))
}

/// The same for aarch64 boards.
pub fn aarch64() -> Result<(), String> {
    static KERNELS: LazyLock<Ended> =
        LazyLock::new(|| fetch("aarch64", "debian:voluntary debian:rt"));
    programs(&["qemu-system-aarch64"])
        .and_then(|()| binary("aarch64"))
        .and_then(|()| here(&KERNELS))
}

fn binary(arch: &str) -> Result<(), String> {
    let built = release()?;
    let of_board = format!("boards/punctual-board-{arch}");
    let found = built.ancestors().nth(3).is_some_and(|target| target.join(&of_board).is_file());
    if found { Ok(()) } else { Err(format!("there is no {of_board}; run make guests")) }
}

/// Into the user's cache, from which the tests boot.
fn fetch(board: &str, kernels: &str) -> Ended {
    Place::of_build().run(&format!("lab fetch --board {board} {kernels}"))
}

fn here(fetched: &Ended) -> Result<(), String> {
    match fetched.status {
        Some(0) => Ok(()),
        _ => Err(format!("no kernels: {}", fetched.stderr)),
    }
}

/// Runs the binary with the words of two lines at the same time.
pub fn side_by_side(place: &Place, lines: [&str; 2]) -> [Ended; 2] {
    let [one, other] = lines.map(|line| prepared(place, line));
    thread::scope(|scope| {
        let other = scope.spawn(|| end_of(other));
        [end_of(one), other.join().unwrap()]
    })
}

/// The binary with the words of a line, not started yet.
pub fn prepared(place: &Place, line: &str) -> Command {
    place.command(&line.split_whitespace().collect::<Vec<_>>())
}

/// Starts the binary with the words of a line, and does not wait for it.
pub fn start(place: &Place, line: &str) -> Child {
    let mut command = prepared(place, line);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// The emulators that a test has started and that live.
pub fn emulators(place: &Place) -> Vec<String> {
    place.living().into_iter().filter(|line| line.contains("qemu-system-")).collect()
}

/// What guests need only while they run, in the folder of an experiment.
pub fn working(out: &Path) -> Option<PathBuf> {
    let names = fs::read_dir(out).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_working = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("punctual-load-")
    };
    names.into_iter().find(is_working)
}

/// Keeps a CPU of this host busy until it is dropped.
pub fn hog() -> impl Drop {
    let mut hog = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    Undo(move || {
        let _ = hog.kill();
        let _ = hog.wait();
    })
}
