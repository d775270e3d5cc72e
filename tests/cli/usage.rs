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
