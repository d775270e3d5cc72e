//! A process that was stopped is no late kernel: what was late by that is left out if somebody saw it,
//! and only then. What comes while a thread that spins leaves its margin is in none of its samples: it
//! is said.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use punctual_harness::processes::{signal, wait_at_most, wait_for_probe};
use punctual_harness::{Place, count, items, need, programs, root, run_json, skipped, until};
use serde_json::Value;

/// How often a run is stopped, and for how long, ms.
const STOPS: u64 = 3;
const STOP_MS: u64 = 200;

/// The cell of a run that was stopped.
fn stopped(place: &Place, probe: &str) -> Value {
    let out = probe.split(':').next().unwrap_or_default();
    let line = ["run", probe, "-D", "3s", "--no-warmup", "--no-report", "-q", "--out", out];
    let mut child = place.command(&line).spawn().unwrap();
    wait_for_probe(&mut child, Duration::from_millis(300));
    for _ in 0..STOPS {
        signal(&child, "STOP");
        sleep(Duration::from_millis(STOP_MS));
        signal(&child, "CONT");
        sleep(Duration::from_millis(300));
    }
    let ended = wait_at_most(&mut child, Duration::from_secs(60), probe);
    assert_eq!(ended.code(), Some(0), "{probe}");
    run_json(&place.path.join(out))["cells"][0].clone()
}

fn total(cell: &Value, name: &str) -> u64 {
    let counter = items(&cell["counters"]).iter().find(|one| one["name"] == name);
    count(counter.unwrap_or_else(|| panic!("{name}: {cell:#}")), "total")
}

#[test]
fn a_stop_in_a_margin_is_said() {
    need!(root());
    need!(programs(&["kill"]));
    let place = Place::new();
    for probe in [
        "noise:trace=off,threads=1,margin=90%",
        "cpumap:threads=1,margin=90%",
        "clock:threads=1,margin=90%",
        "burst:threads=1,margin=90%",
    ] {
        let cell = stopped(&place, probe);
        // Nine of ten stops begin in a margin; of three none does once in a thousand runs.
        let least_us = (STOP_MS - 20) * 1_000;
        assert!(total(&cell, "overslept") >= least_us, "{probe}: {cell:#}");
        assert!(total(&cell, "unspun") > 0, "{probe}: {cell:#}");
        let note = items(&cell["conditions"]).iter().find(|one| one["id"] == "margin-overslept");
        let text = note.map(|note| note["text"].to_string());
        let text = text.unwrap_or_else(|| panic!("{probe}: {cell:#}"));
        assert!(text.contains("thread 0: its margin was overslept"), "{text}");
    }
}

#[test]
fn all_packets_that_were_due_in_a_stop_are_counted() {
    need!(root());
    need!(programs(&["kill"]));
    let place = Place::new();
    let cell = stopped(&place, "burst:threads=1,rate=100000,queue=128");
    // In a margin none are due; what is longer than it was to be is said.
    let due = STOPS * (STOP_MS - 20) * 100 - STOPS * 128;
    let overslept = total(&cell, "overslept") / 10;
    let (dropped, packets) = (total(&cell, "dropped"), total(&cell, "packets"));
    assert!(dropped + overslept >= due, "{dropped} and {overslept} of {due}: {cell:#}");
    assert!(dropped < packets, "{cell:#}");
}

/// Starts a run of 6 s that is late from 500 ms on, and waits until it measures.
fn started(place: &Place, more: &[&str]) -> Child {
    let mut line = vec!["run", "wakeup", "-D", "6s", "--deadline", "500ms", "--load", "none"];
    line.extend(["--no-warmup", "--no-report", "-q", "--out", "out"]);
    line.extend(more);
    let mut child = place.command(&line).spawn().unwrap();
    wait_for_probe(&mut child, Duration::from_millis(1_200));
    child
}

/// The exit status of a run and its only cell.
fn ended(place: &Place, mut child: Child) -> (Option<i32>, Value) {
    let status = wait_at_most(&mut child, Duration::from_secs(90), "run").code();
    (status, run_json(&place.path.join("out"))["cells"][0].clone())
}

/// The texts of a cell's conditions of this kind.
fn said(cell: &Value, id: &str) -> Vec<String> {
    let of_kind = items(&cell["conditions"]).iter().filter(|one| one["id"] == id);
    of_kind.map(|one| one["text"].as_str().unwrap().to_owned()).collect()
}

