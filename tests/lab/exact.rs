//! Runs that are the same to the nanosecond, and runs that are not.

use std::fs;

use crate::boards::{aarch64, hog, side_by_side, x86_64};
use punctual_harness::schema::validate;
use punctual_harness::{Place, need, run_json};

/// Boots the same twice at the same time and compares the two experiments exactly.
#[track_caller]
pub fn same_twice(place: &Place, line: &str, out: [&str; 2]) {
    let lines =
        out.map(|out| format!("lab run --offline --jobs 1 -q --no-report --out {out} {line}"));
    for ended in side_by_side(place, [&lines[0], &lines[1]]) {
        ended.with(0);
    }
    let compared = place.run(&format!("compare --exact {} {}", out[0], out[1]));
    print!("{}", compared.stdout);
    compared.with(0);
}

#[test]
fn models_repeat_on_a_busy_host() {
    need!(x86_64());
    let place = Place::of_build();
    let _hog = hog();
    let kernels = ["none", "voluntary", "full", "rt"].map(|model| format!("debian:{model}"));
    let plan = "wakeup --load none,hackbench -D 1s";
    same_twice(
        &place,
        &format!("--kernel {} --replicates 1 {plan}", kernels.join(",")),
        ["a", "b"],
    );
    for model in ["none", "voluntary", "full", "rt"] {
        let run = run_json(&place.path.join(format!("a/debian-{model}-0")));
        validate(&run);
        assert_eq!(run["kernel"]["preemption"], model);
        assert_eq!(run["board"]["lab"]["not_exact"].as_array().unwrap().len(), 0);
        for cell in run["cells"].as_array().unwrap() {
            assert_eq!((&cell["state"], &cell["scheduled"]), (&"complete".into(), &1000.into()));
        }
    }
}

#[test]
fn aarch64_repeats_with_one_cpu_and_says_so_of_two() {
    need!(aarch64());
    let place = Place::of_build();
    let _hog = hog();
    let board = "--board aarch64 --kernel debian:rt";
    let plan = "wakeup -t per-cpu --load none,hackbench -D 1s";
    same_twice(&place, &format!("{board} {plan}"), ["a", "b"]);
    let run = run_json(&place.path.join("a/debian-rt-0"));
    validate(&run);
    assert_eq!(run["kernel"]["machine"], "aarch64");

    // What makes a difference is refused; were it not in the record, the difference is found.
    let other = "--no-report -q --append nohz=off --out other";
    place.run(&format!("lab run --offline {board} {other} {plan}")).with(0);
    place.run("compare --exact a other").with(4).says(&["refused: kernel.command_line: "]);
    let path = place.path.join("other/debian-rt-0/run.json");
    let text = fs::read_to_string(&path).unwrap().replace(" nohz=off", "");
    fs::write(&path, text).unwrap();
    place
        .run("compare --exact a other")
        .with(1)
        .says(&["debian-rt-0 not identical: wakeup:threads=per-cpu", "0 of 1 runs identical"]);

    let why = "QEMU cannot record how several CPUs take turns: a repeat may differ";
    let two = format!("lab run --offline -q --no-report --out a2 {board} --cpus 2 {plan}");
    place.run(&two).with(0).says(&[why]);
    let run = run_json(&place.path.join("a2/debian-rt-0"));
    validate(&run);
    assert_eq!(run["cells"][0]["threads"].as_array().unwrap().len(), 2);
    assert_eq!(run["board"]["lab"]["not_exact"], serde_json::json!([why]));
    let wait_ns = run["board"]["turn_wait_ns"].as_u64().unwrap();
    assert!(wait_ns > 500_000, "a turn takes no more than {wait_ns} ns");
    place.run("compare --exact a a2").with(4).says(&["refused: options: ", "cpus: 1 against 2"]);
}

#[test]
fn a_free_running_guest_is_not_a_measurement() {
    need!(aarch64());
    let place = Place::of_build();
    place
        .run(
            "lab run --offline --board aarch64 --kernel debian:rt --free-running --replicates 2 \
             -q wakeup -D 1s --deadline 1s --out r",
        )
        .with(3)
        .says(&["not a measurement", "INCONCLUSIVE"]);
    let run = run_json(&place.path.join("r/debian-rt-0"));
    validate(&run);
    assert_eq!(run["board"]["lab"]["counted"], false);
    assert_eq!(run["cells"][0]["state"], "complete");
    place.run("compare r").with(4).says(&["not a measurement"]);
    place
        .run("compare --exact r/debian-rt-0 r/debian-rt-1")
        .with(4)
        .says(&["without instruction counting"]);
}
