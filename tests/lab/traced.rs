//! Known answers of the probes that read the kernel's trace: a disturbance of known size is what
//! they measure, and they name it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::boards::x86_64;
use crate::modules::{Module, module, module_for_rt};
use punctual_harness::schema::validate;
use punctual_harness::{Place, count, items, need, run_json};

/// The cells of a board with a module.
fn cells(place: &Place, module: &Module, loaded: &str, more: &str) -> Vec<Value> {
    cells_of(place, (module, "full"), loaded, more)
}

fn cells_of(
    place: &Place,
    (module, model): (&Module, &str),
    loaded: &str,
    more: &str,
) -> Vec<Value> {
    let kernel = module.kernel(model);
    let folder = module.folder.display();
    let line = format!("lab run --offline -q --no-report --out p --modules {folder}");
    let words = line.split_whitespace().chain(["--kernel", &kernel, "--module", loaded]);
    place.words(&words.chain(more.split_whitespace()).collect::<Vec<_>>()).with(0);
    let run = run_json(&place.path.join(format!("p/{}-0", kernel.replace(':', "-"))));
    validate(&run);
    items(&run["cells"]).to_vec()
}

/// The largest value of a series of the only thread, ns.
fn longest(cell: &Value, series: &str) -> u64 {
    of_series(cell, series, "max")
}

fn of_series(cell: &Value, series: &str, statistic: &str) -> u64 {
    let place = items(&cell["series"]).iter().position(|one| one["name"] == series);
    let place = place.unwrap_or_else(|| panic!("{}", cell["series"]));
    let found = &items(&cell["threads"][0]["series"])[place][statistic];
    // None of the samples may have such a part.
    found.as_u64().unwrap_or(0)
}

fn note(cell: &Value, id: &str) -> String {
    let notes = items(&cell["conditions"]);
    let found = notes.iter().find(|note| note["id"] == id);
    found.unwrap_or_else(|| panic!("{cell}"))["text"].as_str().unwrap().to_owned()
}

fn total(cell: &Value, counter: &str) -> u64 {
    let all = items(&cell["counters"]);
    count(all.iter().find(|one| one["name"] == counter).unwrap(), "total")
}

/// A thread of priority 95 has the CPU for 3.0 ms every 37.3 ms, at least 100 times. Releases are
/// up to two intervals apart.
#[test]
fn a_thread_of_a_higher_priority_is_measured_and_named() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "spin"));
    let probes = "wakeup:interval=100us timer-irq:interval=100us noise -D 4s";
    let cells = cells(&place, &module, "spin period_us=37300", probes);
    for cell in &cells {
        println!("{}: {}", cell["key"], count(cell, "max_ns"));
        let max = count(cell, "max_ns");
        assert!((2_850_000..=3_150_000).contains(&max), "{}: {max}", cell["key"]);
    }
    let [_, timer, noise] = &cells[..] else { panic!("three cells") };
    let latest = note(timer, "latest");
    assert!(latest.ends_with(") had the CPU") && latest.contains("leg spin (PID "), "{latest}");
    // It takes the CPU before the switch to the probe, or after.
    let waited = longest(timer, "switch").max(longest(timer, "user"));
    assert!((2_800_000..=3_150_000).contains(&waited), "{latest}");
    assert!(of_series(timer, "interrupt", "p99") < 100_000, "{latest}");
    assert_eq!((total(timer, "lost"), total(noise, "lost")), (0, 0));
    // A board wakes no thread before it sleeps.
    assert!(total(timer, "unmatched") * 100 <= count(timer, "samples"), "{timer}");
    assert!((2_850_000..=3_150_000).contains(&longest(noise, "thread")), "{noise}");
    assert!(longest(noise, "interrupt") < 100_000 && longest(noise, "softirq") < 100_000);
    let sources = note(noise, "sources");
    let times = sources.split("spinning, spin ").nth(1).unwrap_or_else(|| panic!("{sources}"));
    let times: u64 = times.split(' ').next().unwrap().parse().unwrap();
    // Some of its 107 begin while the probe sleeps.
    assert!((85..=108).contains(&times), "{sources}");
}