/// Checks that a cell was stopped so often, each time for 1.5 to 3 s, and judged by its other samples.
#[track_caller]
fn is_left_out((status, cell): &(Option<i32>, Value), stops: usize, by: &str) {
    assert_ne!(*status, Some(1), "{cell:#}");
    assert_ne!(cell["verdict"]["outcome"], "FAIL", "{cell:#}");
    let found = items(&cell["stops"]);
    assert_eq!(found.len(), stops, "{cell:#}");
    let interval_ns = count(cell, "interval_ns");
    for stop in found {
        let length_ns = count(stop, "length_ns");
        assert!((1_500_000_000..3_000_000_000).contains(&length_ns), "{stop:#}");
        assert_eq!(stop["by"], by, "{stop:#}");
        let threads = items(&cell["threads"]).len() as u64;
        assert!(count(stop, "samples") >= threads, "{stop:#}");
        assert!(count(stop, "missed") > 1_400_000_000 / interval_ns * threads, "{stop:#}");
        assert!(count(stop, "max_ns") >= 1_500_000_000, "{stop:#}");
    }
    assert_eq!(said(cell, "stopped").len(), stops, "{cell:#}");
    assert!(cell["max_ns"].as_i64().unwrap() < 500_000_000, "{cell:#}");
    // Only the other time was observed.
    let observed_ns = count(&cell["episodes"], "observed_ns");
    let most_ns = 6_100_000_000 - stops as u64 * 1_500_000_000;
    assert!(observed_ns < most_ns, "{observed_ns} {cell:#}");
}

#[test]
fn a_run_that_was_stopped_and_continued_leaves_that_out() {
    need!(programs(&["kill"]));
    for more in [&[][..], &["-t", "2"]] {
        let place = Place::new();
        let child = started(&place, more);
        signal(&child, "STOP");
        sleep(Duration::from_secs(2));
        signal(&child, "CONT");
        is_left_out(&ended(&place, child), 1, "signal");
    }
}

#[test]
fn two_stops_of_one_run_are_two() {
    need!(programs(&["kill"]));
    let place = Place::new();
    let child = started(&place, &[]);
    for _ in 0..2 {
        signal(&child, "STOP");
        sleep(Duration::from_millis(1_700));
        signal(&child, "CONT");
        sleep(Duration::from_millis(500));
    }
    is_left_out(&ended(&place, child), 2, "signal");
}

#[test]
fn a_stop_is_no_break() {
    need!(programs(&["kill"]));
    let place = Place::new();
    let child = started(&place, &["--break", "500ms"]);
    signal(&child, "STOP");
    sleep(Duration::from_millis(1_700));
    signal(&child, "CONT");
    let (status, cell) = ended(&place, child);
    assert_eq!(status, Some(3), "{cell:#}");
    assert_eq!(cell["verdict"]["outcome"], "INCONCLUSIVE", "{cell:#}");
    let said = items(&cell["verdict"]["because"]).iter().filter_map(Value::as_str);
    let mut said = said.filter(|one| one.starts_with("ended by a sample above the break value"));
    assert!(said.next().is_some(), "{cell:#}");
}

#[test]
fn a_cost_tells_of_a_stop() {
    need!(programs(&["kill"]));
    let place = Place::new();
    let line = ["run", "lat.pipe", "--load", "none", "--no-report", "-q", "--out", "out"];
    let child = place.command(&line).spawn().unwrap();
    assert!(until(Duration::from_secs(60), || is_timed(child.id())), "no thread times it");
    signal(&child, "STOP");
    sleep(Duration::from_millis(500));
    signal(&child, "CONT");
    let (status, cell) = ended(&place, child);
    assert_eq!(status, Some(0), "{cell:#}");
    let told = said(&cell, "stopped");
    assert!(told[0].contains("a repetition of then has the time of the stop in it"), "{cell:#}");
}

/// Whether a thread of this process times a cost.
fn is_timed(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut names = tasks.map(|task| fs::read_to_string(task.path().join("comm")));
    names.any(|name| name.is_ok_and(|name| name.trim() == "cost"))
}

/// A control group of version 2 that goes with the test; none if there is no such version.
struct Group(PathBuf);

impl Group {
    fn make() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?;
        let name = format!("punctual-stops-{}", std::process::id());
        let group = Self(Path::new(mount.split(' ').nth(1)?).join(name));
        fs::create_dir(&group.0).ok()?;
        group.0.join("cgroup.freeze").exists().then_some(group)
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.0.join(file), text).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.freeze"), "0");
        until(Duration::from_secs(20), || fs::remove_dir(&self.0).is_ok());
    }
}

