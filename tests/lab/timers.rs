//! Ways to wait, on kernels that differ from this machine's.

use crate::boards::x86_64;
use punctual_harness::{Place, count, need, run_json};

/// Kernels before 6.13 leave the signal of a timer that was deleted queued. If the measurement's
/// timer took the warm-up's for its own, every release would be served an interval early. At these
/// intervals, shorter than a wake-up takes, one is pending whenever the warm-up ends.
#[test]
fn a_posix_timer_does_not_count_the_signal_of_the_one_before() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = ["9us", "11us", "13us"].map(|ns| format!("wakeup:timer=posix,interval={ns}"));
    let line = format!("{} -D 100ms --warmup 100ms", probes.join(" "));
    let lab = "lab run --offline -q --no-report --kernel debian:none --out r";
    place.run(&format!("{lab} {line}")).with(0);
    let run = run_json(&place.path.join("r/debian-none-0"));
    let release = run["kernel"]["release"].as_str().unwrap();
    let number = |at| release.split(['.', '-']).nth(at)?.parse::<u32>().ok();
    if (number(0), number(1)) >= (Some(6), Some(13)) {
        println!("Linux {release} leaves no such signal: nothing is shown here");
    }
    let cells = run["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3, "{cells:?}");
    let mut wrong = Vec::new();
    for cell in cells {
        let (interval, early) = (count(cell, "interval_ns"), count(cell, "early"));
        let min = cell["min_ns"].as_i64().unwrap();
        println!("{release}, every {interval} ns: {early} early, min {min} ns");
        if count(cell, "samples") < 1_000 || early > 0 || min <= 0 {
            wrong.push(interval);
        }
    }
    assert_eq!(wrong, [0; 0], "intervals with early samples, ns");
}

/// Its signal goes to the process, whose main thread has the signal blocked as well. What is pending
/// is of a release that was given up if the interval is as short as a wake-up takes.
#[test]
fn an_interval_timer_serves_every_release_and_none_early() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "wakeup:timer=itimer wakeup:timer=itimer,interval=9us";
    let lab = "lab run --offline -q --no-report --kernel debian:none --out r";
    place.run(&format!("{lab} {probes} -D 200ms --warmup 100ms")).with(0);
    let run = run_json(&place.path.join("r/debian-none-0"));
    let [usual, short] = &run["cells"].as_array().unwrap()[..] else { panic!("{run}") };
    for (cell, scheduled) in [(usual, 200), (short, 22_223)] {
        let (min, max) = (cell["min_ns"].as_i64().unwrap(), count(cell, "max_ns"));
        let missed = count(cell, "missed");
        println!("{}: {min} to {max} ns, {missed} missed", cell["key"]);
        assert_eq!((count(cell, "scheduled"), count(cell, "early")), (scheduled, 0), "{cell}");
        assert!(min > 0, "{cell}");
    }
    assert!(count(usual, "missed") == 0 && count(usual, "max_ns") < 200_000, "{usual}");
    assert!(count(short, "missed") > 0 && count(short, "samples") > 1_000, "{short}");
}