#[test]
fn what_holds_off_interrupts_is_in_the_interrupt_s_leg_and_preemption_in_the_switch_s() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "hold"));
    for (only, leg, others) in [
        ("irqs_off", "interrupt", ["wakeup", "switch", "user"]),
        ("preempt_off", "switch", ["interrupt", "wakeup", "user"]),
    ] {
        let loaded = format!("hold only={only}");
        let probes = "timer-irq:interval=100us rtc-irq:rate=8192 -D 1s";
        let [timer, rtc] = &cells(&place, &module, &loaded, probes)[..] else { panic!("two") };
        let held = longest(timer, leg);
        println!("{only}: {held}, {}; {}", note(timer, "latest"), note(rtc, "latest"));
        // The longest section has 800 us; a release may come up to 200 us after its start.
        assert!((600_000..=880_000).contains(&held), "{only}: {held}");
        for other in others {
            assert!(longest(timer, other) < 200_000, "{only}: {other} {timer}");
        }
        // Its latency begins with the interrupt, so only what follows that is in it.
        assert_eq!(total(rtc, "lost") + total(rtc, "unmatched") / 100, 0, "{rtc}");
        let late = match only {
            "preempt_off" => longest(rtc, "switch"),
            _ => longest(rtc, "deviation"),
        };
        assert!((600_000..=880_000).contains(&late), "{only}: {late}");
        assert!(only == "preempt_off" || count(rtc, "max_ns") < 200_000, "{rtc}");
        fs::remove_dir_all(place.path.join("p")).unwrap();
    }
}

/// 100 storms of ten interrupts of 10 us each.
#[test]
fn interrupts_are_counted_as_such_and_by_their_number() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "storm"));
    let qemu = place.path.join("qemu");
    fs::write(&qemu, "#!/bin/sh\nexec qemu-system-x86_64 \"$@\" -device edu\n").unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    let loaded = "storm us=10 times=10 period_us=10000 fifo=1";
    let more = "--qemu ./qemu noise:priority=40 -D 1s";
    let [cell] = &cells(&place, &module, loaded, more)[..] else { panic!("one cell") };
    let sources = note(cell, "sources");
    println!("{sources}");
    let (before, after) = sources.split_once(" storm ").unwrap_or_else(|| panic!("{sources}"));
    assert!(before.rsplit("; ").next().unwrap().contains("interrupt "), "{sources}");
    let times: u64 = after.split(' ').next().unwrap().parse().unwrap();
    // The probe sleeps for a tenth of the time, perhaps in step with the storms.
    assert!((700..=1_010).contains(&times), "{sources}");
    // All of a storm is in one gap, or in several if the probe reads the clock in between.
    let longest = longest(cell, "interrupt");
    assert!((10_000..=250_000).contains(&longest), "{longest}");
}

/// Hundreds of tasks that switch all the time, and a main thread that has a tenth of the only CPU, and
/// that with them: it comes to an end, and misses nothing.
#[test]
fn a_busy_board_does_not_make_events_faster_than_they_are_read() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --no-report --out p --kernel debian:none";
    let probes = "noise timer-irq:interval=100us --load hackbench -D 500ms";
    place.run(&format!("{line} {probes}")).with(0);
    let run = run_json(&place.path.join("p/debian-none-0"));
    let [noise, timer] = items(&run["cells"]) else { panic!("two cells") };
    for cell in [noise, timer] {
        assert_eq!((&cell["state"], total(cell, "lost")), (&"complete".into(), 0), "{cell}");
    }
    assert!(note(noise, "sources").contains("interrupt local_timer "), "{noise}");
    assert!(total(timer, "unmatched") * 50 <= count(timer, "samples"), "{timer}");
}

