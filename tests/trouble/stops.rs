//! What comes while a thread that spins leaves its margin is in none of its samples: it is said.

use std::thread::sleep;
use std::time::Duration;

use punctual_harness::processes::{signal, wait_at_most, wait_for_probe};
use punctual_harness::{Place, count, items, need, programs, root, run_json};
use serde_json::Value;

/// How often a run is stopped, and for how long, ms.
const STOPS: u64 = 3;
const STOP_MS: u64 = 200;

/// The cell of a run that was stopped.
fn stopped(place: &Place, probe: &str) -> Value {
    let out = probe.split(':').next().unwrap_or_default();
    let line = ["run", probe, "-D", "3s", "--no-warmup", "--no-report", "-q", "--out", out];
    let mut child = place.command(&line).spawn().unwrap();
    wait_for_probe(&mut child, Duration::from_millis(300));
    for _ in 0..STOPS {
        signal(&child, "STOP");
        sleep(Duration::from_millis(STOP_MS));
        signal(&child, "CONT");
        sleep(Duration::from_millis(300));
    }
    let ended = wait_at_most(&mut child, Duration::from_secs(60), probe);
    assert_eq!(ended.code(), Some(0), "{probe}");
    run_json(&place.path.join(out))["cells"][0].clone()
}

fn total(cell: &Value, name: &str) -> u64 {
    let counter = items(&cell["counters"]).iter().find(|one| one["name"] == name);
    count(counter.unwrap_or_else(|| panic!("{name}: {cell:#}")), "total")
}

#[test]
fn a_stop_in_a_margin_is_said() {
    need!(root());
    need!(programs(&["kill"]));
    let place = Place::new();
    for probe in [
        "noise:trace=off,threads=1,margin=90%",
        "cpumap:threads=1,margin=90%",
        "clock:threads=1,margin=90%",
        "burst:threads=1,margin=90%",
    ] {
        let cell = stopped(&place, probe);
        // Nine of ten stops begin in a margin; of three none does once in a thousand runs.
        let least_us = (STOP_MS - 20) * 1_000;
        assert!(total(&cell, "overslept") >= least_us, "{probe}: {cell:#}");
        assert!(total(&cell, "unspun") > 0, "{probe}: {cell:#}");
        let note = items(&cell["conditions"]).iter().find(|one| one["id"] == "margin-overslept");
        let text = note.map(|note| note["text"].to_string());
        let text = text.unwrap_or_else(|| panic!("{probe}: {cell:#}"));
        assert!(text.contains("thread 0: its margin was overslept"), "{text}");
    }
}

#[test]
fn all_packets_that_were_due_in_a_stop_are_counted() {
    need!(root());
    need!(programs(&["kill"]));
    let place = Place::new();
    let cell = stopped(&place, "burst:threads=1,rate=100000,queue=128");
    // In a margin none are due; what is longer than it was to be is said.
    let due = STOPS * (STOP_MS - 20) * 100 - STOPS * 128;
    let overslept = total(&cell, "overslept") / 10;
    let (dropped, packets) = (total(&cell, "dropped"), total(&cell, "packets"));
    assert!(dropped + overslept >= due, "{dropped} and {overslept} of {due}: {cell:#}");
    assert!(dropped < packets, "{cell:#}");
}
