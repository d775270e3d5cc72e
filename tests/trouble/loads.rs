//! Loads that cannot start, and loads that die: the measurement goes on and says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use punctual_harness::processes::{load_processes, parent_of, wait_for_probe};
use punctual_harness::{Ended, Place, Tmpfs, end_of, need, programs, root, waited};

use crate::boards::removed;

const SHORT: &[&str] = &["run", "wakeup", "--no-warmup", "--no-report", "--json"];

fn trouble(cell: &Value) -> &str {
    cell["load_work"][0]["trouble"].as_str().unwrap_or_else(|| panic!("no trouble in {cell}"))
}

/// A command that has not ended after 300 ms counts as started: on a machine that stands still for so
/// long, one that fails does too.
fn refused(place: &Place, line: &[&str]) -> Ended {
    let mut tries = (0..3).map(|_| place.words(line));
    let ended = tries.find(|ended| ended.status == Some(4));
    ended.unwrap_or_else(|| place.words(line).with(4))
}

#[test]
fn a_load_that_cannot_start_skips_the_cell_with_its_reason() {
    let place = Place::new();
    for (load, reason) in [
        ("cmd:false", "\"false\" exited with status 1"),
        ("cmd:exec /nonexistent/program", "/nonexistent/program"),
        ("tree:dir=/nonexistent", "/nonexistent"),
        ("disk:dir=/proc", "/proc"),
    ] {
        let ended = refused(&place, &[SHORT, &["-D", "1", "--load", load]].concat());
        let cell = &ended.json()["cells"][0];
        assert_eq!(cell["state"], "skipped", "{load}");
        let said = cell["reason"].as_str().unwrap();
        assert!(said.contains(reason), "{load}: {said}");
        let name = load.split(':').next().unwrap();
        assert!(said.contains(name), "{load}: {said}");
    }
    for line in ["run wakeup -D 1 --load cmd:false --no-report", "load cmd:false -D 1"] {
        let ended = refused(&place, &line.split(' ').collect::<Vec<_>>());
        ended.says(&["SKIPPED", "\"false\" exited with status 1"]);
    }
    assert_eq!(place.living(), Vec::<String>::new());
}

#[test]
fn a_load_without_room_says_how_much_it_lacks() {
    need!(root());
    need!(programs(&["mount"]));
    let place = Place::new();
    let on = place.path.join("small");
    let _disk = Tmpfs::mount(&on, "1m");
    let load = format!("disk:dir={}", on.display());
    let cell =
        &place.words(&[SHORT, &["-D", "1", "--load", &load]].concat()).with(4).json()["cells"][0];
    let said = cell["reason"].as_str().unwrap();
    assert!(said.contains(on.to_str().unwrap()), "{said}");
    assert_eq!(fs::read_dir(&on).unwrap().count(), 0, "its folder is removed");
}

#[test]
fn a_load_that_dies_is_trouble_of_the_cell_and_the_measurement_goes_on() {
    let place = Place::new();
    let dying = "cmd:sleep 1.2; echo the disk is gone >&2; exit 3";
    let ended = place.words(&[SHORT, &["-D", "4", "--load", dying]].concat()).with(0);
    let cell = &ended.json()["cells"][0];
    assert_eq!((&cell["state"], &cell["scheduled"]), (&"complete".into(), &4_000.into()));
    assert!(trouble(cell).contains("exited with status 3: the disk is gone"), "{}", trouble(cell));
    assert!(cell["load_work"][0]["restarts"].as_u64().unwrap() >= 1, "{cell}");
    assert_eq!(place.living(), Vec::<String>::new());
}

/// A run whose samples are enough for a PASS in three seconds; the load decides.
const JUDGED: &[&str] = &[
    "run",
    "wakeup",
    "--no-warmup",
    "--no-report",
    "--deadline",
    "10s",
    "--singly",
    "--at-most",
    "1%",
    "--out",
    "judged",
];

/// Judges what was recorded in [`JUDGED`] again, by another deadline.
const AGAIN: &str = "show judged --deadline 9s --singly --at-most 1%";

#[test]
fn a_cell_whose_load_died_is_inconclusive_now_and_when_judged_again() {
    for (load, status, says) in [
        ("cmd:while :; do :; done", 0, "PASS"),
        // It ends, is started again and goes on: that is how it works.
        ("cmd:i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done", 0, "PASS"),
        ("cmd:sleep 1.2; echo the disk is gone >&2; exit 3", 3, "the load did not hold: cmd died"),
        ("copy+cmd:sleep 1.2; kill -9 $$", 3, "the load did not hold: cmd died"),
    ] {
        let place = Place::new();
        let ended = place.words(&[JUDGED, &["-D", "3", "--load", load]].concat()).with(status);
        ended.says(&[if status == 0 { "PASS" } else { "INCONCLUSIVE" }, says]);
        place.run(AGAIN).with(status).says(&[says]);
        assert_eq!(place.living(), Vec::<String>::new());
    }
}

#[test]
fn a_deadline_that_was_missed_fails_whatever_became_of_the_load() {
    let place = Place::new();
    let words = ["--deadline", "1ns", "-D", "3", "--load", "cmd:sleep 1.2; exit 3"];
    let words = [&["run", "wakeup", "--no-warmup", "--no-report"][..], &words].concat();
    place.words(&words).with(1).says(&["FAIL", "the load did not hold: cmd died"]);
}

