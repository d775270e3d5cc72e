//! One judge: whatever shows a record or ends by its verdict comes to the same, from its samples and
//! by its plan. What is written beside them, by an older version or by hand, has no say.

use std::fs;
use std::path::Path;

use punctual_harness::edit;
use serde_json::{Value, json};

use crate::support::{Scratch, json as parsed, stderr, stdout};

/// What becomes of a record before it is read, and its name.
type Fate = (&'static str, fn(&Path));

const WHOLE: Fate = ("", |_| ());
const INTERRUPTED: Fate = ("-interrupted", interrupt);
const KILLED: Fate = ("-killed", kill);

const LATE: &str = "sim -D 40s --deadline 1us";
const IN_TIME: &str = "sim -D 40s --deadline 5ms";

/// Runs of all kinds of verdicts.
const KINDS: [(&str, &str, Fate); 9] = [
    ("late", LATE, WHOLE),
    ("late", LATE, INTERRUPTED),
    ("late", LATE, KILLED),
    ("in-time", IN_TIME, WHOLE),
    ("in-time", IN_TIME, INTERRUPTED),
    ("in-time", IN_TIME, KILLED),
    ("soft", "sim:stall=3ms,stall-every=20000 -D 300 --deadline 500us --allow 60/min", WHOLE),
    ("short", "sim sim:stall=3ms -D 5s --deadline 5ms", WHOLE),
    ("measured", "sim -D 5s", WHOLE),
];

/// As a signal leaves it.
fn interrupt(run: &Path) {
    edit(run, |run| {
        run["state"] = json!("interrupted");
        for cell in list(run, "cells") {
            cell["state"] = json!("interrupted");
            cell["reason"] = json!("ended by a signal");
        }
    });
}

/// As SIGKILL leaves it: no cell has ended, and the last record is torn.
fn kill(run: &Path) {
    edit(run, |run| {
        run["state"] = json!("running");
        list(run, "cells").iter_mut().for_each(|cell| cell["state"] = json!("running"));
    });
    for cell in fs::read_dir(run.join("cells")).unwrap() {
        let cell = cell.unwrap().path();
        fs::remove_file(cell.join("histograms")).unwrap();
        let blocks = fs::read(cell.join("blocks")).unwrap();
        fs::write(cell.join("blocks"), &blocks[..blocks.len() - 3]).unwrap();
    }
}

/// A change of a record, and its name.
type Edit = (&'static str, fn(&mut Value));

const EDITS: [Edit; 11] = [
    ("nothing", |_| ()),
    ("PASS", |run| stored(run, "PASS")),
    ("FAIL", |run| stored(run, "FAIL")),
    ("latest", |run| last_thread(run)["max_ns"] = json!(10_000_000_000_i64)),
    ("early", |run| {
        for cell in list(run, "cells") {
            cell["max_ns"] = json!(1);
            list(cell, "threads").iter_mut().for_each(|thread| thread["max_ns"] = json!(1));
        }
    }),
    ("none-late", |run| {
        for cell in list(run, "cells") {
            for thread in list(cell, "threads") {
                thread["verdict"]["exceedances"] = json!(0);
            }
        }
    }),
    ("deadline", |run| {
        if run["plan"]["deadline_ns"].is_u64() {
            run["plan"]["deadline_ns"] = json!(15_000);
        }
    }),
    ("unjudged", |run| {
        stored(run, "NONE");
        run["judged"] = json!(false);
    }),
    ("skipped", |run| list(run, "cells")[0]["state"] = json!("skipped")),
    ("number", |run| {
        for cell in list(run, "cells") {
            for thread in list(cell, "threads") {
                thread["verdict"]["exceedances"] = json!(7);
            }
        }
    }),
    ("no-episodes", |run| {
        for cell in list(run, "cells") {
            cell["episodes"] = json!(null);
            list(cell, "threads").iter_mut().for_each(|thread| thread["episodes"] = json!(null));
        }
    }),
];

fn list<'a>(value: &'a mut Value, name: &str) -> &'a mut Vec<Value> {
    value[name].as_array_mut().unwrap()
}

fn last_thread(run: &mut Value) -> &mut Value {
    list(list(run, "cells").last_mut().unwrap(), "threads").last_mut().unwrap()
}

/// The outcome wherever a record has one.
fn stored(run: &mut Value, outcome: &str) {
    run["verdict"]["outcome"] = json!(outcome);
    for cell in list(run, "cells") {
        cell["verdict"]["outcome"] = json!(outcome);
        for thread in list(cell, "threads") {
            thread["verdict"]["outcome"] = json!(outcome);
        }
    }
}

fn status(outcome: &str) -> i32 {
    match outcome {
        "NONE" | "PASS" => 0,
        "FAIL" => 1,
        "INCONCLUSIVE" => 3,
        other => panic!("{other}"),
    }
}

/// The latest sample of a record.
fn max(run: &Value) -> i64 {
    let cells = run["cells"].as_array().unwrap().iter();
    let threads = cells.flat_map(|cell| cell["threads"].as_array().unwrap());
    threads.filter_map(|thread| thread["max_ns"].as_i64()).max().unwrap()
}