/// The same thread, and threads of the kernel's tracers with priority 80 that it takes the CPU from.
#[test]
fn threads_of_tracers_measure_a_thread_of_a_higher_priority() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module_for_rt(&place, "spin"));
    let probes = "noise:tracer=osnoise,threshold=6us \
                  timer-irq:tracer=timerlat,threads=per-cpu,interval=100us -D 4s";
    let cells = cells_of(&place, (&module, "rt"), "spin period_us=37300", probes);
    let [noise, timer] = &cells[..] else { panic!("two cells") };
    for (cell, part) in [(noise, "thread"), (timer, "thread")] {
        let (max, of_thread) = (count(cell, "max_ns"), longest(cell, part));
        println!("{}: {max}, of that {of_thread}; {}", cell["key"], note(cell, "tracer"));
        assert!((2_850_000..=3_150_000).contains(&max), "{cell}");
        assert!((2_850_000..=max).contains(&of_thread), "{cell}");
        assert_eq!(total(cell, "lost"), 0);
        assert!(longest(cell, "interrupt") < 100_000, "{cell}");
        let conditions = items(&cell["conditions"]);
        assert!(!conditions.iter().any(|one| one["id"] == "not-idle"), "{cell}");
    }
    let sources = note(noise, "sources");
    let times = sources.split("spinning, spin ").nth(1).unwrap_or_else(|| panic!("{sources}"));
    let times: u64 = times.split(' ').next().unwrap().parse().unwrap();
    // One that something more urgent interrupts counts twice.
    assert!((85..=112).contains(&times), "{sources}");
    // Nine tenths of 4 s: the rest is the margin.
    assert!((3_500_000..=3_610_000).contains(&total(noise, "spun")), "{noise}");
    let [samples, missed] = ["samples", "missed"].map(|key| count(timer, key));
    assert!((39_990..=40_001).contains(&(samples + missed)), "{samples} + {missed}");
    assert!((2_800..=3_300).contains(&missed), "{missed}");
}

/// A reading of the clock of hwlat's loop takes so many instructions: on a board of half the speed each
/// gap is twice as long, and there is no other with interrupts off.
#[test]
fn with_interrupts_off_gaps_are_those_of_the_loop() {
    need!(x86_64());
    let place = Place::of_build();
    let longest_at = |shift: u32| {
        let qemu = place.path.join("qemu");
        let script = format!(
            "#!/bin/bash\nargs=()\nfor arg in \"$@\"; do args+=(\"${{arg/shift=?/shift={shift}}}\"); \
             done\nexec qemu-system-x86_64 \"${{args[@]}}\"\n"
        );
        fs::write(&qemu, script).unwrap();
        fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
        let line = "lab run --offline -q --no-report --out p --kernel debian:rt --qemu ./qemu";
        place.run(&format!("{line} noise:tracer=hwlat -D 2s")).with(0);
        let run = run_json(&place.path.join("p/debian-rt-0"));
        fs::remove_dir_all(place.path.join("p")).unwrap();
        let [cell] = items(&run["cells"]) else { panic!("one cell") };
        let (samples, max) = (count(cell, "samples"), count(cell, "max_ns"));
        println!("shift {shift}: {samples} of at most {max}; {}", note(cell, "sources"));
        // One in a width of 9 ms and a sleep of a jiffy or three.
        assert!((60..=200).contains(&samples), "{cell}");
        assert_eq!(longest(cell, "untraced"), max, "{cell}");
        max
    };
    let [one, half] = [6, 7].map(longest_at);
    assert!((5_000..=15_000).contains(&one), "64 ns an instruction: {one}");
    // Both are rounded down to a microsecond.
    assert!(half.abs_diff(2 * one) <= 1_000, "{one}, {half}");
}

#[test]
fn a_kernel_without_the_tracers_skips_what_asks_for_them() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "noise:tracer=osnoise noise:tracer=hwlat \
                  timer-irq:tracer=timerlat,threads=per-cpu noise -D 100ms";
    let line = "lab run --offline -q --no-report --out p --kernel debian:full";
    // The verdict of the run is that of the skipped.
    place.run(&format!("{line} {probes}")).with(4);
    let run = run_json(&place.path.join("p/debian-full-0"));
    let [skipped @ .., noise] = items(&run["cells"]) else { panic!("cells") };
    for (cell, tracer) in skipped.iter().zip(["osnoise", "hwlat", "timerlat"]) {
        let text = cell.to_string();
        assert_eq!(cell["state"], "skipped", "{text}");
        let why = format!("this kernel has no {tracer} tracer (CONFIG_{}_", tracer.to_uppercase());
        assert!(text.contains(&why), "{text}");
    }
    assert_eq!(noise["state"], "complete");
}
