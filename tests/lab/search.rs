//! A search for the worst load: the same table whatever the host does, and whenever it is interrupted.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::boards::{emulators, start, x86_64};
use punctual_harness::processes::{signal, wait_at_most};
use punctual_harness::{Place, count, need, until};

/// Three tries. In any course bursts of a thousand timers keep interrupts off for longer than
/// anything that packets or page tables do.
const LINE: &str = "lab search --offline --kernel debian:none --load flood,timers,tlb --budget 3 \
                    --replicates 1 -D 200ms --aim 1 --out";

/// What is the same wherever and whenever it was searched.
fn table(place: &Place, out: &str) -> [String; 3] {
    ["tries.jsonl", "search.json", "search.html"]
        .map(|name| fs::read_to_string(place.path.join(out).join(name)).unwrap())
}

fn tries(place: &Place, out: &str) -> Vec<Value> {
    let text = fs::read_to_string(place.path.join(out).join("tries.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_search_gives_the_same_table_interrupted_or_not() {
    let place = Place::of_build();
    need!(x86_64());
    place.run(&format!("{LINE} whole --jobs 2")).with(0).says(&["under timers", "latest release"]);
    let whole = table(&place, "whole");

    let mut lab = start(&place, &format!("{LINE} parts --jobs 1"));
    assert!(until(Duration::from_secs(300), || !tries(&place, "parts").is_empty()));
    signal(&lab, "INT");
    let ended = wait_at_most(&mut lab, Duration::from_secs(30), "an interrupted search");
    assert_eq!((ended.code(), emulators(&place).len()), (Some(130), 0));
    let kept = tries(&place, "parts");
    assert!((1..3).contains(&kept.len()), "{kept:?}");

    let other = place.run(&format!("{} parts", LINE.replace("200ms", "300ms"))).with(2);
    assert!(other.stderr.contains("other duration_ns"), "{}", other.stderr);
    let again = place.run(&format!("{LINE} parts --jobs 1")).with(0);
    let here = format!("{} tries are here already", kept.len());
    assert!(again.stderr.contains(&here), "{}", again.stderr);
    for (whole, parts) in whole.iter().zip(table(&place, "parts")) {
        assert!(*whole == parts, "{whole}\n\n{parts}");
    }

    let found: Value = serde_json::from_str(&whole[1]).unwrap();
    let mixes = found["mixes"].as_array().unwrap();
    assert_eq!((mixes.len(), &mixes[0]["load"]), (3, &"timers".into()));
    let scores: Vec<u64> = mixes.iter().map(|mix| count(mix, "score_ns")).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores[2] > 0, "{scores:?}");
    check_tries(&tries(&place, "parts"), &place.path.join("parts/runs"));
    check_aimed(&found);
}

/// Each try has its line, in the order of the search, and its run.
fn check_tries(tries: &[Value], runs: &Path) {
    let loads: Vec<&str> = tries.iter().map(|one| one["load"].as_str().unwrap()).collect();
    assert_eq!(loads, ["flood", "timers", "tlb"]);
    for (number, one) in (1..).zip(tries) {
        assert_eq!((count(one, "number"), count(one, "seed")), (number, 1001));
        assert!(count(one, "longest_ns") > 0 && count(one, "functions") > 300, "{one}");
        let own = &one["sizes"][one["load"].as_str().unwrap()];
        assert!(one["failed"].is_null() && own.is_object(), "{one}");
        let run = runs.join(format!("{number:04}-debian-none-1000/sections.json"));
        let sections: Value = serde_json::from_slice(&fs::read(run).unwrap()).unwrap();
        let kinds = &sections["cells"][0]["kinds"];
        assert_eq!(kinds[1]["max_ns"], one["longest_ns"], "what sections.json says of it");
    }
}

/// The aimed release is a measured one, in the course that the search knew.
fn check_aimed(found: &Value) {
    let [aimed] = &found["confirmed"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!((&aimed["kernel"], count(aimed, "seed")), (&"debian:none".into(), 1001));
    let (longest, latest) = (count(&found["mixes"][0], "score_ns"), count(aimed, "aimed_ns"));
    println!("longest {longest} ns, aimed {latest} ns");
    // A burst has begun when it can be aimed at, and what other timers do is not foreseen.
    assert!(latest * 2 > longest, "{latest} of {longest}");
}

/// What `worst` was searched for, far from what differs between courses.
#[test]
fn worst_is_worse_than_the_loads_of_the_field() {
    need!(x86_64());
    let place = Place::of_build();
    let watched = |loads: &str, out: &str| {
        let line = format!(
            "lab sections --offline -q --json --kernel debian:none,debian:full,debian:rt wakeup \
             --load {loads} --out {out}"
        );
        let runs = place.run(&line).with(0).json();
        let cells = |run: &Value| run["cells"].as_array().unwrap().clone();
        runs.as_array()
            .unwrap()
            .iter()
            .map(|run| (run["model"].clone(), cells(run)))
            .collect::<Vec<_>>()
    };
    let longest = |cell: &Value| count(&cell["kinds"][1], "max_ns");
    // A burst of its timers is in every 2 s.
    let worst = watched("worst -D 2200ms", "worst");
    let others = watched("paper,dohell,hackbench -D 300ms", "others");
    assert_eq!((worst.len(), others.len()), (3, 3));
    for ((model, worst), (_, others)) in worst.iter().zip(&others) {
        assert_eq!((worst.len(), others.len()), (1, 3));
        for other in others {
            let (worst, ns) = (longest(&worst[0]), longest(other));
            println!("{model}: worst {worst} ns, {} {ns} ns", other["load"]);
            assert!(worst >= 10 * ns, "{model}: {worst}, {} {ns}", other["load"]);
        }
    }
}
