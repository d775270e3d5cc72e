//! A load that changes on a schedule: simulated cells with exact expectations, and real loads as
//! another source sees them.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use punctual_harness::processes::{assert_no_load, load_commands};
use punctual_harness::{Ended, count, waited};
use serde_json::{Value, json};

use crate::support::Scratch;

const SECOND_NS: u64 = 1_000_000_000;

/// 4 s: 3,000 releases at 10 us, one that is 100 ms late and with it 99 more, 900 at 10 us. Then
/// 4 s at 20 us.
const VALUES: &str = "sim:dist=list,values=10us*3000/100ms/10us*900/20us*4000";
const SCHEDULE: &str = "none for 4s then copy:jobs=2 for 4s";

fn run(scratch: &Scratch, words: &[&str]) -> Ended {
    scratch.words(&[&["run"], words].concat())
}

#[test]
fn phases_of_simulated_time_are_exact_and_repeat() {
    let scratch = Scratch::new("phases-sim");
    let words = [VALUES, "--load", SCHEDULE, "-D", "16s", "--deadline", "50ms", "--out", "r"];
    let shown = run(&scratch, &words).with(1);
    shown.says(&["phase 1", "phase 2", "copy:jobs=2", "at 3.100 s, in phase 1, idle"]);
    let cell = &scratch.folder().json("r/run.json")["cells"][0];
    assert_eq!(cell["key"], json!(format!("{VALUES} @ {SCHEDULE} @ 16s")));
    let [idle, copy] = &cell["phases"].as_array().unwrap()[..] else { panic!("two phases") };
    let turns = |from: u64| {
        let turn = |from| json!({ "from_ns": from * SECOND_NS, "to_ns": (from + 4) * SECOND_NS });
        json!([turn(from), turn(from + 8)])
    };
    for (phase, key, expected) in [
        (idle, "load", json!("none")),
        (idle, "for_ns", json!(4 * SECOND_NS)),
        (idle, "at_work", turns(0)),
        (idle, "seconds", json!(8)),
        (idle, "scheduled", json!(8_000)),
        (idle, "samples", json!(7_802)),
        (idle, "missed", json!(198)),
        (idle, "max_ns", json!(100_000_000)),
        (idle, "max_at_ns", json!(3_100_000_000_u64)),
        // 100, 99, … 51 ms, twice.
        (idle, "late", json!(100)),
        (copy, "load", json!("copy:jobs=2")),
        (copy, "at_work", turns(4)),
        (copy, "samples", json!(8_000)),
        (copy, "missed", json!(0)),
        (copy, "min_ns", json!(20_000)),
        (copy, "max_ns", json!(20_000)),
        (copy, "avg_ns", json!(20_000.0)),
        (copy, "p50_ns", json!(20_000)),
        (copy, "late", json!(0)),
    ] {
        assert_eq!(phase[key], expected, "{key}");
    }
    let p99 = idle["corrected"]["p99_ns"].as_f64().unwrap();
    // 198 of 8,000 are later than 1 ms: 2 each of 1, 2, … 99 ms; rank 7,920 is 60 ms.
    assert!((60e6..60e6 * 1.008).contains(&p99), "{p99}");
    assert_eq!((count(&cell["changes"], "seconds"), count(&cell["changes"], "samples")), (0, 0));
    let again = scratch.run("show r --json --deadline 10us").with(1).json();
    // A bin that holds 10 us counts as a whole only if it holds a later one.
    let late = |number: usize| count(&again["cells"][0]["phases"][number], "late");
    assert!(late(0) >= 200 && late(1) == 8_000, "{} {}", late(0), late(1));
}

#[test]
fn the_phases_are_the_seconds_of_the_timeline() {
    let scratch = Scratch::new("phases-seconds");
    let schedule = "none for 3s then copy for 2s then none for 5s";
    let probe = "sim:order=random,stall=3ms,stall-every=700";
    let words = [probe, "-t", "3", "--load", schedule, "-D", "25s", "--no-report", "--out", "r"];
    run(&scratch, &words).with(0);
    let cell = &scratch.folder().json("r/run.json")["cells"][0];
    let rows = scratch.run("export --timeline --json r").with(0).json();
    let mut expected = [(0, 0, 0); 3];
    for row in rows.as_array().unwrap() {
        let phase = match count(row, "second") % 10 {
            0..3 => 0,
            3..5 => 1,
            _ => 2,
        };
        let (samples, missed, max) = &mut expected[phase];
        *samples += count(row, "samples");
        *missed += count(row, "missed");
        *max = count(row, "max_ns").max(*max);
    }
    let told = |phase: &Value| ["samples", "missed", "max_ns"].map(|key| count(phase, key)).into();
    let found: Vec<(u64, u64, u64)> = cell["phases"].as_array().unwrap().iter().map(told).collect();
    assert_eq!(found, expected);
    assert!(expected.iter().all(|(samples, missed, _)| *samples > 10_000 && *missed > 20));
    for words in ["export --timeline --json r", "export --phases --json r"] {
        let mut exported = [(0, 0, 0); 3];
        for row in scratch.run(words).with(0).json().as_array().unwrap() {
            let (samples, missed, max) =
                &mut exported[usize::try_from(count(row, "phase")).unwrap() - 1];
            *samples += count(row, "samples");
            *missed += count(row, "missed");
            *max = count(row, "max_ns").max(*max);
        }
        assert_eq!(exported, expected, "{words}");
    }

    run(&scratch, &[&words[..7], &["--no-report", "--out", "s"]].concat()).with(0);
    let again = scratch.folder().json("s/run.json");
    assert_eq!(again["cells"][0]["phases"], cell["phases"]);
}

