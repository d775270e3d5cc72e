//! One real second of every probe, every timer and every load that there is.

use std::time::Instant;

use punctual_harness::registry::{self, entries, name, unmet};
use punctual_harness::schema::validate;
use punctual_harness::{Ended, Place, need, programs, root};
use serde_json::Value;

use crate::leftovers::Before;

/// One second of a probe under a load.
fn second_of(place: &Place, probe: &str, load: &str, more: &[&str]) -> Ended {
    let line = ["run", probe, "-D", "1", "--load", load, "--no-warmup", "--no-report", "--json"];
    place.words(&[&line[..], more].concat())
}

/// What this machine lacks is said, and is no pass.
#[track_caller]
fn is_skipped(ended: &Ended, entry: &Value) {
    assert_eq!(ended.status, Some(4), "{}: {ended:#?}", name(entry));
    let run = ended.json();
    assert_eq!(run["cells"][0]["state"], "skipped", "{}", name(entry));
    let reason = run["cells"][0]["reason"].as_str().unwrap_or_default();
    assert!(!reason.is_empty(), "{}: no reason", name(entry));
}

#[track_caller]
fn check_counts(cell: &Value) {
    let of = |key: &str| cell[key].as_u64().unwrap();
    assert_eq!(cell["state"], "complete", "{cell}");
    assert!(of("samples") > 0, "{cell}");
    assert_eq!(of("scheduled"), of("samples") + of("missed"));
    let threads = cell["threads"].as_array().unwrap();
    let sum: u64 = threads.iter().map(|thread| thread["samples"].as_u64().unwrap()).sum();
    assert_eq!(sum, of("samples"));
    // A hundred samples are needed for the third of them.
    let quantiles = ["min_ns", "p50_ns", "p99_ns", "max_ns"].map(|key| cell[key].as_i64());
    assert!(quantiles[2].is_some() || of("samples") < 100, "{cell}");
    let known: Vec<_> = quantiles.into_iter().flatten().collect();
    assert!(known.len() >= 3 && known.is_sorted(), "{cell}");
}

/// What this machine lacks, and what is only planned, is told and costs nothing.
#[test]
fn the_full_plan_measures_what_there_is_and_tells_what_is_missing() {
    let place = Place::apart();
    let line = "run --plan full -D 200ms --load none --no-warmup --no-report --out full --json";
    let run = place.run(line);
    let (status, run) = (run.status, run.json());
    validate(&run);
    let cells = run["cells"].as_array().unwrap();
    let failed: Vec<_> = cells.iter().filter(|cell| cell["verdict"]["outcome"] == "FAIL").collect();
    // A buffer that runs dry is a FAIL, and this machine may be kept from the CPU for that long.
    assert!(failed.iter().all(|cell| cell["probe"] == "audio"), "{failed:?}");
    assert_eq!(status, Some(i32::from(!failed.is_empty())), "{run}");
    let (measured, missing): (Vec<_>, Vec<_>) =
        cells.iter().partition(|cell| cell["state"] == "complete");
    assert!(measured.len() >= 10, "{run}");
    for cell in missing {
        println!("{}: {}", cell["key"], cell["reason"]);
        assert_eq!(cell["state"], "skipped", "{cell}");
        assert!(!cell["reason"].as_str().unwrap().is_empty(), "{cell}");
    }
    place.run("report full -o full.html").with(0);
}

/// Real-time threads that spin leave a shell on their only CPU enough.
#[test]
fn a_shell_goes_on_beside_a_probe_that_spins_on_its_only_cpu() {
    need!(root());
    need!(programs(&["taskset"]));
    let place = Place::new();
    for probe in ["clock", "cpumap", "cpumap:threads=3,policy=fifo"] {
        let line = ["run", probe, "-D", "3", "--load", "cmd:true", "--no-report", "--json"];
        let ended = place.through(&["taskset", "-c", "0"], &line).output().unwrap();
        let run: Value = serde_json::from_slice(&ended.stdout).unwrap();
        let cell = &run["cells"][0];
        assert_eq!(
            (&cell["state"], &cell["threads"][0]["affinity"]),
            (&"complete".into(), &"0".into())
        );
        let runs = cell["load_work"][0]["counters"][0]["total"].as_u64().unwrap();
        println!("{probe}: {runs} shells");
        // An idle machine has hundreds, one whose CPU is taken none.
        assert!(runs >= 5, "{probe}: {cell}");
    }
}

