//! What a trace tells in a PID or time namespace, as every container has the first: its events have
//! the machine's numbers of threads and the machine's clock.

use punctual_harness::{
    Place, conditions, count, end_of, items, need, programs, refused, root, run_json,
};
use serde_json::Value;

const TRACING: &str = "/sys/kernel/tracing";

/// The namespaces, each as what makes it. None is the control.
const SPACES: [(&str, &[&str]); 3] = [
    ("none", &["env"]),
    ("pid", &["unshare", "--pid", "--fork", "--mount-proc"]),
    ("time", &["unshare", "--time", "--monotonic", "100000"]),
];

/// Mounts tracefs where punctual runs; `false` if this machine has none.
fn traced(place: &Place) -> bool {
    let script = format!("test -e {TRACING}/instances || mount -t tracefs tracefs {TRACING}");
    let mut enter = place.namespace().expect("a namespace").enter(&place.path);
    enter.args(["sh", "-c", &script]);
    end_of(enter).status == Some(0)
}

/// A probe of wake-ups on a CPU on which they have legs outside of namespaces; `None` if there is
/// none: kernels were seen that trace nothing of what the idle thread of one CPU does.
fn with_legs(place: &Place) -> Option<String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let has_legs = |probe: &String| {
        let line =
            format!("run {probe} -D 300ms --no-warmup --no-report -q --out {}", &probe[19..]);
        place.words(&line.split(' ').collect::<Vec<_>>()).status == Some(0)
    };
    (0..cpus).map(|cpu| format!("timer-irq:affinity={cpu}")).find(has_legs)
}

/// The record of a run of a probe in a namespace; `None` if there are none of that kind.
fn run_in(place: &Place, (name, program): (&str, &[&str]), probe: &str) -> Option<Value> {
    let mut is_there = place.namespace().expect("a namespace").enter(&place.path);
    is_there.args(program).arg("true");
    if end_of(is_there).status != Some(0) {
        refused(&format!("no {name} namespace to be had"));
        return None;
    }
    let out = format!("{}-{name}", probe.split(':').next().unwrap_or_default());
    let line = ["run", probe, "-D", "1s", "--no-warmup", "--no-report", "-q", "--out", &out];
    let ended = end_of(place.through(program, &line));
    let said = format!("{name}: {}{}", ended.stdout, ended.stderr);
    ended.with(0);
    let run = run_json(&place.path.join(&out));
    let cell = run["cells"][0].clone();
    assert!(!conditions(&cell).contains(&"no-legs"), "{said}{cell:#}");
    Some(cell)
}

fn total(cell: &Value, name: &str) -> u64 {
    let counter = items(&cell["counters"]).iter().find(|one| one["name"] == name);
    count(counter.unwrap_or_else(|| panic!("{name}: {cell:#}")), "total")
}

fn note<'a>(cell: &'a Value, id: &str) -> &'a str {
    let note = items(&cell["conditions"]).iter().find(|one| one["id"] == id);
    note.and_then(|one| one["text"].as_str()).unwrap_or_default()
}

#[test]
fn a_trace_tells_of_the_threads_of_a_namespace() {
    need!(root());
    need!(programs(&["unshare"]));
    let place = Place::apart();
    if !traced(&place) {
        return refused("no tracefs to be had");
    }
    let Some(wakeups) = with_legs(&place) else {
        return refused("this kernel traces whole wake-ups on no CPU");
    };
    for space in SPACES {
        let name = space.0;
        if let Some(cell) = run_in(&place, space, &wakeups) {
            // Beside other tests' probes on its CPU it may be awake at some releases.
            assert!(2 * total(&cell, "unmatched") < count(&cell, "samples"), "{name}: {cell:#}");
            assert!(note(&cell, "latest").contains("wakeup "), "{name}: {cell:#}");
        }
        if let Some(cell) = run_in(&place, space, "noise:threshold=100ns,threads=1") {
            // Its tick at least interrupts it.
            let said = note(&cell, "sources");
            assert!(said.contains(" of spinning, "), "{name}: {said}");
        }
        if let Some(cell) = run_in(&place, space, "cpumap:trace=on,threads=1") {
            assert_eq!(note(&cell, "sources"), "", "{name}");
        }
    }
}

#[test]
fn legs_that_cannot_be_known_are_inconclusive_and_no_reason_is_made_up() {
    need!(root());
    need!(programs(&["unshare"]));
    let place = Place::apart();
    if !traced(&place) {
        return refused("no tracefs to be had");
    }
    let (_, time) = SPACES[2];
    // The offset of the namespace reads as none.
    let hide = "mount --bind /dev/null /proc/$$/timens_offsets && exec \"$@\"";
    let hidden = [time, &["sh", "-c", hide, "sh"]].concat();
    let mut is_there = place.namespace().expect("a namespace").enter(&place.path);
    is_there.args(&hidden).arg("true");
    if end_of(is_there).status != Some(0) {
        return refused("no time namespace to be had, or nothing can be mounted in /proc");
    }
    let line = ["run", "timer-irq", "-D", "1s", "--no-warmup", "--no-report", "--out", "t"];
    let why = "the clock of the trace and that of this thread are";
    end_of(place.through(&hidden, &line)).with(3);
    let cell = run_json(&place.path.join("t"))["cells"][0].clone();
    assert_eq!(cell["verdict"]["outcome"], "INCONCLUSIVE", "{cell:#}");
    let because = items(&cell["verdict"]["because"]).iter().filter_map(Value::as_str);
    let mut because = because.filter(|said| said.contains(why));
    assert!(because.any(|said| said.ends_with("its legs are not known")), "{cell:#}");
    assert_eq!(total(&cell, "unmatched"), count(&cell, "samples"), "{cell:#}");
    let line = ["run", "noise:threads=1", "-D", "1s", "--no-warmup", "--no-report", "--out", "n"];
    end_of(place.through(&hidden, &line)).with(0);
    let cell = run_json(&place.path.join("n"))["cells"][0].clone();
    let said = note(&cell, "sources");
    assert!(said.starts_with("what had the CPU is not known: ") && said.contains(why), "{said}");
}
