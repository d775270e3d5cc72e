//! What is wrong with a request is said before anything starts, to people and to programs.

use crate::support::{Scratch, json, stderr};

const USAGE: i32 = 2;

#[test]
fn a_parameter_out_of_range_is_an_error_of_usage_for_loads_as_for_probes() {
    let scratch = Scratch::new("usage");
    for (line, said) in [
        ("run wakeup:interval=2h -D 1", "wakeup: interval=2h: must be at most 1h"),
        ("run wakeup -p 100 -D 1", "wakeup: priority=100: must be a whole number from 1 to 98"),
        ("run sim --load hackbench:groups=0 -D 1", "hackbench: groups=0: must be"),
        ("run sim --load disk:size=1 -D 1", "disk: size=1: must be at least 1M"),
        ("run sim --load flood:icpm -D 1", "flood: proto=icpm: must be icmp, udp or tcp"),
        ("run lat.syscall:cpu=many -D 1", "lat.syscall: cpu=many: must be"),
        ("run wakup -D 1", "did you mean \"wakeup\"?"),
        ("run lat.syscal -D 1", "unknown probe \"lat.syscal\""),
    ] {
        let output = scratch.punctual(&format!("{line} --out wrong"));
        assert_eq!(output.status.code(), Some(USAGE), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{line}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{line}");

        let output = scratch.punctual(&format!("{line} --out wrong --json"));
        assert_eq!(output.status.code(), Some(USAGE), "{line}");
        let error = &json(&output)["error"];
        assert_eq!(error["status"], USAGE, "{line}");
        assert!(error["message"].as_str().unwrap().contains(said), "{line}: {error}");
        assert!(!scratch.path("wrong").exists(), "{line}: something was started");
    }
}

#[test]
fn equal_loads_are_one_row_of_a_comparison() {
    let scratch = Scratch::new("equal-loads");
    for (name, load) in
        [("a", "hackbench:1"), ("b", "hackbench:groups=1"), ("c", "hackbench:groups=01,loops=100")]
    {
        let line = format!("run sim -D 1 --load {load} --no-report --out {name}");
        let output = scratch.punctual(&line);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let compared = json(&scratch.punctual("compare a b c --json"));
    let cells = compared["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1, "{compared}");
    assert_eq!(cells[0]["key"], "sim @ hackbench:groups=1 @ 1s");
    assert_eq!(cells[0]["rows"].as_array().unwrap().len(), 3);
    assert_eq!(compared["unmatched"].as_array().unwrap().len(), 0);
}

#[test]
fn a_run_can_be_named_by_its_run_json() {
    let scratch = Scratch::new("run-json");
    assert_eq!(scratch.punctual("run sim -D 1 --no-report --out one").status.code(), Some(0));
    let whole = scratch.punctual("show one --json");
    for name in ["one/run.json", "./one/run.json"] {
        let output = scratch.punctual(&format!("show {name} --json"));
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{name}");
        assert_eq!(json(&output), json(&whole), "{name}");
    }
    let inside = scratch.command("show run.json --json").current_dir(scratch.path("one")).output();
    assert_eq!(json(&inside.unwrap()), json(&whole));
}

/// The line of the documents, as a user of cyclictest types it.
#[test]
fn a_line_of_cyclictest_measures_wake_ups() {
    let scratch = Scratch::new("cyclictest-line");
    let output = scratch.punctual("run -S -p90 -i 200 -D 1 --no-warmup --no-report --json --out r");
    let run = json(&output);
    let cell = &run["cells"][0];
    assert_eq!(cell["probe"], "wakeup", "{}", stderr(&output));
    assert_eq!(cell["interval_ns"], 200_000);
    assert_eq!(
        (&cell["params"]["threads"], &cell["params"]["priority"]),
        (&"per-cpu".into(), &"90".into())
    );

    let output = scratch.punctual("run -Sp90 -h400 -D 1 --out no");
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(
        stderr(&output).starts_with("punctual: these options of cyclictest"),
        "{}",
        stderr(&output)
    );
    assert!(!scratch.path("no").exists() && output.stdout.is_empty());
}

#[test]
fn the_name_alone_says_first_what_to_type() {
    let scratch = Scratch::new("name-alone");
    let output = scratch.punctual("");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(said.starts_with("A first look, in about a minute:  sudo punctual run\n"), "{said}");
    assert!(said.contains("\nUsage: punctual <COMMAND>") && said.contains("\n  run "), "{said}");
    assert_eq!(said.matches("A first look").count(), 1, "{said}");
}
