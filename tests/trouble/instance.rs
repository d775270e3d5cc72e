//! Probes that read the kernel's trace do so in an instance of their own: nobody else's tracing
//! is disturbed, and the instance goes however a run ends.

use std::os::unix::process::ExitStatusExt;
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use punctual_harness::{Ended, Place, end_of, need, refused, root, run_json};

const TRACING: &str = "/sys/kernel/tracing";

/// All tests see the instances of all: those that count them come one after the other.
static COUNTED: Mutex<()> = Mutex::new(());

/// Runs a script where punctual runs.
fn shell(place: &Place, script: &str) -> Ended {
    let mut enter = place.namespace().expect("a namespace").enter(&place.path);
    enter.args(["sh", "-c", script]);
    end_of(enter)
}

/// Mounts tracefs where punctual runs, with an instance of somebody else in use; `false` if this
/// machine has none.
fn traced(place: &Place, others: &str) -> bool {
    let script = format!(
        "test -e {TRACING}/instances || mount -t tracefs tracefs {TRACING} || exit
         mkdir {TRACING}/instances/{others} && cd {TRACING}/instances/{others} &&
         echo 1 > events/sched/sched_switch/enable"
    );
    shell(place, &script).status == Some(0)
}

/// The instances of punctual processes.
fn instances(place: &Place) -> Vec<String> {
    let list = shell(place, &format!("ls {TRACING}/instances"));
    let is_of_process = |name: &&str| {
        let number = name.strip_prefix("punctual-").and_then(|name| name.split('-').next());
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    list.stdout.lines().filter(is_of_process).map(str::to_owned).collect()
}

/// A moment within the first second of a run, other in each test, round and probe.
fn moment(round: u32) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_micros();
    Duration::from_millis(u64::from((now + 617_000 * round) % 1_000_000 / 1_000))
}

/// All that somebody may have set in an instance.
fn settings(place: &Place, instance: &str) -> String {
    let files = "tracing_on current_tracer set_event events/sched/sched_switch/filter \
                 trace_clock trace_options tracing_cpumask set_event_pid";
    shell(place, &format!("cd {instance} && head -n 99 {files}")).with(0).stdout
}

#[test]
fn an_instance_goes_however_a_run_ends_and_no_other_is_touched() {
    need!(root());
    let _turn = COUNTED.lock();
    let place = Place::apart();
    let others = format!("test-{}", std::process::id());
    if !traced(&place, &others) {
        return refused("no tracefs to be had");
    }
    // Those of other tests that run now.
    let foreign = instances(&place);
    let all = [TRACING.to_owned(), format!("{TRACING}/instances/{others}")];
    let found = all.clone().map(|instance| settings(&place, &instance));
    let is = |place: &Place| {
        let now = instances(place);
        now.into_iter().filter(|one| !foreign.contains(one)).collect::<Vec<_>>()
    };
    for (probe, signal) in
        [("timer-irq", None), ("noise", None), ("timer-irq", Some("INT")), ("noise", Some("KILL"))]
    {
        let duration = if signal.is_some() { "1m" } else { "500ms" };
        let out = format!("{probe}-{}", signal.unwrap_or("end"));
        let line =
            ["run", probe, "-D", duration, "--no-warmup", "--no-report", "-q", "--out", &out];
        let mut run = place.command(&line).spawn().unwrap();
        let own = format!("punctual-{}-0", run.id());
        let started = Instant::now();
        while run.try_wait().unwrap().is_none()
            && !(signal.is_some() && instances(&place).contains(&own))
        {
            assert!(started.elapsed() < Duration::from_secs(60), "{probe} {signal:?}");
            sleep(Duration::from_millis(20));
        }
        if let Some(signal) = signal {
            assert!(instances(&place).contains(&own), "{probe}");
            shell(&place, &format!("kill -{signal} {}", run.id())).with(0);
        }
        let status = run.wait().unwrap();
        if signal == Some("KILL") {
            assert_eq!(status.signal(), Some(9));
            assert_eq!(is(&place), std::slice::from_ref(&own), "nobody is left to remove it");
            place.run("restore").with(0).says(&["remove the trace instance", &own]);
        }
        assert_eq!(is(&place), Vec::<String>::new(), "{probe} {signal:?}");
        if signal.is_none() {
            let cell = &run_json(&place.path.join(&out))["cells"][0];
            assert_eq!(cell["state"], "complete", "{cell}");
            // Whatever this machine does meanwhile, it says where its legs and sources come from.
            let ids = ["traced", "sources"];
            let notes = cell["conditions"].as_array().unwrap();
            assert!(notes.iter().any(|note| ids.iter().any(|id| note["id"] == *id)), "{cell}");
        }
    }
    assert_eq!(all.map(|instance| settings(&place, &instance)), found);
    shell(&place, &format!("rmdir {TRACING}/instances/{others}")).with(0);
}

/// Before, while and after a run makes its instance and turns on what it traces.
#[test]
fn an_instance_goes_at_whatever_moment_its_run_is_killed() {
    need!(root());
    let _turn = COUNTED.lock();
    let place = Place::apart();
    let others = format!("test-killed-{}", std::process::id());
    if !traced(&place, &others) {
        return refused("no tracefs to be had");
    }
    let all = [TRACING.to_owned(), format!("{TRACING}/instances/{others}")];
    let found = all.clone().map(|instance| settings(&place, &instance));
    let mut left = 0;
    for round in 0..12 {
        let probe = ["noise", "timer-irq", "cpumap:trace=on"][round as usize % 3];
        let out = format!("r{round}");
        let line = ["run", probe, "-D", "1m", "--no-warmup", "--no-report", "-q", "--out", &out];
        let mut run = place.command(&line).spawn().unwrap();
        // Some measure for sure.
        let at = moment(round) + Duration::from_secs(if round < 3 { 2 } else { 0 });
        sleep(at);
        shell(&place, &format!("kill -KILL {}", run.id())).with(0);
        assert_eq!(run.wait().unwrap().signal(), Some(9), "{probe} at {at:?}");
        let own = format!("punctual-{}-0", run.id());
        let is_left = instances(&place).contains(&own);
        println!("{probe} killed at {at:?}: {}", if is_left { &own } else { "no instance" });
        left += u32::from(is_left);
        place.run("restore").with(0);
        assert!(!instances(&place).contains(&own), "{probe} at {at:?}");
    }
    assert!(left >= 3, "{left} instances were left to be removed");
    assert_eq!(all.map(|instance| settings(&place, &instance)), found);
    shell(&place, &format!("rmdir {TRACING}/instances/{others}")).with(0);
}

#[test]
fn without_a_trace_what_needs_it_is_skipped_and_what_can_do_without_measures() {
    need!(root());
    let place = Place::apart();
    let hidden = shell(&place, &format!("mount -t tmpfs none {TRACING}"));
    if hidden.status != Some(0) {
        return refused("nothing can be mounted");
    }
    shell(&place, "mount -t tmpfs none /sys/kernel/debug");
    place.run("run timer-irq noise -D 300ms --no-warmup --no-report --out absent").with(4).says(&[
        "SKIPPED",
        "mount -t tracefs",
        "what had the CPU is not known: no tracefs",
    ]);
    let run = run_json(&place.path.join("absent"));
    assert_eq!(run["cells"][0]["state"], "skipped", "{run}");
    assert_eq!(run["cells"][1]["state"], "complete", "{run}");
}
