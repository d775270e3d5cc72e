//! What happens to a machine while a cell measures is told by its conditions. The machine is
//! made of files that lie over those of the kernel, in a mount namespace of the run.

use std::fs;
use std::process::Stdio;

use punctual_harness::{conditions, need, programs, root};

use crate::support::{Scratch, json, stderr};

const CPUS: &str = "cpus";

fn set(scratch: &Scratch, file: &str, text: &str) {
    let path = scratch.path(CPUS).join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{text}\n")).unwrap();
}

/// A run of 4 s on CPUs of files, with what happens after its first second.
fn conditions_after(name: &str, happens: impl Fn(&Scratch)) -> Vec<(String, String)> {
    let scratch = Scratch::new(name);
    set(&scratch, "online", "0-1");
    set(&scratch, "cpufreq/policy0/scaling_governor", "performance");
    set(&scratch, "cpufreq/policy0/affected_cpus", "0 1");
    set(&scratch, "cpu0/thermal_throttle/core_throttle_count", "7");
    let hide = "mount --bind cpus /sys/devices/system/cpu; exec \"$0\" \"$@\"";
    let line = ["run", "wakeup", "-D", "4", "--no-warmup", "--no-report", "--json", "--out", "r"];
    let mut command = scratch.through(&["unshare", "-m", "sh", "-ec", hide], &line);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    scratch.wait_for_blocks("r", 1);
    happens(&scratch);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let run = json(&output);
    let cell = &run["cells"][0];
    let texts = cell["conditions"].as_array().unwrap().iter();
    let texts = texts.map(|condition| condition["text"].as_str().unwrap().to_owned());
    conditions(cell).into_iter().map(str::to_owned).zip(texts).collect()
}

fn text<'c>(conditions: &'c [(String, String)], id: &str) -> &'c str {
    let found = conditions.iter().find(|(known, _)| known == id);
    found.map_or("", |(_, text)| text)
}

#[test]
fn a_governor_cpus_and_throttling_that_change_are_conditions_of_the_cell() {
    need!(root());
    need!(programs(&["unshare", "mount"]));
    let told = conditions_after("events", |scratch| {
        set(scratch, "online", "0");
        set(scratch, "cpufreq/policy0/scaling_governor", "powersave");
        set(scratch, "cpu0/thermal_throttle/core_throttle_count", "9");
    });
    let governor = text(&told, "governor-changed");
    assert!(governor.starts_with("policy0 changed from performance to powersave at "), "{told:?}");
    assert!(text(&told, "cpu-hotplug").starts_with("CPUs 0-1 were online, 0 from "), "{told:?}");
    assert!(text(&told, "throttled").starts_with("up to 2 times on a CPU"), "{told:?}");

    let nothing = conditions_after("no-events", |_| ());
    for id in ["governor-changed", "cpu-hotplug", "throttled"] {
        assert_eq!(text(&nothing, id), "", "{nothing:?}");
    }
}
