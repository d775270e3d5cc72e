//! Releases that are aimed at the longest sections measure how long these are, in a course that is
//! otherwise the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::boards::x86_64;
use crate::modules::module;
use punctual_harness::{Place, count, items, need, run_json};

/// A module holds interrupts and preemption off for up to 800 us ten times in a second: samples
/// every millisecond meet the beginning of such a stretch by chance only.
#[test]
fn an_aimed_release_measures_the_section_that_it_is_aimed_at() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "hold"));
    let line = format!(
        "lab aim --json --aim 2 --out aimed --kernel {} --modules {} --module hold wakeup \
         --load hackbench -D 300ms",
        module.kernel("full"),
        module.folder.display()
    );
    let all = place.run(&line).with(0).json();
    let cell = &items(&all)[0]["cells"][0];
    let targets = items(&cell["targets"]);
    // One that comes otherwise than predicted is aimed again, at most twice.
    assert!((2..=6).contains(&targets.len()), "{cell}");
    for target in targets {
        let section = &target["section"];
        let length = count(section, "length_ns");
        assert!(length.abs_diff(800_000) < 40_000, "{section}");
        let from = section["from"].as_str().unwrap();
        assert!(from.starts_with("hold_") && from.ends_with(" [hold]"), "{section}");
        // Else something before it was not as it had been.
        let shot = &target["measured"]["measured"];
        assert!(shot.is_object(), "{target}");
        let (measured, predicted) = (count(shot, "latency_ns"), count(target, "predicted_ns"));
        println!("{from} {length} ns: predicted {predicted}, measured {measured}");
        assert!(measured > length - 10_000, "{measured}");
        assert!(measured.abs_diff(predicted) < 20_000, "{measured}, {predicted}");
        let run = run_json(&place.path.join(shot["run"].as_str().unwrap()));
        assert!(run["aim"].is_string());
        let cell = &run["cells"][0];
        // It was the last release; a sample before may have missed some.
        assert_eq!(count(cell, "samples") + count(cell, "missed"), count(target, "number"));
        assert_eq!(count(cell, "max_ns"), measured);
    }
    let page = fs::read_to_string(place.path.join("aimed/aimed.html")).unwrap();
    assert!(page.contains("[hold]"));
    let kept = fs::read_to_string(place.path.join("aimed/aimed.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), all);
}

/// What a section does once a thread waits for its end is known when that was watched, and so is where
/// the timer of a release without others is among those of the load.
#[test]
fn a_release_that_came_otherwise_than_predicted_is_aimed_again() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab aim -q --offline --json --alone --aim 3 --out again --kernel debian:full wakeup \
                --load process -D 300ms";
    let all = place.run(line).with(0).json();
    // A failed release has not shown anything.
    let off = |target: &Value| {
        let measured = target["measured"]["measured"]["latency_ns"].as_u64();
        measured.map_or(u64::MAX, |ns| ns.abs_diff(count(target, "predicted_ns")))
    };
    for cell in items(&items(&all)[0]["cells"]) {
        let targets = items(&cell["targets"]);
        targets.iter().for_each(|target| println!("{} {target}", cell["course"]));
        for (target, after) in targets.iter().zip(targets.iter().skip(1).map(Some).chain([None])) {
            let round = count(target, "round");
            let Some(after) = after.filter(|after| count(after, "round") > 1) else {
                assert!(round > 1 || off(target) <= 3_000, "not aimed again: {target}");
                continue;
            };
            assert_eq!(count(after, "round"), round + 1, "{target} {after}");
            assert!(off(target) > 3_000, "aimed again: {target}");
            // It is another release, and better known.
            let at = [target, after].map(|target| count(target, "at_ns"));
            assert!(at[0] != at[1] && at[0].abs_diff(at[1]) < 1_100_000, "{at:?}");
            let shown = off(target) < u64::MAX && off(after) < u64::MAX;
            assert!(!shown || off(after) < off(target), "{target} {after}");
        }
    }
}

