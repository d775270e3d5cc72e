//! Real-time scheduling that is refused: for want of rights, and by a control
//! group without budget. Labelled by default, SKIPPED where it was asked for.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::boards::{removed, within};
use punctual_harness::{Ended, Place, conditions, end_of, need, programs, root};

const NOBODY: &[&str] =
    &["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"];

/// Checks a run that could not be real-time: its label, its reason, its threads.
#[track_caller]
fn labelled(run: &Value, reasons: &[&str]) {
    assert_eq!(run["privileged"], false);
    assert!(conditions(run).contains(&"unprivileged"), "{:?}", conditions(run));
    let refused = run["facts"]["engine"]["real_time_refused"].as_str().unwrap();
    for reason in reasons {
        assert!(refused.contains(reason), "\"{reason}\" is missing in: {refused}");
    }
    let thread = &run["cells"][0]["threads"][0];
    assert_eq!((&thread["policy"], &thread["priority"]), (&"other".into(), &0.into()));
    assert!(thread["samples"].as_u64().unwrap() > 0);
}

#[test]
fn a_run_without_rights_is_labelled_and_judged() {
    need!(root());
    need!(programs(&["setpriv"]));
    let place = Place::new();
    let runs = place.open_folder("runs");
    let nobody = |line: &str| -> Ended {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = place.through(NOBODY, &words);
        command.current_dir(&runs);
        end_of(command)
    };
    let short = "run wakeup -D 1 --no-warmup --no-report";
    let refused = ["Operation not permitted", "run as root", "ulimit -r"];
    for (judgement, status) in [("", 0), ("--deadline 1ns", 1), ("--deadline 10s", 3)] {
        let run = nobody(&format!("{short} --json {judgement}")).with(status).json();
        labelled(&run, &refused);
        assert_eq!(run["cells"][0]["threads"][0]["timer_slack_ns"], 1);
    }
    nobody(short).with(0).says(&["not real-time", "Operation not permitted", "run as root"]);

    // What was asked for and is refused is not replaced in silence.
    for option in ["-p 80", "--policy rr", "--policy fifo"] {
        let run = nobody(&format!("{short} --json {option}")).with(4).json();
        let cell = &run["cells"][0];
        assert_eq!((&cell["state"], &cell["samples"]), (&"skipped".into(), &0.into()), "{option}");
        let reason = cell["reason"].as_str().unwrap();
        assert!(refused.iter().all(|part| reason.contains(part)), "{reason}");
    }
    nobody(&format!("{short} --policy other")).with(0);
}

/// Of a limit that suffices for what is mapped at the start, and not for the threads, nothing
/// is used: an allocation that it refuses would end the run.
#[test]
fn no_limit_on_locked_memory_ends_a_run() {
    need!(root());
    need!(programs(&["setpriv", "prlimit"]));
    let place = Place::new();
    let runs = place.open_folder("runs");
    let line = "run wakeup -t 4 -D 100ms --no-warmup --no-report --json";
    let line: Vec<&str> = line.split_whitespace().collect();
    let mut locked = Vec::new();
    // The usual limit is 8 MiB, and more than that this machine may refuse to set.
    for quarters in 16..=32 {
        let limit = format!("--memlock={0}:{0}", quarters << 18);
        let mut command = place.through(&[&["prlimit", &limit], NOBODY].concat(), &line);
        command.current_dir(&runs);
        let run = end_of(command).with(0).json();
        assert_eq!(run["cells"][0]["threads"].as_array().unwrap().len(), 4);
        locked.push(!conditions(&run).contains(&"memory-not-locked"));
    }
    assert!(!locked[0] && locked.is_sorted(), "{locked:?}");
}

fn has_budgets(controller: &Path) -> Result<(), String> {
    let there = controller.join("cpu.rt_runtime_us").exists();
    if there { Ok(()) } else { Err("no cgroup v1 cpu controller with RT_GROUP_SCHED".to_owned()) }
}

#[test]
fn a_group_without_real_time_budget_is_named() {
    let parent = Path::new("/sys/fs/cgroup/cpu");
    need!(root());
    need!(has_budgets(parent));
    let group = parent.join(format!("punctual-test-{}", std::process::id()));
    fs::create_dir(&group).unwrap();
    let _gone = removed(&group);
    let budget = fs::read_to_string(group.join("cpu.rt_runtime_us")).unwrap();
    assert_eq!(budget.trim(), "0", "a new group has no budget");
    let place = Place::new();
    let name = group.file_name().unwrap().to_str().unwrap();
    let reasons = ["Operation not permitted", name, "RT_GROUP_SCHED", "cpu.rt_runtime_us"];

    let short = "run wakeup -D 1 --no-warmup --no-report";
    let run = within(&group, &place, &format!("{short} --json")).with(0).json();
    labelled(&run, &reasons);
    let refused = run["facts"]["engine"]["real_time_refused"].as_str().unwrap();
    assert!(!refused.contains("run as root"), "root is refused too: {refused}");
    within(&group, &place, &format!("{short} -p 80")).with(4).says(&["SKIPPED", name]);

    // With a budget the same group is real-time.
    fs::write(group.join("cpu.rt_runtime_us"), "100000").unwrap();
    let run = within(&group, &place, &format!("{short} -p 80 --json")).with(0).json();
    assert_eq!(run["cells"][0]["threads"][0]["policy"], "fifo");
    assert!(!conditions(&run).contains(&"unprivileged"));
}
