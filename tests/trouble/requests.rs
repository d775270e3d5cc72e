//! What is asked for wrongly, and the exit status of every ending.

use std::process::Stdio;
use std::thread;
use std::time::Duration;

use punctual_harness::Place;
use punctual_harness::processes::signal;

/// Line, and what the message must name: the thing, the reason, what there is instead.
const WRONG: &[(&str, &[&str])] = &[
    ("run wakupp", &["unknown probe \"wakupp\"", "wakeup, clock"]),
    ("run wakeup --load hackbensh", &["\"hackbensh\"", "did you mean \"hackbench\"?"]),
    ("run wakeup --nosuch", &["--nosuch", "--help"]),
    ("run wakeup:colour=red", &["no parameter \"colour\"", "it has: timer"]),
    ("run wakeup -D 3parsec", &["3parsec", "number and a unit"]),
    ("run wakeup -i 5parsec", &["5parsec", "number and a unit"]),
    ("run wakeup -i 1m", &["m is a minute", "ms is a millisecond"]),
    ("run wakeup -i 0", &["interval=0", "above zero"]),
    ("run wakeup -i 1ns", &["interval=1ns", "one read of the clock"]),
    ("run wakeup -i 3601s", &["interval=3601s", "at most 1h"]),
    ("run wakeup -p 0", &["priority=0", "from 1 to 98"]),
    ("run wakeup -p 99", &["priority=99", "the kernel's own", "--force"]),
    ("run wakeup -p 100 --force", &["priority=100", "from 1 to 98, or 99"]),
    ("run wakeup -p high", &["priority=high", "from 1 to 98"]),
    ("run wakeup -p -1", &["-1"]),
    ("run wakeup -p 5 --policy other", &["priority=5", "policy other has no priority"]),
    ("run wakeup --policy batch", &["policy=batch", "fifo, rr, other or deadline"]),
    ("run wakeup -a 4095", &["CPU 4095 cannot be used", "does not exist", "can be used: 0"]),
    ("run wakeup -a 0-x", &["affinity=0-x", "list of CPUs"]),
    ("run wakeup -t 0", &["threads=0", "from 1 to 4096"]),
    ("run wakeup --timer rtc", &["rtc", "nanosleep"]),
    ("run wakeup --deadline 0us", &["--deadline", "above zero"]),
    ("run wakeup --deadline 0", &["--deadline", "above zero"]),
    ("run wakeup --deadline 200", &["has no unit", "200us"]),
    ("run wakeup -l 0", &["--loops"]),
    ("run wakeup -D 0", &["--duration", "above zero"]),
    ("run --plan nightly", &["no plan or file \"nightly\"", "standard"]),
    ("load nosuch", &["no load \"nosuch\"", "hackbench"]),
    ("list nosuch", &["\"nosuch\"", "punctual list"]),
    ("nosuch", &["nosuch", "--help"]),
];

#[test]
fn what_is_asked_for_wrongly_is_named() {
    let place = Place::new();
    for (line, parts) in WRONG {
        let ended = place.run(line).with(2).says(parts);
        assert!(ended.stdout.is_empty(), "{line}: {ended:#?}");
    }
    assert!(!place.path.join("punctual-runs").exists(), "a refused request left a run directory");
}

/// What is wrong in a message is named once.
#[test]
fn messages_do_not_repeat_themselves() {
    let place = Place::new();
    std::fs::write(place.path.join("bad.toml"), "name = \"x\"\nspeed = 3\n").unwrap();
    let ended = place.run("run --plan bad.toml").with(2).says(&["bad.toml", "speed", "line 2"]);
    assert_eq!(ended.stderr.matches("speed").count(), 2, "the line and the reason: {ended:#?}");
    let ended = place.run("run wakeup -p 0").with(2);
    assert_eq!(ended.stderr.matches("wakeup").count(), 1, "{ended:#?}");
}

#[test]
fn every_ending_has_its_status() {
    let place = Place::new();
    let late = "sim:stall=3ms,stall-every=500";
    for (line, status, outcome) in [
        ("sim -D 1", 0, "NONE"),
        ("sim -D 60 --deadline 1ms", 0, "PASS"),
        (&format!("{late} -D 1 --deadline 1ms"), 1, "FAIL"),
        (&format!("{late} -D 1 --deadline 3ms"), 3, "INCONCLUSIVE"),
        ("sim -D 1 --deadline 1ms", 3, "INCONCLUSIVE"),
        // The worst of several cells counts.
        ("sim --load none,cmd:false -D 60 --deadline 1ms", 4, "SKIPPED"),
        ("sim --load none,cmd:false -D 1 --deadline 1ms", 3, "INCONCLUSIVE"),
        (&format!("{late} --load none,cmd:false -D 1 --deadline 1ms"), 1, "FAIL"),
        ("sim --load cmd:false -D 1", 4, "SKIPPED"),
    ] {
        let ended = place.run(&format!("run {line} --json --no-report")).with(status);
        assert_eq!(ended.json()["verdict"]["outcome"], outcome, "{line}");
    }
    let broken = place.run(&format!("run {late} -D 10 -b 1000 --json --no-report")).with(5);
    let run = broken.json();
    assert_eq!(run["state"], "interrupted");
    assert_eq!(run["verdict"]["outcome"], "BREAK");
    assert_eq!(run["cells"][0]["samples"], 500, "the cell ends at its first stall");
}

#[test]
fn a_signal_ends_with_what_was_measured() {
    let place = Place::new();
    for name in ["INT", "TERM"] {
        let out = place.at(name);
        let mut command = place.command(&["run", "wakeup", "-D", "1h", "--json", "--out", &out]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        thread::sleep(Duration::from_millis(2_500));
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(run["state"], "interrupted");
        assert!(run["cells"][0]["samples"].as_u64().unwrap() > 500, "{}", run["cells"][0]);
    }
}
