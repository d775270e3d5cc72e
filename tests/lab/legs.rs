//! What all samples of a run consist of, found by repeating its guest; and what has no legs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::boards::x86_64;
use punctual_harness::{Place, count, items, need, run_json};

const LEGS: [&str; 6] = ["interrupt", "wakeup", "schedule", "switch", "user", "clock"];

/// The timer's interrupt is entered within so much of a release into an idle CPU, ns: 100, and a
/// step of the timer.
const PROMPT_NS: u64 = 100 + 16;

fn legs_json(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("legs.json")).unwrap()).unwrap()
}

/// The ends of a sample's legs, ns since the release.
fn ends(sample: &Value) -> Vec<u64> {
    items(&sample["ends_ns"]).iter().map(|ns| ns.as_u64().unwrap()).collect()
}

fn ends_of_all(cell: &Value) -> Vec<Vec<u64>> {
    items(&cell["samples"]).iter().map(ends).collect()
}

/// What holds of every cell, beside what was recorded of it.
#[track_caller]
fn check(cell: &Value, recorded: &Value) {
    assert_eq!(cell["key"], recorded["key"]);
    let all = ends_of_all(cell);
    assert_eq!(all.len() as u64, count(recorded, "samples"));
    assert!(all.iter().all(|ends| ends.is_sorted()), "{all:?}");
    // A thread that is awake when its release comes has nothing but the last leg.
    assert!(all.iter().all(|ends| [1, LEGS.len()].contains(&ends.len())), "{all:?}");
    let latencies: Vec<u64> = all.iter().map(|ends| *ends.last().unwrap()).collect();
    assert_eq!(latencies.iter().max(), Some(&count(recorded, "max_ns")));
    assert_eq!(latencies.iter().min(), Some(&count(recorded, "min_ns")));
    let mean = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64;
    assert!((mean - recorded["avg_ns"].as_f64().unwrap()).abs() < 1e-3, "{mean}");
    for (place, leg) in items(&cell["legs"]).iter().enumerate() {
        assert_eq!(leg["until"], LEGS[place]);
        let asleep = all.iter().filter(|ends| ends.len() == LEGS.len());
        let length = |ends: &Vec<u64>| ends[place] - place.checked_sub(1).map_or(0, |p| ends[p]);
        let mut lengths: Vec<u64> = asleep.clone().map(length).collect();
        if place + 1 == LEGS.len() {
            lengths.extend(all.iter().filter(|ends| ends.len() == 1).map(|ends| ends[0]));
        }
        lengths.sort_unstable();
        assert_eq!(count(leg, "count"), lengths.len() as u64);
        let median = lengths[lengths.len().div_ceil(2) - 1];
        let found = ["min_ns", "p50_ns", "max_ns"].map(|key| count(leg, key));
        assert_eq!(found, [lengths[0], median, *lengths.last().unwrap()], "{leg}");
        let worst = usize::try_from(count(leg, "worst")).unwrap() - 1;
        if all[worst].len() == LEGS.len() {
            assert_eq!(length(&all[worst]), found[2]);
        }
    }
    let (t1, t2) = (&cell["t1"], &cell["t2"]);
    assert_eq!(t1, &cell["legs"][0]);
    assert_eq!(count(t2, "max_ns"), count(recorded, "max_ns"));
    for key in ["min_ns", "p50_ns", "p99_ns", "max_ns"] {
        assert!(count(t1, key) <= count(t2, key), "{t1} {t2}");
    }
}

#[test]
fn legs_of_all_samples_add_up_and_are_those_of_an_explanation() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --json --legs --out a --kernel debian:none,debian:rt wakeup \
                --load none,hackbench -D 300ms";
    let printed = place.run(line).with(0).json();
    for (number, model) in ["none", "rt"].into_iter().enumerate() {
        let dir = format!("a/debian-{model}-0");
        let legs = legs_json(&place.path.join(&dir));
        assert_eq!(printed["legs"][number], legs);
        let run = run_json(&place.path.join(&dir));
        assert_eq!(legs["run_id"], run["run_id"]);
        for (cell, recorded) in items(&legs["cells"]).iter().zip(items(&run["cells"])) {
            check(cell, recorded);
        }
        let why = place.run(&format!("lab explain --offline --json {dir}")).with(0).json();
        for (cell, explained) in items(&legs["cells"]).iter().zip(items(&why[0]["cells"])) {
            let all = ends_of_all(cell);
            let of = |sample: &Value| -> Vec<u64> {
                items(&sample["legs"]).iter().map(|leg| count(leg, "end_ns")).collect()
            };
            let samples: Vec<Vec<u64>> = items(&explained["samples"]).iter().map(of).collect();
            assert_eq!(samples.len(), 4, "a typical one and the three worst");
            for sample in &samples {
                assert!(all.contains(sample), "{model}, {}: {sample:?}", cell["key"]);
            }
            let worst = usize::try_from(count(&cell["t2"], "worst")).unwrap();
            assert_eq!(all[worst - 1], samples[1]);
        }
    }
    let shown = place.run("show a/debian-none-0").with(0).stdout;
    let table = shown.split_once("Legs of every sample").unwrap().1;
    for leg in ["interrupt (t1)", "wake-up", "scheduling", "switch", "return", "clock", "all legs"]
    {
        assert!(table.contains(leg), "{shown}");
    }
    place.run("compare a").says(&["Legs of every sample"]);
    let page = fs::read_to_string(place.path.join("a/report.html")).unwrap();
    assert!(page.contains("Legs of every sample</h2>") && page.contains("Interrupt latency (t1)"));

    let file = place.path.join("a/debian-none-0/legs.json");
    for (text, says) in [("{", "legs.json is damaged"), ("", "legs.json is damaged")] {
        fs::write(&file, text).unwrap();
        let shown = place.run("show a/debian-none-0").with(0).stdout;
        assert!(shown.contains(says) && !shown.contains("interrupt (t1)"), "{shown}");
    }
    fs::copy(place.path.join("a/debian-rt-0/legs.json"), &file).unwrap();
    place.run("show a/debian-none-0").with(0).says(&["legs.json is of another run"]);
}

