//! A break value while the kernel's trace is on: marked, stopped, saved, and as it was found.

use std::fs;
use std::path::Path;

use punctual_harness::{
    Ended, Place, cell_file, conditions, end_of, need, refused, root, run_json,
};

const TRACING: &str = "/sys/kernel/tracing";

/// A trace instance of the test's own, where punctual finds the machine's trace: whoever else
/// traces here is not disturbed.
struct Instance<'p> {
    place: &'p Place,
    path: String,
}

impl<'p> Instance<'p> {
    /// One that records switches between tasks; `Err` says why this machine has none.
    fn new(place: &'p Place) -> Result<Self, String> {
        let path = format!("{TRACING}/instances/punctual-test-{}", std::process::id());
        let made = shell(
            place,
            &format!(
                "test -e {TRACING}/instances || mount -t tracefs tracefs {TRACING} || exit
                 mkdir {path} && mount --bind {path} {TRACING} &&
                 echo 1 > {TRACING}/events/sched/sched_switch/enable"
            ),
        );
        match made.status {
            Some(0) => Ok(Self { place, path }),
            _ => Err(format!("no tracefs to be had: {}", made.stderr.trim())),
        }
    }

    fn set(&self, name: &str, text: &str) {
        shell(self.place, &format!("echo {text} > {TRACING}/{name}")).with(0);
    }

    /// All that a user may have set.
    fn settings(&self) -> String {
        let files = "tracing_on current_tracer set_event events/enable buffer_size_kb trace_clock \
                     trace_options tracing_cpumask set_event_pid";
        shell(self.place, &format!("cd {TRACING} && head -n 99 {files}")).with(0).stdout
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        let gone = shell(self.place, &format!("umount {TRACING} && rmdir {}", self.path));
        if !std::thread::panicking() {
            gone.with(0);
        }
    }
}

/// Runs a script where punctual runs.
fn shell(place: &Place, script: &str) -> Ended {
    let mut enter = place.namespace().expect("a namespace").enter(&place.path);
    enter.args(["sh", "-c", script]);
    end_of(enter)
}

/// A run that the first latency ends.
fn broken(place: &Place, out: &str) -> serde_json::Value {
    let line = format!("run wakeup -b 1ns -D 1m --no-warmup --no-report --out {out}");
    place.run(&line).with(5).says(&["BREAK"]);
    run_json(&place.path.join(out))
}

#[test]
fn a_break_marks_stops_and_saves_the_kernels_trace() {
    need!(root());
    let place = Place::apart();
    let instance = match Instance::new(&place) {
        Ok(instance) => instance,
        Err(reason) => return refused(&reason),
    };
    let found = instance.settings();
    assert!(found.contains("sched:sched_switch"), "{found}");
    let run = broken(&place, "r");
    assert!(conditions(&run["cells"][0]).contains(&"trace-saved"), "{:?}", run["cells"]);
    assert_eq!(instance.settings(), found, "as before the run");
    assert_eq!(shell(&place, &format!("cat {TRACING}/tracing_on")).stdout, "1\n");

    let trace = fs::read_to_string(cell_file(&place.path.join("r"), "trace.txt")).unwrap();
    let max = run["cells"][0]["threads"][0]["max_ns"].as_i64().unwrap();
    let mark = format!("punctual: thread 0: latency {max} ns is above the break value");
    let marks: Vec<&str> = trace.lines().filter(|line| line.contains("punctual: ")).collect();
    assert!(matches!(marks[..], [line] if line.ends_with(&mark)), "{mark}: {marks:?}");
    // What led there: the thread was waiting, and was given the CPU.
    let thread = marks[0].split_whitespace().next().unwrap();
    let pid = thread.rsplit_once('-').unwrap().1;
    let (before, after) = trace.split_once(marks[0]).unwrap();
    assert!(before.starts_with("# tracer: nop"), "{before}");
    assert!(before.contains(&format!("next_pid={pid} ")), "{trace}");
    // Nothing of what followed: the thread that was late has not yet given up its CPU.
    assert!(!after.contains(&format!("prev_pid={pid} ")), "{after}");
}

#[test]
fn a_trace_that_is_stopped_stays_stopped() {
    need!(root());
    let place = Place::apart();
    let instance = match Instance::new(&place) {
        Ok(instance) => instance,
        Err(reason) => return refused(&reason),
    };
    instance.set("tracing_on", "0");
    let (found, trace) = (instance.settings(), format!("cat {TRACING}/trace"));
    let before = shell(&place, &trace).stdout;
    let run = broken(&place, "r");
    assert!(!conditions(&run["cells"][0]).contains(&"trace-saved"), "{:?}", run["cells"]);
    assert!(!Path::new(&cell_file(&place.path.join("r"), "trace.txt")).exists());
    assert_eq!(instance.settings(), found);
    assert_eq!(shell(&place, &trace).stdout, before);
}
