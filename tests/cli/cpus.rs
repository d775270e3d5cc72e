//! Which CPUs are measured, and what is said if /proc and /sys hide them. The machine is made of files
//! that lie over those of the kernel, in a mount namespace of the run.

use std::fs;

use punctual_harness::{need, programs, root};
use serde_json::Value;

use crate::support::{Scratch, json, stderr};

const RUN: [&str; 8] =
    ["run", "wakeup", "-D", "1", "--no-warmup", "--no-report", "--quiet", "--json"];

/// A run in namespaces in which the shell has done `first`, and sees no process of anyone else. The
/// shell stays their first process: what it has started is foreign to the run.
fn run(scratch: &Scratch, first: &str, taskset: &str, words: &[&str]) -> Value {
    let first = format!("{first}; taskset -c {taskset} \"$0\" \"$@\"; exit 0");
    let through = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-ec", &first];
    let output = scratch.through(&through, &[&RUN[..], words].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{first}: {}", stderr(&output));
    json(&output)
}

/// The CPUs that threads were bound to.
fn cpus(run: &Value) -> Vec<u64> {
    let threads = run["cells"][0]["threads"].as_array().unwrap().iter();
    threads.map(|thread| thread["cpu"].as_u64().unwrap_or_else(|| panic!("{thread}"))).collect()
}

fn condition(run: &Value, id: &str) -> String {
    let all = run["conditions"].as_array().unwrap().iter();
    let mut texts = all.filter(|one| one["id"] == id).map(|one| one["text"].as_str().unwrap());
    let text = texts.next().unwrap_or_default().to_owned();
    assert_eq!(texts.next(), None, "{id} twice");
    text
}

fn two_cpus() -> Result<(), String> {
    let cpus = punctual_harness::text(&fs::read("/sys/devices/system/cpu/online").unwrap());
    if cpus.starts_with("0-") { Ok(()) } else { Err("needs the CPUs 0 and 1".to_owned()) }
}

/// R-A12: isolated CPUs are outside every inherited affinity.
#[test]
fn isolated_cpus_are_measured_and_those_of_taskset_if_that_is_asked_for() {
    need!(root());
    need!(programs(&["unshare", "mount", "taskset"]));
    need!(two_cpus());
    let scratch = Scratch::new("isolated");
    let folder = scratch.path("cpus");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("online"), "0-1\n").unwrap();
    let hide = "mount --bind cpus /sys/devices/system/cpu";
    let masked = run(&scratch, hide, "0", &["-t", "per-cpu", "--out", "masked"]);
    assert_eq!(cpus(&masked), [0]);
    assert!(condition(&masked, "restricted-cpus").contains("--all-cpus"));
    let all = run(&scratch, hide, "0", &["-S", "--all-cpus", "--out", "all"]);
    assert_eq!(cpus(&all), [0, 1]);
    assert_eq!(condition(&all, "restricted-cpus"), "");
    assert_eq!(all["facts"]["engine"]["all_cpus"], true);
    for file in ["isolated", "nohz_full"] {
        fs::write(folder.join(file), "1\n").unwrap();
        let isolated = run(&scratch, hide, "0", &["-t", "per-cpu", "--out", file]);
        assert_eq!(cpus(&isolated), [0, 1], "{file}");
        assert_eq!(condition(&isolated, "restricted-cpus"), "", "{file}");
        let shown = scratch.punctual(&format!("show {file}"));
        let shown = punctual_harness::text(&shown.stdout);
        let row = shown.lines().find(|line| line.trim_start().starts_with("wakeup")).unwrap();
        assert!(row.contains(" all "), "{shown}");
        fs::remove_file(folder.join(file)).unwrap();
    }
}

#[test]
fn the_cpu_of_a_foreign_real_time_thread_is_left_out_by_name() {
    need!(root());
    need!(programs(&["unshare", "mount", "taskset", "chrt", "sleep"]));
    need!(two_cpus());
    let scratch = Scratch::new("foreign");
    // It ends with the namespace's first process, and has its policy and its CPU once it is sleep.
    let foreign = "chrt -f 40 taskset -c 1 sleep 60 & pid=$!; \
                   until grep -q sleep /proc/$pid/comm; do sleep 0.1; done";
    let without = run(&scratch, foreign, "0-1", &["-t", "per-cpu", "--out", "without"]);
    assert_eq!(cpus(&without), [0]);
    let said = condition(&without, "cpus-left-out");
    assert!(said.starts_with("CPU 1 is not measured: "), "{said}");
    assert!(said.contains("CPU 1: sleep (") && said.contains(", fifo 40)"), "{said}");
    let beside = run(&scratch, foreign, "0-1", &["-S", "--all-cpus", "--out", "beside"]);
    assert_eq!(cpus(&beside), [0, 1]);
    assert!(condition(&beside, "cpus-shared").contains("CPU 1: sleep ("));
    // What is no real-time thread keeps nobody away.
    let other = foreign.replace("chrt -f 40", "chrt -o 0");
    let usual = run(&scratch, &other, "0-1", &["-t", "per-cpu", "--out", "usual"]);
    assert_eq!(cpus(&usual), [0, 1]);
}

/// R-A13: what a container masks looked clean, and all CPUs were one.
#[test]
fn what_is_masked_is_said_and_the_cpus_are_counted_all_the_same() {
    need!(root());
    need!(programs(&["unshare", "mount", "taskset"]));
    need!(two_cpus());
    let scratch = Scratch::new("masked");
    let stat = run(&scratch, "mount --bind /dev/null /proc/stat", "0-1", &["--out", "stat"]);
    let said = condition(&stat, "unread");
    let start = "/proc/stat cannot be read: whether the machine was idle is not known";
    assert!(said.starts_with(start), "{said}");
    assert!(stat["cells"][0]["cpu_utilisation"].is_null(), "{stat}");
    let hide = "mount -t tmpfs none /sys; for file in stat loadavg cpuinfo; do mount --bind \
                /dev/null /proc/$file; done";
    let masked = run(&scratch, hide, "0-1", &["--out", "masked"]);
    assert_eq!(masked["board"]["cpus"], 2, "{masked}");
    let said = condition(&masked, "unread");
    for path in ["/proc/stat", "/proc/loadavg", "/proc/cpuinfo", "/sys/devices/system/cpu"] {
        assert!(said.contains(path), "{path}: {said}");
    }
}
