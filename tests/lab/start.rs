//! How soon a guest measures, and what it boots from.

use std::fs;
use std::time::{Duration, Instant};

use crate::boards::{aarch64, start, working, x86_64};
use punctual_harness::processes::{signal, wait_at_most};
use punctual_harness::{Place, need, until};

/// The machine is shared: what it can do is the best of so many tries.
const TRIES: usize = 5;

/// The largest program of a board that is allowed, and a megabyte.
const LARGEST_INITRAMFS: u64 = 5_000_000;

/// Time from the start of the command to the first cell, and the size of the initramfs.
fn first_cell(place: &Place, board: &str) -> (Duration, u64) {
    let began = Instant::now();
    let line = format!("lab run --board {board} --kernel debian:rt --out r wakeup -D 1h");
    let mut child = start(place, &line);
    let run = place.path.join("r/debian-rt-0");
    let mut initramfs = 0;
    let measures = until(Duration::from_secs(60), || {
        // It goes when the guest has taken it.
        let file = working(&place.path.join("r")).map(|at| at.join("debian-rt-0/initramfs"));
        let file = file.and_then(|file| fs::metadata(file).ok());
        initramfs = file.map_or(initramfs, |file| file.len());
        // It is sent when the first cell begins.
        run.join("run.json").exists()
    });
    let time = began.elapsed();
    signal(&child, "INT");
    let status = wait_at_most(&mut child, Duration::from_secs(5), "SIGINT");
    assert!(measures, "no cell has begun after {time:?}; it ended with {status}");
    fs::remove_dir_all(place.path.join("r")).unwrap();
    (time, initramfs)
}

#[track_caller]
fn starts_within(board: &str, limit: Duration) {
    let place = Place::of_build();
    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let (time, initramfs) = first_cell(&place, board);
        println!("{board}: measures after {:.1} s, {initramfs} bytes", time.as_secs_f64());
        assert!((1..=LARGEST_INITRAMFS).contains(&initramfs), "{initramfs} bytes");
        best = best.min(time);
        if best <= limit {
            return;
        }
    }
    panic!("{board}: measures after {best:?} at best, not within {limit:?}");
}

#[test]
fn a_guest_measures_soon() {
    need!(x86_64());
    starts_within("x86_64", Duration::from_secs(24));
    need!(aarch64());
    starts_within("aarch64", Duration::from_secs(12));
}