/// Stops every process of the load, its supervisor apart, a second after the probe's start.
fn stopped(place: &Place, load: &str) -> Ended {
    let words = [JUDGED, &["-D", "9", "--load", load]].concat();
    let mut command = place.command(&words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_for_probe(&mut child, Duration::from_secs(1));
    for pid in load_processes(child.id()) {
        if parent_of(pid) != Some(child.id()) {
            // One of a tree may have ended by itself.
            let _ = Command::new("kill").args(["-STOP", &pid.to_string()]).status();
        }
    }
    waited(child)
}

#[test]
fn a_cell_whose_load_is_stopped_is_inconclusive() {
    for load in ["hackbench:1", "cmd:while :; do :; done"] {
        let place = Place::new();
        let name = load.split(':').next().unwrap();
        let says = format!("the load did not hold: {name} did no work in");
        stopped(&place, load).with(3).says(&["INCONCLUSIVE", &says]);
        place.run(AGAIN).with(3).says(&["INCONCLUSIVE", &says]);
        assert_eq!(place.living(), Vec::<String>::new());
    }
}

#[test]
fn a_command_is_judged_by_its_cpu_time_and_io() {
    for (command, status) in [
        ("sleep 1000", 3),
        // Two bytes a second through a pipe, and next to no CPU time.
        ("while sleep 1; do echo x; done | cat", 0),
    ] {
        let place = Place::new();
        let load = format!("cmd:{command}");
        let ended = place.words(&[JUDGED, &["-D", "8", "--load", &load]].concat()).with(status);
        if status == 3 {
            ended.says(&["INCONCLUSIVE", "cmd did no work in"]);
        }
    }
}

/// A control group with so much memory, version 1 or 2.
fn group_of_memory(bytes: &str) -> Result<PathBuf, String> {
    let v1 = Path::new("/sys/fs/cgroup/memory");
    let v2 = Path::new("/sys/fs/cgroup");
    let controllers = fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap_or_default();
    let (parent, limit) = if v1.join("memory.limit_in_bytes").exists() {
        (v1, "memory.limit_in_bytes")
    } else if controllers.split_whitespace().any(|name| name == "memory") {
        (v2, "memory.max")
    } else {
        return Err("no memory controller in /sys/fs/cgroup".to_owned());
    };
    let group = parent.join(format!("punctual-test-memory-{}", std::process::id()));
    let failed = |error: std::io::Error| format!("{}: {error}", group.display());
    fs::create_dir(&group).map_err(failed)?;
    fs::write(group.join(limit), bytes).map_err(failed)?;
    // Without swap in version 1 the file is not there.
    let _ = fs::write(group.join("memory.memsw.limit_in_bytes"), bytes);
    Ok(group)
}

#[test]
fn a_load_that_the_oom_killer_ends_is_inconclusive() {
    need!(root());
    let group = need!(group_of_memory("100M"));
    let _gone = removed(&group);
    let place = Place::new();
    // What tail keeps of an endless line grows until memory is out.
    let load = "cmd:sleep 1; tail /dev/zero";
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.display());
    let words = [JUDGED, &["-D", "4", "--load", load]].concat();
    let ended = end_of(place.through(&["sh", "-c", &enter], &words)).with(3);
    ended.says(&["INCONCLUSIVE", "the load did not hold: cmd died", "exited with status 137"]);
    assert_eq!(place.living(), Vec::<String>::new());
}

#[test]
fn what_others_do_marks_the_load_none() {
    let place = Place::new();
    let record = |name: &str| {
        let words = ["-D", "2", "--load", "none", "--out", name, "--no-warmup", "--no-report"];
        let run = place.words(&[&["run", "wakeup", "--json"][..], &words].concat()).with(0).json();
        let cell = &run["cells"][0];
        assert!(cell["cpu_own"].as_f64().unwrap() <= cell["cpu_utilisation"].as_f64().unwrap());
        let conditions = cell["conditions"].as_array().unwrap().iter();
        conditions.filter(|one| one["id"] == "not-idle").count()
    };
    let cpus = std::thread::available_parallelism().unwrap().get();
    let busy: Vec<Child> = (0..cpus)
        .map(|_| place.folder().command("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
        .collect();
    let marked = record("busy");
    for mut child in busy {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(marked, 1);
}

#[test]
fn one_part_of_a_load_that_dies_leaves_the_others() {
    let place = Place::new();
    let load = "copy+cmd:sleep 1; exit 3";
    let ended = place.words(&[SHORT, &["-D", "3", "--load", load]].concat()).with(0);
    let cell = &ended.json()["cells"][0];
    let work = cell["load_work"].as_array().unwrap();
    assert_eq!(work.len(), 2);
    assert_eq!((&work[0]["load"], &work[0]["trouble"]), (&"copy".into(), &Value::Null));
    assert!(work[0]["counters"][0]["total"].as_u64().unwrap() > 0);
    assert!(work[1]["trouble"].as_str().unwrap().contains("exited with status 3"));
}