#[test]
fn every_probe_measures_a_second_and_leaves_nothing() {
    let place = Place::apart();
    let before = Before::look(&place);
    for probe in &entries(&place, "probes") {
        let start = Instant::now();
        if unmet(probe) {
            is_skipped(&second_of(&place, name(probe), "none", &[]), probe);
            continue;
        }
        let ended = second_of(&place, name(probe), "none", &[]);
        let run = ended.json();
        // A busy machine may have dropouts.
        let failed = name(probe) == "audio" && run["verdict"]["outcome"] == "FAIL";
        ended.with(i32::from(failed));
        validate(&run);
        check_counts(&run["cells"][0]);
        assert_eq!(run["cells"][0]["probe"], name(probe));
        let simulated = name(probe) == "sim";
        assert!(simulated || start.elapsed().as_millis() >= 1_000, "{}", name(probe));
    }
    before.still(&place);
}

#[test]
fn every_timer_serves_every_release() {
    let place = Place::new();
    let help = place.run("list wakeup").with(0).stdout;
    for timer in ["nanosleep", "posix", "timerfd", "relative", "itimer"] {
        assert!(help.contains(timer), "{timer} is not in: {help}");
        let run = second_of(&place, "wakeup", "none", &["--timer", timer]).with(0).json();
        let cell = &run["cells"][0];
        check_counts(cell);
        assert_eq!(cell["params"]["timer"], timer);
        assert_eq!(cell["scheduled"], 1_000, "{timer}: every release of a second is accounted for");
    }
    place.run("list clock").with(0).says(&["monotonic", "realtime", "monotonic_raw", "tsc"]);
    for clock in ["monotonic", "realtime", "monotonic_raw"] {
        let probe = format!("clock:clock={clock}");
        check_counts(&second_of(&place, &probe, "none", &[]).with(0).json()["cells"][0]);
    }
}

/// Whether a part of a load works every few seconds, so that it may do nothing in one.
fn is_rare(part: &Value) -> bool {
    let period = part["params"]["period"].as_str().and_then(|period| period.strip_suffix('s'));
    period.is_some_and(|seconds| seconds.parse::<u64>().is_ok())
}

#[test]
fn every_load_works_for_a_second_and_leaves_nothing() {
    let place = Place::apart();
    let before = Before::look(&place);
    for load in &entries(&place, "loads") {
        let text = registry::load(name(load));
        if unmet(load) {
            is_skipped(&second_of(&place, "wakeup", &text, &[]), load);
            continue;
        }
        let run = second_of(&place, "wakeup", &text, &[]).with(0).json();
        validate(&run);
        let cell = &run["cells"][0];
        check_counts(cell);
        let work = cell["load_work"].as_array().unwrap();
        assert!(!work.is_empty(), "{text}: {cell}");
        for part in work.iter().filter(|part| part["load"] != "none") {
            assert_eq!(part["trouble"], Value::Null, "{text}: {part}");
            let counters = part["counters"].as_array().unwrap();
            let worked = counters.iter().any(|counter| counter["total"].as_u64().unwrap() > 0);
            assert!(worked || is_rare(part), "{text}: no work in {part}");
        }
        before.still(&place);
    }
}

#[test]
fn a_load_alone_reports_its_work() {
    let place = Place::apart();
    let before = Before::look(&place);
    let ended = place.run("load copy+hackbench -D 2 --json").with(0);
    let report = ended.json().to_string();
    for part in ["copy", "hackbench", "bytes"] {
        assert!(report.contains(part), "{report}");
    }
    let text = place.run("load copy -D 2").with(0).stdout;
    assert!(text.lines().count() >= 2, "a line each second: {text}");
    before.still(&place);
}
