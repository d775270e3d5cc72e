//! CPUs that cannot be used, and an inherited mask that is overridden.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use punctual_harness::{Ended, Place, Undo, end_of, need, programs, root, until};

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// The CPUs that tests bind to are 0 and 1; fewer make no test of affinity.
fn two_cpus() -> Result<(), String> {
    match text("/sys/devices/system/cpu/online").as_bytes() {
        [b'0', b'-', ..] => Ok(()),
        _ => Err("CPUs 0 and 1 are not both online".to_owned()),
    }
}

/// A cpuset of CPU 0 alone, version 1 or 2; its processes' file.
fn cpuset_of_cpu_0() -> Result<PathBuf, String> {
    let v1 = Path::new("/sys/fs/cgroup/cpuset/cpuset.cpus");
    let v2 = Path::new("/sys/fs/cgroup/cgroup.subtree_control");
    let parent = if v1.exists() || text(v2).split(' ').any(|name| name == "cpuset") {
        v1.parent().filter(|_| v1.exists()).unwrap_or(Path::new("/sys/fs/cgroup"))
    } else {
        return Err("no cpuset controller in /sys/fs/cgroup".to_owned());
    };
    let group = parent.join(format!("punctual-test-{}", std::process::id()));
    fs::create_dir(&group).unwrap();
    fs::write(group.join("cpuset.cpus"), "0").unwrap();
    if v1.exists() {
        fs::write(group.join("cpuset.mems"), text(parent.join("cpuset.mems"))).unwrap();
    }
    Ok(group)
}

/// Runs the binary within a control group.
pub fn within(group: &Path, place: &Place, line: &str) -> Ended {
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.display());
    let words: Vec<&str> = line.split_whitespace().collect();
    end_of(place.through(&["sh", "-c", &enter], &words))
}

/// Removes a control group when its last process has gone.
pub fn removed(group: &Path) -> impl Drop {
    let group = group.to_owned();
    Undo(move || {
        assert!(until(Duration::from_secs(5), || fs::remove_dir(&group).is_ok()), "{group:?}");
    })
}

#[test]
fn cpus_outside_the_cpuset_are_refused_and_per_cpu_keeps_to_it() {
    need!(root());
    need!(two_cpus());
    let group = need!(cpuset_of_cpu_0());
    let _gone = removed(&group);
    let place = Place::new();
    for affinity in ["1", "0-1"] {
        within(&group, &place, &format!("run wakeup -D 1 -a {affinity}")).with(2).says(&[
            "CPU 1 cannot be used",
            "outside the cpuset",
            "(CPUs that can be used: 0)",
        ]);
    }
    let line = "run wakeup -t per-cpu -D 1 --no-warmup --json --no-report";
    let run = within(&group, &place, line).with(0).json();
    let threads = run["cells"][0]["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 1, "{threads:?}");
    assert_eq!((&threads[0]["cpu"], &threads[0]["affinity"]), (&0.into(), &"0".into()));
}

#[test]
fn an_explicit_affinity_overrides_the_inherited_mask() {
    need!(two_cpus());
    need!(programs(&["taskset"]));
    let place = Place::new();
    for (options, affinity) in [(&["-a", "1"][..], "1"), (&[], "0")] {
        let line = ["run", "wakeup", "-D", "1", "--no-warmup", "--json", "--no-report"];
        let line = [&line[..], options].concat();
        let run = end_of(place.through(&["taskset", "-c", "0"], &line)).with(0).json();
        assert_eq!(run["cells"][0]["threads"][0]["affinity"], affinity, "{options:?}");
    }
}

/// It moves every thread on the machine that is bound to the CPU, and whether the CPU comes
/// back is known only afterwards: not without being asked, CI or not.
#[test]
#[ignore = "takes CPU 1 of this machine offline"]
fn cpus_that_are_offline_are_refused() {
    let switch = Path::new("/sys/devices/system/cpu/cpu1/online");
    need!(root());
    need!(two_cpus());
    let place = Place::new();
    {
        let _online = Undo(|| fs::write(switch, "1").unwrap());
        fs::write(switch, "0").unwrap();
        let ended = place.run("run wakeup -D 1 -a 1").with(2);
        ended.says(&["CPU 1 cannot be used", "is offline"]);
    }
    assert_eq!(text(switch), "1");
    let mut online = Command::new("taskset");
    online.args(["-c", "1", "true"]);
    end_of(online).with(0);
}
