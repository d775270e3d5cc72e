//! What the tests of the lab need and share.

use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::thread;

use crate::support::{Ended, Place, Undo, end_of, has_program, released, skip};

/// Whether x86_64 boards can be had with Debian's kernels; where not, the test is skipped.
pub fn has_x86_64() -> bool {
    static KERNELS: LazyLock<Ended> = LazyLock::new(|| fetch("x86_64", "debian:none debian:rt"));
    has_program("qemu-system-x86_64") && has_binary("x86_64") && are_here(&KERNELS)
}

/// The same for aarch64 boards.
pub fn has_aarch64() -> bool {
    static KERNELS: LazyLock<Ended> = LazyLock::new(|| fetch("aarch64", "debian:rt"));
    has_program("qemu-system-aarch64") && has_binary("aarch64") && are_here(&KERNELS)
}

fn has_binary(arch: &str) -> bool {
    let built = released();
    let of_board = format!("{arch}-unknown-linux-musl/release/punctual");
    let found = built.ancestors().nth(3).is_some_and(|target| target.join(&of_board).is_file());
    if !found {
        skip(&format!("there is no {of_board}; run make guests"));
    }
    found
}

/// Into the user's cache, from which the tests boot.
fn fetch(board: &str, kernels: &str) -> Ended {
    Place::of_build().run(&format!("lab fetch --board {board} {kernels}"))
}

fn are_here(fetched: &Ended) -> bool {
    if fetched.status != Some(0) {
        skip(&format!("no kernels: {}", fetched.stderr));
    }
    fetched.status == Some(0)
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

/// Keeps a CPU of this host busy until it is dropped.
pub fn hog() -> impl Drop {
    let mut hog = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    Undo(move || {
        let _ = hog.kill();
        let _ = hog.wait();
    })
}