#[test]
fn what_is_wrong_with_a_schedule_is_said_before_anything_starts() {
    let scratch = Scratch::new("phases-wrong");
    for (words, said) in [
        (&["wakeup", "--load", "none for 5s then hackbensh for 5s"][..], "did you mean"),
        (&["wakeup", "--load", "none for 5s then copy"], "load \"copy\" has no duration"),
        (&["wakeup", "--load", "copy for 5s"], "one phase: write \"copy\" and --duration 5s"),
        (&["wakeup", "--load", "none for 1s then copy for 5s"], "whole seconds, at least 2"),
        (&["wakeup", "--load", "none for 5s then copy for 5s", "-D", "9s"], "takes 10s; measure"),
        (&["lat.syscall", "--load", "none for 5s then copy for 5s"], "measured under one load"),
        (&["wakeup", "--load", "none for 5s then none+copy for 5s"], "cannot be joined"),
    ] {
        let ended = run(&scratch, &[words, &["--out", "wrong"]].concat()).with(2);
        assert!(ended.stderr.contains(said), "{words:?}: {}", ended.stderr);
        assert!(!scratch.path("wrong").exists(), "{words:?}: something was started");
    }
    let ended = scratch.words(&["load", "none for 5s then copy for 5s", "-D", "9s"]).with(2);
    assert!(ended.stderr.contains("the schedule takes 10s"), "{}", ended.stderr);
}

/// Loads whose processes run at an instant, by name, and when that was seen: ns since 1970, before
/// and after the look.
struct Look {
    from: u64,
    to: u64,
    loads: Vec<&'static str>,
}

const LOADS: [&str; 3] = ["hackbench", "copy", "untar"];

fn look(punctual: u32) -> Look {
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::try_from(since.as_nanos()).unwrap()
    };
    let from = now();
    let commands = load_commands(punctual);
    let named = |load: &&&str| commands.iter().any(|line| line.contains(&format!("\"{load}\"")));
    let loads = LOADS.iter().filter(named).copied().collect();
    Look { from, to: now(), loads }
}