#[test]
fn a_run_whose_control_group_was_frozen_leaves_that_out() {
    need!(root());
    let Some(group) = Group::make() else {
        return skipped("no control group of version 2 can be made and frozen");
    };
    let place = Place::new();
    // It is in the group before it looks where it is.
    let join = format!("echo $$ > {}; exec \"$@\"", group.0.join("cgroup.procs").display());
    let line = ["run", "wakeup", "-D", "6s", "--deadline", "500ms", "--load", "none"];
    let mut line = line.to_vec();
    line.extend(["--no-warmup", "--no-report", "-q", "--out", "out"]);
    let mut child = place.through(&["sh", "-c", &join, "sh"], &line).spawn().unwrap();
    wait_for_probe(&mut child, Duration::from_millis(1_200));
    group.write("cgroup.freeze", "1");
    sleep(Duration::from_secs(2));
    group.write("cgroup.freeze", "0");
    let found = ended(&place, child);
    is_left_out(&found, 1, "freezer");
    let name = group.0.display().to_string();
    assert!(said(&found.1, "stopped")[0].contains(&name), "{:#}", found.1);
}

#[test]
fn a_run_that_a_debugger_stopped_leaves_that_out() {
    need!(root());
    need!(programs(&["gdb"]));
    let place = Place::new();
    let child = started(&place, &[]);
    let process = child.id().to_string();
    let mut gdb = Command::new("gdb");
    // Without symbols it attaches at once, and it stays until the run has ended.
    gdb.args(["-n", "-batch", "-iex", "set auto-solib-add off", "-p", &process]);
    gdb.args([
        "-ex",
        "shell sleep 1.7",
        "-ex",
        "handle all nostop noprint pass",
        "-ex",
        "continue",
    ]);
    gdb.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut gdb = gdb.spawn().unwrap();
    let found = ended(&place, child);
    gdb.wait().unwrap();
    let (status, cell) = &found;
    assert_ne!(*status, Some(1), "{cell:#}");
    let text = said(cell, "stopped").concat();
    assert!(text.contains(&format!("process {}, gdb", gdb.id())), "{cell:#}");
    assert!(cell["max_ns"].as_i64().unwrap() < 500_000_000, "{cell:#}");
}

/// What nobody stopped is late, as it was before.
#[test]
fn a_cpu_that_another_thread_took_for_as_long_fails() {
    need!(root());
    need!(programs(&["chrt", "taskset", "timeout", "kill"]));
    let place = Place::new();
    let line = ["run", "wakeup", "-a", "0", "-p", "80", "-D", "5s", "--deadline", "100ms"];
    let mut line = line.to_vec();
    line.extend(["--load", "none", "--no-warmup", "--no-report", "-q", "--out", "out"]);
    let mut child = place.command(&line).spawn().unwrap();
    wait_for_probe(&mut child, Duration::from_millis(1_200));
    let mut hog = Command::new("timeout");
    hog.args(["2", "taskset", "-c", "0", "chrt", "-f", "99", "sh", "-c", "while :; do :; done"]);
    let mut hog = hog.spawn().unwrap();
    // A SIGCONT that continues nothing is no witness.
    sleep(Duration::from_millis(1_000));
    signal(&child, "CONT");
    hog.wait().unwrap();
    let (status, cell) = ended(&place, child);
    assert_eq!((status, &cell["verdict"]["outcome"]), (Some(1), &Value::from("FAIL")), "{cell:#}");
    assert!(said(&cell, "stopped").is_empty() && cell["stops"].is_null(), "{cell:#}");
}

#[test]
fn a_run_that_is_killed_after_it_was_stopped_tells_of_that() {
    need!(programs(&["kill"]));
    let place = Place::new();
    let mut child = started(&place, &[]);
    signal(&child, "STOP");
    sleep(Duration::from_millis(1_700));
    signal(&child, "CONT");
    // It is on disk with the second after it.
    sleep(Duration::from_millis(2_400));
    child.kill().unwrap();
    child.wait().unwrap();
    let ended = place.words(&["show", "out"]).says(&["stopped for 1.", "a SIGCONT came after it"]);
    assert_ne!(ended.status, Some(1), "{ended:#?}");
    assert!(!ended.stdout.contains("FAIL"), "{ended:#?}");
}