/// The module holds interrupts off for 800 us every 97 ms, and samples every 20 ms hardly ever meet
/// the beginning of that: an aimed release tells in any case that a limit below is exceeded.
#[test]
fn a_kernel_is_judged_by_its_aimed_releases_too() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "hold"));
    let kernel = module.kernel("full");
    let folder = module.folder.display();
    let run = |command: &str| {
        let line = format!(
            "lab {command} -q --offline --kernel {kernel} --modules {folder} wakeup -i 20ms \
             --load hackbench -D 300ms"
        );
        let words = line.split_whitespace().chain(["--module", "hold only=irqs_off"]);
        let ended = place.words(&words.collect::<Vec<_>>());
        println!("{}", ended.stdout);
        ended
    };
    // In one course of a hundred a sample meets it all the same.
    let sampled = run("check --max 750us --replicates 1");
    assert!([Some(0), Some(1)].contains(&sampled.status), "{sampled:?}");
    let aimed = run("check --max 750us --aim 1");
    aimed.with(1).says(&["aimed: 8", " in hold_irqs_off [hold]", "bad: ", "above 750.0 us in 1"]);
    let all = run("run --json --aim 1 --deadline 750us --out both").with(1).json();
    let cell = &items(&all["aimed"])[0]["cells"][0];
    let shot = &items(&cell["targets"])[0]["measured"]["measured"];
    assert!(count(shot, "latency_ns") > 750_000, "{cell}");
    let ran = |folder: &Value| folder["run"].as_str().unwrap().to_owned();
    let runs: Vec<String> = items(&all["guests"]).iter().map(ran).collect();
    assert_eq!(runs.len(), 1, "{all}");
    assert!(
        place.path.join("both/aimed.html").exists() && place.path.join("both/report.html").exists()
    );
    // The aimed release is no sample of the kernel like others.
    let reported = place.run("report both --json -o other.html").with(0).json();
    assert_eq!(items(&reported["runs"]).len(), 1, "{reported}");
}

/// On an idle board the longest sections lie between idle stretches, so nobody knows when they were.
#[test]
fn a_check_says_what_it_has_not_aimed_at() {
    need!(x86_64());
    let place = Place::of_build();
    let line =
        "lab check --offline --kernel debian:full wakeup --load none -D 200ms --max 5ms --aim 1";
    let ended = place.run(line).with(0);
    println!("{}", ended.stdout);
    let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(" were passed over: the CPU was idle both before and after"), "{words}");
}

/// An emulator that does not start a guest whose only release is aimed.
const UNWILLING: &str = r#"#!/bin/sh
case "$*" in *-alone1-aim1/*) echo "not this one" >&2; exit 1;; esac
exec qemu-system-x86_64 "$@"
"#;

#[test]
fn a_failed_guest_of_an_aimed_release_is_told_of() {
    need!(x86_64());
    let place = Place::of_build();
    let qemu = place.path.join("qemu");
    fs::write(&qemu, UNWILLING).unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    let line = "lab aim -q --offline --json --alone --aim 1 --qemu ./qemu --out r --kernel \
                debian:full wakeup --load hackbench -D 100ms";
    let all = place.run(line).with(69).json();
    let [sampled, alone] = items(&items(&all)[0]["cells"]) else { panic!("{all}") };
    assert!(items(&sampled["targets"])[0]["measured"]["measured"].is_object(), "{sampled}");
    let why = &items(&alone["targets"])[0]["measured"]["failed"]["why"];
    assert!(why.as_str().unwrap().contains("not this one"), "{why}");
}

/// Without other releases the course is another one, in which each section before the aimed release
/// is where it was, or the release proves nothing, and that is said.
#[test]
fn a_release_without_others_is_aimed_in_a_course_of_its_own() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab aim -q --offline --json --alone --aim 1 --out alone --kernel debian:full wakeup \
                --load hackbench -D 300ms";
    let all = place.run(line).with(0).json();
    let [sampled, alone] = items(&items(&all)[0]["cells"]) else { panic!("{all}") };
    assert_eq!((&sampled["course"], &alone["course"]), (&"sampled".into(), &"alone".into()));
    assert_eq!((&alone["key"], count(alone, "samples")), (&sampled["key"], 1));
    let target = &items(&alone["targets"])[0];
    assert_eq!(count(target, "number"), 1);
    println!("{target}");
    match target["measured"]["failed"]["why"].as_str() {
        Some(why) => assert!(why.contains("a section before it differs"), "{why}"),
        None => {
            let shot = &target["measured"]["measured"];
            let measured = count(shot, "latency_ns");
            assert!(measured.abs_diff(count(target, "predicted_ns")) < 20_000, "{target}");
            let run = run_json(&place.path.join(shot["run"].as_str().unwrap()));
            assert_eq!(count(&run["cells"][0], "max_ns"), measured);
            assert_eq!(run["cells"][0]["key"], "wakeup:interval=300ms @ hackbench @ 300ms");
        }
    }
}