#[test]
fn each_load_runs_and_works_in_its_phase_only() {
    let scratch = Scratch::new("phases-real");
    let schedule =
        "none for 3s then hackbench:groups=1 for 4s then copy+untar for 4s then none for 3s";
    let line =
        ["run", "wakeup", "--no-warmup", "--no-report", "--out", "r", "-q", "--load", schedule];
    let mut command = (*scratch).command(&line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut looks = Vec::new();
    while child.try_wait().unwrap().is_none() {
        looks.push(look(child.id()));
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = child.id();
    let ended = waited(child).with(0);
    assert_no_load(pid, Duration::from_secs(2), "after its end");
    let run = scratch.folder().json("r/run.json");
    let cell = &run["cells"][0];
    let left_out = |phase: &Value| phase["at_work"].as_array().unwrap().is_empty();
    let phases = (0_u64..).zip(cell["phases"].as_array().unwrap());
    if let Some((number, _)) = phases.into_iter().find(|(_, phase)| left_out(phase)) {
        // That is said; nothing else can be seen then.
        let parts = cell["load_work"].as_array().unwrap().iter();
        let mut own = parts.filter(|part| count(part, "phase") == number);
        assert!(own.all(|part| part["trouble"].is_string()), "phase {number}: {cell}");
        punctual_harness::refused("the machine stood still for a whole phase");
        return;
    }
    let start: u64 = cell["started"]["realtime_ns"].as_str().unwrap().parse().unwrap();

    // The start is noted shortly after it on a busy machine.
    let margin = SECOND_NS / 4;
    let expected: [&[&str]; 4] = [&[], &["hackbench"], &["copy", "untar"], &[]];
    let mut seen = Vec::new();
    for (number, phase) in cell["phases"].as_array().unwrap().iter().enumerate() {
        let at = &phase["at_work"][0];
        let from = start + count(at, "from_ns") + margin;
        let to = start + count(at, "to_ns") - margin;
        let within: Vec<_> = looks.iter().filter(|l| from <= l.from && l.to <= to).collect();
        seen.push(within.len());
        for look in within {
            assert_eq!(look.loads, expected[number], "phase {number}: {}", ended.stdout);
        }
        // A stall across the end of a second counts in the second one.
        let releases = count(phase, "seconds") * 1_000;
        assert!(count(phase, "scheduled").abs_diff(releases) < 200, "{phase}");
    }
    println!("looks at each phase: {seen:?}");
    assert!(seen.iter().all(|looks| *looks > 0), "{seen:?}");
    // Nothing that starts a load touches the memory of the threads that measure.
    if run["privileged"] == true {
        assert_eq!(cell["threads"][0]["page_faults"], 0, "{}", cell["threads"][0]);
    }
    let sum: u64 = cell["phases"].as_array().unwrap().iter().map(|p| count(p, "samples")).sum();
    assert_eq!(sum + count(&cell["changes"], "samples"), count(cell, "samples"));
    // One for each change, and more if a busy machine takes longer to start a load.
    let changes = count(&cell["changes"], "seconds");
    assert!((3..=6).contains(&changes), "{changes} s: {cell}");

    let parts: Vec<_> = cell["load_work"].as_array().unwrap().iter().collect();
    let named = parts.iter().map(|part| (part["load"].as_str().unwrap(), count(part, "phase")));
    let named: Vec<_> = named.collect();
    assert_eq!(named, [("none", 0), ("hackbench", 1), ("copy", 2), ("untar", 2), ("none", 3)]);
    let rows = scratch.run("export --load --json r").with(0).json();
    let mut done: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
    let of_load = |row: &&Value| row["load"] != "CPUs" && row["load"] != "pressure";
    for row in rows.as_array().unwrap().iter().filter(of_load) {
        let (second, work) = (count(row, "second"), count(row, "count"));
        let part = done.entry(row["load"].as_str().unwrap()).or_insert((second, second, 0));
        *part = (part.0.min(second), part.1.max(second), part.2 + work);
    }
    for (load, seconds) in [("hackbench", 3..7), ("copy", 7..11), ("untar", 7..11)] {
        let (first, last, work) = done[load];
        assert!(seconds.contains(&first) && seconds.contains(&last), "{load}: {first} to {last}");
        assert!(work > 0, "{load}");
    }
    assert_eq!(done.len(), 3, "{done:?}");
}

#[test]
fn a_load_that_cannot_start_or_dies_in_its_phase_forbids_a_pass() {
    let scratch = Scratch::new("phases-trouble");
    let judged = ["wakeup", "--no-warmup", "--no-report", "--deadline", "10s", "--singly"];
    let judged = [&judged[..], &["--at-most", "1%"]].concat();
    let cases = [
        ("none for 2s then cmd:while :; do :; done for 3s", 0, "PASS"),
        ("none for 2s then cmd:sleep 1; exit 3 for 4s", 3, "the load did not hold: cmd died"),
        ("none for 2s then cmd:exec /nonexistent for 3s", 3, "the load did not hold: cmd died"),
        ("none for 2s then tree:dir=/nonexistent for 3s", 3, "tree was gone for 3.0 s in phase 2"),
    ];
    for (number, (schedule, status, said)) in cases.into_iter().enumerate() {
        let out = format!("out-{number}");
        let ended = run(&scratch, &[&judged[..], &["--load", schedule, "--out", &out]].concat());
        assert_eq!(ended.status, Some(status), "{schedule}: {}{}", ended.stdout, ended.stderr);
        ended.says(&[said]);
    }
    assert_eq!(scratch.living(), Vec::<String>::new());
}

#[test]
fn a_load_alone_changes_too() {
    let scratch = Scratch::new("phases-alone");
    let ended = scratch.words(&["load", "copy for 2s then untar for 3s"]).with(0);
    let text = &ended.stdout;
    assert!(text.contains("in all: copy in phase 1"), "{text}");
    assert!(text.contains("in all: untar in phase 2"), "{text}");
    let seconds = |load: &str| -> Vec<u64> {
        let lines = text.lines().filter(|line| line.contains(&format!(" s  {load} ")));
        lines.map(|line| line.trim().split(' ').next().unwrap().parse().unwrap()).collect()
    };
    let (copy, untar) = (seconds("copy"), seconds("untar"));
    assert!(copy.contains(&1) && copy.iter().all(|second| *second <= 2), "{text}");
    assert!(untar.contains(&5) && untar.iter().all(|second| *second >= 3), "{text}");
    let work = scratch.words(&["load", "copy for 2s then none for 2s", "--json"]).with(0).json();
    assert_eq!((&work[0]["phase"], &work[1]["phase"]), (&json!(0), &json!(1)));
    assert!(count(&work[0]["counters"][0], "total") > 0, "{work}");
}
