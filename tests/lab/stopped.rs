//! Emulators that are stopped for a while, with and without the lab: the guest takes no notice.

use std::process::Child;
use std::thread;
use std::time::Duration;

use crate::boards::{emulators, start, x86_64};
use punctual_harness::processes::{signal_to, wait_at_most};
use punctual_harness::{Place, need, until};

/// How long they are stopped, and how long they go on in between.
const STOPPED: Duration = Duration::from_millis(1_200);
const GOING: Duration = Duration::from_millis(1_000);

/// The process of the emulator with this in its command line.
fn emulator(place: &Place, part: &str) -> Option<u32> {
    let lines = emulators(place);
    let line = lines.into_iter().find(|line| line.contains(part))?;
    line.split(':').next()?.parse().ok()
}

/// Stops the emulator with this in its command line again and again until the lab has ended, and
/// returns how often.
fn stop_often(place: &Place, lab: &mut Child, part: &str) -> usize {
    let mut stops = 0;
    while lab.try_wait().unwrap().is_none() {
        thread::sleep(GOING);
        if let Some(pid) = emulator(place, part) {
            signal_to(pid, "STOP");
            thread::sleep(STOPPED);
            signal_to(pid, "CONT");
            stops += 1;
        }
    }
    stops
}

#[test]
fn a_stopped_emulator_changes_nothing() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --no-report --kernel debian:none wakeup --load hackbench \
                -D 300ms --out";
    place.run(&format!("{line} plain")).with(0);
    let mut lab = start(&place, &format!("{line} stopped"));
    let stops = stop_often(&place, &mut lab, "/stopped/");
    println!("{stops} stops");
    assert!(stops >= 3 && lab.wait().unwrap().success(), "{stops}");
    place.run("compare --exact plain stopped").with(0).says(&["1 of 1 runs identical"]);

    // What is explained is what was recorded, or nothing.
    let explain = "lab explain --offline -q --worst 1 -o why.html stopped/debian-none-0";
    let mut lab = start(&place, explain);
    let stops = stop_often(&place, &mut lab, "-plugin");
    println!("{stops} stops of the watched repeat");
    assert!(stops >= 3 && lab.wait().unwrap().success(), "{stops}");
    assert!(place.path.join("why.html").exists());
}

#[test]
fn an_emulator_that_stays_stopped_is_told_of() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --no-report --patience 4 --kernel debian:rt wakeup --out r";
    let mut lab = start(&place, line);
    assert!(until(Duration::from_secs(30), || emulator(&place, "/r/").is_some()));
    // It has been at work for a while.
    thread::sleep(Duration::from_secs(1));
    signal_to(emulator(&place, "/r/").unwrap(), "STOP");
    let ended = wait_at_most(&mut lab, Duration::from_secs(20), "a stopped guest");
    assert_eq!(ended.code(), Some(69));
    assert_eq!(place.living(), [""; 0]);
}
