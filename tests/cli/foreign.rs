//! What others take from a cell is told by its conditions: a foreign real-time thread on the CPU of
//! the probe, a quota of the control group.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use punctual_harness::{need, programs, root, until};
use serde_json::Value;

use crate::support::{Scratch, json, stderr};

/// A process that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A control group that goes with the test, once it is empty.
struct Gone(PathBuf);

impl Drop for Gone {
    fn drop(&mut self) {
        let removed = || fs::remove_dir(&self.0).is_ok();
        let gone = until(Duration::from_secs(20), removed);
        assert!(gone || thread::panicking(), "{} is not empty", self.0.display());
    }
}

/// The text of a condition of the only cell; empty without such.
fn said(run: &Value, id: &str) -> String {
    let conditions = run["cells"][0]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|one| one["id"] == id);
    found.map_or("", |one| one["text"].as_str().unwrap()).to_owned()
}

#[test]
fn a_foreign_thread_of_a_higher_priority_is_named() {
    need!(root());
    need!(programs(&["chrt", "taskset", "sh"]));
    let scratch = Scratch::new("rival");
    let line = "run wakeup -a 0 -p 80 -D 2 --no-warmup --no-report --json --load none";
    // A shell's loop takes some milliseconds of each second, and none of throttling.
    let mut rival = Command::new("taskset");
    rival.args(["-c", "0", "chrt", "-f", "99", "sh", "-c", "while sleep 0.02; do :; done"]);
    let rival = Ends(rival.spawn().unwrap());
    let real_time = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", rival.0.id())).unwrap_or_default();
        stat.contains("(sh) ") && stat.contains(" 99 1 ")
    };
    assert!(until(Duration::from_secs(10), real_time), "chrt did not start the loop");
    let output = scratch.punctual(line);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = said(&json(&output), "rivals");
    let named =
        format!("sh-{} (SCHED_FIFO 99) may run before the probe on CPU 0: it used ", rival.0.id());
    assert!(text.contains(&named), "{text}");
    assert!(text.contains(" of CPU in this cell"), "{text}");

    // On another CPU it is none of this probe's.
    let name = format!("sh-{} ", rival.0.id());
    let moved = Command::new("taskset").args(["-pc", "1", &rival.0.id().to_string()]).output();
    if moved.unwrap().status.success() {
        let output = scratch.punctual(line);
        assert!(!said(&json(&output), "rivals").contains(&name), "{output:?}");
    }
    drop(rival);
    let output = scratch.punctual(line);
    assert!(!said(&json(&output), "rivals").contains(&name), "{output:?}");
}

/// A control group with half a CPU, version 1 or 2, and the name of its knob.
fn group_of_half_a_cpu() -> Result<(PathBuf, &'static str), String> {
    let v1 = Path::new("/sys/fs/cgroup/cpu");
    let v2 = Path::new("/sys/fs/cgroup");
    let controllers = fs::read_to_string(v2.join("cgroup.subtree_control")).unwrap_or_default();
    let (parent, knob, quota) = if v1.join("cpu.cfs_quota_us").exists() {
        (v1, "cpu.cfs_quota_us", "50000")
    } else if controllers.split_whitespace().any(|name| name == "cpu") {
        (v2, "cpu.max", "50000 100000")
    } else {
        return Err("no cpu controller in /sys/fs/cgroup".to_owned());
    };
    let group = parent.join(format!("punctual-test-quota-{}", std::process::id()));
    let failed = |error: std::io::Error| format!("{}: {error}", group.display());
    fs::create_dir(&group).map_err(failed)?;
    fs::write(group.join(knob), quota).map_err(failed)?;
    Ok((group, knob))
}

#[test]
fn a_quota_that_takes_from_the_load_is_named() {
    need!(root());
    let (group, knob) = need!(group_of_half_a_cpu());
    let gone = Gone(group.clone());
    // Otherwise a group of version 1 has no real-time budget, and the probe itself would stop.
    let budget = group.join("cpu.rt_runtime_us");
    if budget.exists() {
        fs::write(&budget, "100000").unwrap();
    }
    let scratch = Scratch::new("quota");
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.display());
    let line = ["run", "wakeup", "-D", "3", "--no-warmup", "--no-report", "--json"];
    let line = [&line[..], &["--load", "cmd:while :; do :; done"]].concat();
    let output = scratch.through(&["sh", "-c", &enter], &line).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = json(&output);
    let name = group.file_name().unwrap().to_str().unwrap();
    let text = said(&run, "group-limits");
    let expected = format!("{knob} of /{name} allows 50 % of a CPU: the load was throttled ");
    assert!(text.starts_with(&expected), "{text}");
    let limits = run["facts"]["scheduler"]["group_limits"].as_array().unwrap();
    let is = |one: &&Value| one["knob"] == knob && one["group"] == format!("/{name}");
    let limit = limits.iter().find(is).unwrap_or_else(|| panic!("{limits:?}"));
    assert_eq!(limit["value"], "50000 100000");
    drop(gone);

    let output = scratch.through(&[], &line).output().unwrap();
    assert!(!said(&json(&output), "group-limits").contains(knob), "{output:?}");
}
