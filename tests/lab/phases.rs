//! A load that changes on a schedule, on boards: it repeats exactly.

use punctual_harness::schema::validate;
use punctual_harness::{Place, count, need, run_json};

use crate::boards::x86_64;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn a_load_that_changes_on_a_schedule_repeats() {
    need!(x86_64());
    let place = Place::of_build();
    let schedule = "none for 2s then hackbench:groups=1 for 2s then none for 2s";
    let line = |out: &str| -> Vec<String> {
        let words = "lab run --offline --jobs 1 -q --no-report --kernel debian:none --replicates 1";
        let words = words.split(' ').chain(["--out", out, "wakeup", "--load", schedule]);
        words.map(str::to_owned).collect()
    };
    let lines = ["a", "b"].map(line);
    for line in &lines {
        let words: Vec<&str> = line.iter().map(String::as_str).collect();
        place.words(&words).with(0);
    }
    place.run("compare --exact a b").with(0);
    let run = run_json(&place.path.join("a/debian-none-0"));
    validate(&run);
    let cell = &run["cells"][0];
    assert_eq!(cell["key"], format!("wakeup @ {schedule} @ 6s"));
    let phases = cell["phases"].as_array().unwrap();
    let ends: Vec<_> =
        phases.iter().map(|one| count(&one["at_work"][0], "to_ns") / SECOND_NS).collect();
    assert_eq!(ends, [2, 4, 6]);
    let scheduled: u64 =
        phases.iter().chain([&cell["changes"]]).map(|one| count(one, "scheduled")).sum();
    assert_eq!((scheduled, count(cell, "scheduled")), (6_000, 6_000));
    // Without preemption a load is seen, and what comes after it is idle again.
    let p99 = |number: usize| count(&phases[number], "p99_ns");
    assert!(p99(1) > p99(0) && p99(1) > p99(2), "{} {} {}", p99(0), p99(1), p99(2));
    assert!(count(&cell["load_work"][1]["counters"][0], "total") > 0, "{cell}");
}
