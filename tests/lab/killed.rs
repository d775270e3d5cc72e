//! A run that is killed while a tracer of the kernel measures: `punctual restore` undoes what it left.

use std::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::boards::x86_64;
use crate::shell::{console, initramfs};
use punctual_harness::{Place, need};

/// The guest's init. A round prints all that a tracer's user may have set, before the run, after
/// its SIGKILL and after the restore. The kill comes $3 seconds after the tracer $2 is on in an
/// instance of punctual, or after the start. (At once: osnoise/cpus refuses a read with little room.)
const SCRIPT: &str = r#"#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
T=/sys/kernel/tracing
mount -t tracefs tracefs $T
state() {
    cd $T
    for file in tracing_thresh current_tracer tracing_on trace_clock trace_options \
        tracing_cpumask set_event set_event_pid events/enable osnoise/* hwlat_detector/*; do
        echo "$1:$file" $(cat $file)
    done
    for one in instances/*; do
        echo "$1:$one"
    done
    cd /
}
round() {
    echo "= round $1 $2 $3"
    state before
    /punctual run $1 -D 1h --no-warmup --no-report -q --out /run/r > /run/said 2>&1 &
    waited=0
    while test -n "$2" && ! grep -qx "$2" $T/instances/punctual-*/current_tracer 2> /dev/null; do
        waited=$((waited + 1))
        test $waited -lt 300 || break
        sleep 0.05
    done
    sleep $3
    kill -KILL $!
    wait $!
    echo "status $?"
    state left
    /punctual restore
    echo "restored $?"
    state after
    mv /run/r /run/r-$1-$2
}
cat $T/buffer_size_kb
ROUNDS
echo "= size $(cat $T/buffer_size_kb)"
echo "= end"
"#;

/// What each measures with, and the tracer of its instance.
const PROBES: [(&str, &str); 5] = [
    ("noise", "nop"),
    ("timer-irq", "nop"),
    ("noise:tracer=osnoise,threshold=6us", "osnoise"),
    ("noise:tracer=hwlat", "hwlat"),
    ("timer-irq:tracer=timerlat,threads=per-cpu,interval=500us", "timerlat"),
];

/// What a round says of a moment, line by line.
fn state<'a>(round: &'a str, when: &str) -> Vec<&'a str> {
    round.lines().filter_map(|line| line.strip_prefix(when)?.strip_prefix(':')).collect()
}

/// Each is killed as soon as it measures, and at a random moment of its first two seconds.
#[test]
fn what_a_killed_run_has_set_of_tracers_is_restored() {
    need!(x86_64());
    let place = Place::of_build();
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    let mut rounds = String::new();
    for (number, (probe, tracer)) in (0_u32..).zip(PROBES) {
        let ms = (seed / 1_000 + number * 617) % 2_000;
        rounds += &format!(
            "round {probe} {tracer} 0.2\nround {probe} '' {}.{:03}\n",
            ms / 1_000,
            ms % 1_000
        );
    }
    println!("{rounds}");
    let script = SCRIPT.replace("ROUNDS", &rounds);
    let files = initramfs(&["mount", "cat", "grep", "sleep", "mv"], &script);
    let console = console(&place, &files, Duration::from_secs(300));
    assert!(console.contains("= end\n"), "{console}");
    let rounds: Vec<&str> = console.split("= round ").skip(1).collect();
    assert_eq!(rounds.len(), 2 * PROBES.len(), "{console}");
    for (round, (probe, tracer)) in rounds.iter().zip(PROBES.iter().flat_map(|one| [one, one])) {
        assert!(round.starts_with(probe) && round.contains("status 137\n"), "{round}");
        let [before, left, after] = ["before", "left", "after"].map(|when| state(round, when));
        assert!(before.len() > 20 && before.contains(&"instances/*"), "{before:?}");
        let changed: Vec<&&str> = left.iter().filter(|line| !before.contains(line)).collect();
        println!("{}: {changed:?}", round.lines().next().unwrap());
        if round.starts_with(&format!("{probe} {tracer} ")) {
            assert!(changed.iter().any(|line| line.starts_with("instances/punctual-")), "{round}");
            // Their settings are the same for all instances.
            assert_eq!(changed.len() > 1, *tracer != "nop", "{changed:?}");
        }
        assert!(round.contains("restored 0\n"), "{round}");
        assert_eq!(after, before, "{round}");
    }
    // Nobody has set the size of the machine's own ring. Whoever uses it next has as much room as if
    // punctual had not traced: once it is used, its pages are whole ones.
    assert!(console.contains("7 (expanded: 1408)\n"), "{console}");
    let size = console.split("= size ").nth(1).unwrap().lines().next().unwrap();
    assert!(size == "7 (expanded: 1408)" || size == "1410", "{size} KiB");
}