#[test]
fn whatever_reads_a_record_judges_it_by_its_samples() {
    let scratch = Scratch::new("one-judge");
    let mut failed = 0;
    for (name, line, (suffix, fate)) in KINDS {
        let kind = format!("{name}{suffix}");
        let kind = kind.as_str();
        for run in ["a", "b"] {
            scratch.punctual(&format!("run {line} --no-report --out {kind}/{run}"));
            fate(&scratch.path(kind).join(run));
        }
        let file = |run: &str| scratch.path(kind).join(run).join("run.json");
        let records = ["a", "b"].map(|run| fs::read_to_string(file(run)).unwrap());
        for (name, edit) in EDITS {
            for (run, text) in ["a", "b"].into_iter().zip(&records) {
                let mut record: Value = serde_json::from_str(text).unwrap();
                edit(&mut record);
                fs::write(file(run), record.to_string()).unwrap();
            }
            failed += u32::from(agree(&scratch, kind, name) == "FAIL");
        }
    }
    assert!((30..70).contains(&failed), "{failed}");
}

/// What is printed is a number that the recordings can hold.
#[test]
fn late_ones_are_counted_again_if_the_record_cannot_be_right() {
    let scratch = Scratch::new("counted-again");
    scratch.punctual(&format!("run {LATE} --no-report --out r"));
    let number = |change: fn(&mut Value)| {
        edit(&scratch.path("r"), change);
        parsed(&scratch.punctual("show r --json"))["verdict"]["exceedances"].as_u64().unwrap()
    };
    assert_eq!(number(|_| ()), 40_000);
    let seven = |run: &mut Value| last_thread(run)["verdict"]["exceedances"] = json!(7);
    assert_eq!(number(seven), 40_000);
    // Half of the latencies from 10 to 20 us, but for the width of a bin.
    let half = number(|run| run["plan"]["deadline_ns"] = json!(15_000));
    assert!((20_000..21_000).contains(&half), "{half}");
    assert_eq!(number(|run| run["plan"]["deadline_ns"] = json!(20_000)), 0);
}

/// Checks all that reads the runs `a` and `b` of a kind, and returns the outcome of the first.
fn agree(scratch: &Scratch, kind: &str, edit: &str) -> String {
    let at = |command: &str| format!("{kind}, {edit}: {command}");
    let shown = scratch.punctual(&format!("show {kind}/a --json"));
    let run = parsed(&shown);
    let (max, deadline) = (max(&run), run["plan"]["deadline_ns"].as_i64());
    let outcome = run["verdict"]["outcome"].as_str().unwrap().to_owned();
    let late = deadline.is_some_and(|deadline| max > deadline);
    // What a verdict is.
    match (outcome.as_str(), deadline) {
        ("NONE", None) => (),
        ("FAIL", Some(_)) => assert!(late, "{}", at("show")),
        ("PASS" | "INCONCLUSIVE", Some(_)) => {
            assert!(!late || run["plan"]["tolerate_episodes"].is_string(), "{}", at("show"));
        }
        _ => panic!("{}: {outcome} with {deadline:?}", at("show")),
    }
    assert_eq!(run["verdict"]["deadline_ns"].as_i64(), deadline, "{}", at("show"));
    let number = run["verdict"]["exceedances"].as_u64().unwrap();
    assert_eq!(number > 0, late, "{}: {number}", at("show"));
    let ends = |line: &str| {
        let ended = scratch.punctual(line);
        assert_eq!(ended.status.code(), Some(status(&outcome)), "{}: {}", at(line), stderr(&ended));
        stdout(&ended)
    };
    ends(&format!("show {kind}/a --json"));
    let said = ends(&format!("show {kind}/a"));
    if let Some(deadline) = deadline {
        assert!(said.contains(&format!("{outcome} (SIMULATED)")), "{}: {said}", at("show"));
        // Wherever the lines end.
        let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let in_time = line.contains("<= deadline") || line.contains("never later than");
        assert_eq!(line.contains("> deadline"), late, "{}: {said}", at("show"));
        assert_eq!(in_time, !late, "{}: {said}", at("show"));
        // The recorded deadline is no other than that of the record.
        let again = ends(&format!("show {kind}/a --deadline {deadline}ns"));
        assert_eq!(again, said, "{}", at("show --deadline"));
        let pooled = scratch.punctual(&format!("pool {kind} --json"));
        let verdict = &parsed(&pooled)["verdict"];
        let of_all = verdict["outcome"].as_str().unwrap();
        assert_eq!(pooled.status.code(), Some(status(of_all)), "{}", at("pool"));
        assert_eq!(of_all, outcome, "{}: {verdict}", at("pool"));
    }
    let listed = parsed(&scratch.punctual(&format!("list runs {kind} --json")));
    let listed = &listed["runs"][0];
    let called = if deadline.is_some() { &*outcome } else { "MEASURED" };
    assert_eq!(listed["outcome"], outcome, "{}", at("list runs"));
    assert_eq!(listed["max_ns"].as_i64(), Some(max), "{}", at("list runs"));
    let compared = parsed(&scratch.punctual(&format!("compare {kind}/a {kind}/b --json")));
    assert_eq!(compared["runs"][0]["outcome"], outcome, "{}", at("compare"));
    let _ = fs::remove_file(scratch.path("page.html"));
    let reported = scratch.punctual(&format!("report {kind}/a -o page.html"));
    assert_eq!(reported.status.code(), Some(0), "{}", at("report"));
    let page = fs::read_to_string(scratch.path("page.html")).unwrap();
    assert!(page.contains(&format!("<strong>{called}</strong>")), "{}", at("report"));
    outcome
}