/// The kernel computes how long the timer has to wait some 50 instructions before it writes that to
/// the timer: with an instruction of 4 ns this alone takes 200 ns, with one of 1 ns 50.
#[test]
fn the_timer_s_interrupt_enters_an_idle_cpu_at_once() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --no-report --legs --mips 1000 --kernel debian:rt --out a \
                wakeup --load none -D 1s";
    place.run(line).with(0);
    let legs = legs_json(&place.path.join("a/debian-rt-0"));
    let samples = items(&legs["cells"][0]["samples"]);
    assert_eq!(samples.len(), 1_000);
    let idle = samples.iter().filter(|sample| sample["idle"] == true);
    let t1: Vec<u64> = idle.map(|sample| ends(sample)[0]).collect();
    println!("{} of {} into an idle CPU, at most {:?}", t1.len(), samples.len(), t1.iter().max());
    assert!(t1.len() >= 990, "{}", t1.len());
    // A release may come just before the CPU is idle, while interrupts are off, and one that comes
    // while the kernel sets up the timer waits for the shortest time that it sets up, 1 us more
    // (clockevents_program_min_delta).
    let late: Vec<&u64> = t1.iter().filter(|ns| **ns > PROMPT_NS).collect();
    assert!(late.len() <= 5 && late.iter().all(|ns| **ns < 3_000), "{late:?}");
}

#[test]
fn what_has_no_legs_is_refused_before_the_boot() {
    need!(x86_64());
    let place = Place::of_build();
    let refuses = |options: &str, says: &str| {
        let line = format!("lab run --offline -q --legs --out r {options} -D 100ms");
        place.run(&line).with(2).says(&[says]);
        assert!(!place.path.join("r").exists(), "{options}");
    };
    let other = "handoff @ idle @ 100ms: only the probe wakeup can be watched";
    refuses("--kernel debian:rt handoff", other);
    refuses("--kernel debian:rt wakeup:threads=2", "its 2 threads cannot be told apart");
    refuses("--kernel debian:rt --free-running wakeup", "may not repeat: time is not counted");
    refuses("--kernel debian:rt --device virtio-disk wakeup", "may not repeat");
    refuses("--kernel debian:rt --warm wakeup", "--warm");
    let many = "wakeup:interval=5us @ idle @ 100ms: 20,000 releases, and a board keeps only the \
                first 16,384 samples of a cell: watch it for at most 81ms (-D), or with a longer \
                interval (-i)";
    refuses("--kernel debian:rt wakeup -i 5us", many);
}

/// An emulator that gives a watched guest another seed.
const MEDDLER: &str = r#"#!/bin/bash
args=("$@")
for i in "${!args[@]}"; do
    [[ "$*" = *-plugin* && "${args[i]}" = -seed ]] && args[i+1]=99
done
exec qemu-system-x86_64 "${args[@]}"
"#;

#[test]
fn a_repeat_that_differs_has_no_legs() {
    need!(x86_64());
    let place = Place::of_build();
    let meddler = place.path.join("qemu");
    fs::write(&meddler, MEDDLER).unwrap();
    fs::set_permissions(&meddler, fs::Permissions::from_mode(0o755)).unwrap();
    let line = "lab run --offline -q --json --legs --qemu ./qemu --out a --kernel debian:rt wakeup \
                --load none -D 100ms";
    let ended = place.run(line).with(69);
    let guest = &ended.json()["guests"][0];
    println!("{}", guest["no_legs"]);
    assert!(guest["no_legs"].as_str().unwrap().contains("the repeat is not identical"), "{guest}");
    let dir = place.path.join("a/debian-rt-0");
    assert!(dir.join("run.json").exists() && !dir.join("legs.json").exists());
}
