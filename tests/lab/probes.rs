//! Known answers of probes: a disturbance of known size is what they measure.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::boards::{aarch64, x86_64};
use crate::modules::{Module, module};
use punctual_harness::schema::validate;
use punctual_harness::{Ended, Place, count, items, need, run_json};

pub fn counter(cell: &Value, name: &str) -> u64 {
    let counters = items(&cell["counters"]);
    count(counters.iter().find(|counter| counter["name"] == name).unwrap(), "total")
}

/// The cells of a guest.
pub fn cells(place: &Place, guest: &str) -> Vec<Value> {
    let run = run_json(&place.path.join(guest));
    validate(&run);
    items(&run["cells"]).to_vec()
}

pub fn measure(place: &Place, kernels: &str, more: &str) -> Ended {
    place.run(&format!(
        "lab run --offline -q --no-report --replicates 1 --out p --kernel {kernels} {more}"
    ))
}

/// The section is 2 ms long, and the thread that has nothing to do with it computes for 5 ms.
#[test]
fn a_mutex_without_inheritance_is_a_fail_and_one_with_it_is_bounded_by_its_section() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "inherit:hold=2ms,spin=5ms,mutex=pi inherit:hold=2ms,spin=5ms,mutex=plain";
    let more = format!("{probes} --load none,hackbench -D 500ms");
    measure(&place, "debian:none,debian:rt", &more).with(1).says(&["FAIL"]);
    place.run("show p/debian-rt-0").says(&[" inversions (the medium thread ran while ", "FAIL"]);
    for model in ["none", "rt"] {
        for cell in cells(&place, &format!("p/debian-{model}-0")) {
            let (min, max) = (count(&cell, "min_ns"), count(&cell, "max_ns"));
            let inversions = counter(&cell, "inversions");
            println!("{model}, {}: {min} to {max} ns, {inversions} inversions", cell["key"]);
            assert!(count(&cell, "samples") >= 20 && counter(&cell, "uncontended") == 0, "{cell}");
            if cell["params"]["mutex"] == "pi" {
                assert_eq!((inversions, &cell["verdict"]["outcome"]), (0, &"NONE".into()));
                assert!(min >= 2_000_000 && max <= 2_100_000, "{cell}");
            } else {
                assert_eq!(inversions, count(&cell, "samples"), "{cell}");
                assert_eq!(cell["verdict"]["outcome"], "FAIL");
                assert!(min >= 7_000_000, "{cell}");
                let notes = items(&cell["conditions"]);
                let is_named = |note: &&Value| note["id"] == "inversion";
                assert!(notes.iter().find(is_named).is_some(), "{cell}");
            }
        }
    }
}

/// The cells of a guest whose module keeps threads from the CPU.
fn beside_spin(
    place: &Place,
    module: &Module,
    spin: &str,
    more: &[&str],
    status: i32,
) -> Vec<Value> {
    let kernel = module.kernel("full");
    let folder = module.folder.to_str().unwrap();
    let line = format!("lab run --offline -q --no-report --out p --modules {folder} --kernel");
    let words = line.split_whitespace().chain([kernel.as_str(), "--module", spin]);
    let words = words.chain(more.iter().copied());
    place.words(&words.collect::<Vec<_>>()).with(status);
    cells(place, &format!("p/{}-0", kernel.replace(':', "-")))
}

/// A thread of priority 95 has the CPU for 3.0 ms every 37.3 ms: 300 packets arrive meanwhile.
#[test]
fn a_stall_is_as_long_in_packets_as_it_is_in_time() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "spin"));
    let probe = ["burst:rate=100000,queue=256", "-D", "1s"];
    let cells = beside_spin(&place, &module, "spin period_us=37300", &probe, 0);
    let [cell] = &cells[..] else { panic!() };
    let max = count(cell, "max_ns");
    let queue = &items(&cell["threads"][0]["series"])[0];
    let (longest, dropped) = (count(queue, "max"), counter(cell, "dropped"));
    println!("{max} ns, {longest} packets, {dropped} dropped");
    assert!((2_900_000..=3_150_000).contains(&max), "{cell}");
    assert!((290..=315).contains(&longest), "{cell}");
    // 26 or 27 stalls, some of them in the warm-up or while the thread sleeps.
    assert!((15 * 30..=32 * 60).contains(&dropped), "{cell}");
}

#[test]
fn a_job_that_takes_more_than_its_reservation_is_an_overrun() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "deadline:runtime=200us,work=100us deadline:runtime=200us,work=500us";
    measure(&place, "debian:rt", &format!("{probes} -D 500ms")).with(0);
    let [fits, exceeds] = &cells(&place, "p/debian-rt-0")[..] else { panic!("two cells") };
    for cell in [fits, exceeds] {
        println!("{}: {}", cell["key"], cell["counters"]);
        assert_eq!(cell["threads"][0]["policy"], "deadline");
    }
    assert_eq!((counter(fits, "overruns"), counter(fits, "late")), (0, 0));
    let response = &items(&fits["threads"][0]["series"])[0];
    assert!((100_000..=200_000).contains(&count(response, "min")), "{response}");
    // It is stopped after 200 us of every millisecond: a job takes three of them.
    assert_eq!(counter(exceeds, "overruns"), count(exceeds, "samples"), "{exceeds}");
    assert_eq!(counter(exceeds, "late"), count(exceeds, "samples"), "{exceeds}");
    let response = &items(&exceeds["threads"][0]["series"])[0];
    assert!(count(response, "min") >= 2_000_000, "{response}");
}

/// SCHED_DEADLINE comes before every real-time priority, so a thread of priority 95 that has the CPU for
/// 3.0 ms every 37.3 ms is in the latencies of the one and not of the other.
#[test]
fn a_reservation_comes_before_every_priority_and_is_refused_if_it_cannot_be_kept() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "spin"));
    let probes = [
        "wakeup:policy=deadline",
        "wakeup:priority=90",
        // Of 95 % that all reservations may take.
        "wakeup:policy=deadline,runtime=960us",
        "-D",
        "2s",
    ];
    // One of them is SKIPPED.
    let cells = beside_spin(&place, &module, "spin period_us=37300", &probes, 4);
    let [reserved, fifo, refused] = &cells[..] else { panic!("three cells") };
    let [first, second] = [reserved, fifo].map(|cell| count(cell, "max_ns"));
    println!("{first} and {second} ns; {}", refused["reason"]);
    assert_eq!(reserved["threads"][0]["policy"], "deadline");
    assert!(first < 100_000, "{reserved}");
    assert!((2_000_000..=3_150_000).contains(&second), "{fifo}");
    assert_eq!(count(reserved, "samples") + count(reserved, "missed"), 2_000);
    assert_eq!(refused["state"], "skipped");
    let why = refused["reason"].as_str().unwrap();
    assert!(why.contains("Resource busy") && why.contains("sched_rt_runtime_us"), "{why}");
}

/// A thread of priority 95 has the CPU for 50 ms every 297 ms. Three fragments last for 8.7 ms, and
/// sixty-four for 186 ms.
#[test]
fn a_stall_that_the_buffer_does_not_outlast_is_a_dropout() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "spin"));
    let spin = "spin us=50000 period_us=297000";
    let probes = ["audio", "audio:fragments=64", "-D", "2s"];
    let cells = beside_spin(&place, &module, spin, &probes, 1);
    let [three, many] = &cells[..] else { panic!("two cells") };
    for cell in [three, many] {
        let max = count(cell, "max_ns");
        let [near, far] = ["within-100us", "within-2ms"].map(|name| counter(cell, name));
        println!("{}: {max} ns, {} dropouts", cell["key"], counter(cell, "dropouts"));
        // The stall, and at most the rest of the fragment that it began in, and its computing.
        assert!((50_000_000..=56_000_000).contains(&max), "{cell}");
        let looped = count(&items(&cell["threads"][0]["series"])[0], "min");
        assert!((2_000_000..=2_900_000).contains(&looped), "80 % of 2.902 ms: {cell}");
        assert!(near <= far && far < count(cell, "samples"), "{cell}");
    }
    // Six or seven stalls in 2 s.
    assert!((5..=8).contains(&counter(three, "dropouts")), "{three}");
    assert_eq!(three["verdict"]["outcome"], "FAIL");
    assert_eq!((counter(many, "dropouts"), &many["verdict"]["outcome"]), (0, &"NONE".into()));
    assert_eq!(three["ideal"]["limit_ns"], 3 * count(&three["ideal"], "ns"));
}

/// snd-dummy plays by a timer of the kernel, and the parallel port goes nowhere.
#[test]
fn devices_of_boards_are_fed_and_pulsed() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "audio:device=hw:0 audio:device=hw:0,rate=96000 pulse:output=/dev/parport0";
    // A cell of both is SKIPPED.
    measure(&place, "debian:none,debian:rt", &format!("{probes} -D 1s")).with(4);
    for model in ["none", "rt"] {
        let cells = cells(&place, &format!("p/debian-{model}-0"));
        let [played, refused, pulsed] = &cells[..] else { panic!("three cells") };
        println!(
            "{model}: {} fragments; pulses {} ns late",
            count(played, "samples"),
            count(pulsed, "max_ns")
        );
        // 44,100 frames in fragments of 128, each written when the one before it has been played.
        assert!((342..=346).contains(&count(played, "samples")), "{played}");
        assert_eq!(
            (counter(played, "dropouts"), counter(played, "within-1ms")),
            (0, count(played, "samples"))
        );
        assert_eq!(refused["state"], "skipped");
        let reason = refused["reason"].as_str().unwrap();
        assert!(reason.contains("/dev/snd/pcmC0D0p: HW_PARAMS: ") && reason.contains("rate=48000"));
        assert_eq!(count(pulsed, "samples"), 1_000);
        assert!(count(pulsed, "max_ns") < 200_000, "{pulsed}");
    }
}

/// QEMU itself tells of each change of an output of the board's GPIO chip. Line 3 is that of the power
/// button, which has a driver here.
#[test]
fn a_gpio_line_is_high_for_each_pulse_and_low_at_the_end() {
    need!(aarch64());
    let place = Place::of_build();
    let (told, qemu) = (place.path.join("told"), place.path.join("qemu"));
    let telling = "#!/bin/sh\nexec qemu-system-aarch64 \"$@\" -trace pl061_set_output -D ./told\n";
    fs::write(&qemu, telling.replace("./told", told.to_str().unwrap())).unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    let probes = "pulse:output=/dev/gpiochip0,line=4 pulse:output=/dev/gpiochip0,line=3 \
                  pulse:output=/dev/gpiochip0,line=8";
    let board = "--board aarch64 --qemu ./qemu --device gpio --module gpio_keys";
    measure(&place, "debian:rt", &format!("{board} {probes} -D 1s --no-warmup")).with(4);
    let [pulsed, busy, absent] = &cells(&place, "p/debian-rt-0")[..] else { panic!("three cells") };
    println!("pulses {} to {} ns late", count(pulsed, "min_ns"), count(pulsed, "max_ns"));
    assert_eq!(count(pulsed, "samples"), 1_000);
    assert!(count(pulsed, "max_ns") < 200_000, "{pulsed}");
    for (cell, says) in [(busy, "line 3 is in use by \"GPIO Key Poweroff\""), (absent, "no line 8")]
    {
        assert_eq!(cell["state"], "skipped");
        let reason = cell["reason"].as_str().unwrap();
        assert!(reason.contains("/dev/gpiochip0: ") && reason.contains(says), "{reason}");
    }
    let told = fs::read_to_string(told).unwrap();
    let change = |line| str::split_once(line, " setting output ")?.1.split_once(" to ");
    let changes: Vec<(&str, &str)> = told.lines().filter_map(change).collect();
    // It begins with all of them low.
    let (reset, changes) = changes.split_at(8);
    assert!(reset.iter().all(|(_, level)| *level == "0"), "{reset:?}");
    assert_eq!(changes, [("4", "1"), ("4", "0")].repeat(1_000), "{told}");
}

/// Each of a thousand pulses is late by another step of 200 ns, from 200 us to 399.8 us. Guests keep
/// each sample of a short run with its time. The kernel's tick, every 4 ms, comes 500 us after releases.
#[test]
fn edges_are_as_late_as_they_are_made() {
    need!(x86_64());
    let place = Place::of_build();
    for guest in &pulses(&place, "500us") {
        let (least, later) = edges_of(&place, guest, 500_000);
        assert!(later.is_empty(), "{guest}: later than {least} ns and 1 us: {later:?}");
    }
}

/// The tick comes 300 us after every fourth release. Of edges that are later than they were made the
/// microscope shows that the kernel served the timer's interrupt when they were due.
#[test]
fn edges_that_meet_the_tick_are_late_and_explained() {
    need!(x86_64());
    let place = Place::of_build();
    for guest in &pulses(&place, "700us") {
        let (least, ticked) = edges_of(&place, guest, 700_000);
        assert!((1..=50).contains(&ticked.len()), "{ticked:?}");
        assert!(ticked.iter().all(|edge| edge.made_ns.abs_diff(300_000) < TICK_NS), "{ticked:?}");
        explained(&place, guest, least, &ticked);
    }
}

/// The tick takes less, ns.
const TICK_NS: u64 = 50_000;

/// Four guests with such pulses.
fn pulses(place: &Place, phase: &str) -> Vec<String> {
    let line = "lab run --offline -q --no-report --replicates 4 --out p --kernel debian:rt";
    place.run(&format!("{line} pulse:jitter=400us,phase={phase} -D 1s")).with(0);
    (0..4).map(|replicate| format!("p/debian-rt-{replicate}")).collect()
}

/// The least that edges of a guest are later than they were made, ns, and those that are later than
/// that and 1 us.
fn edges_of(place: &Place, guest: &str, phase_ns: u64) -> (u64, Vec<ExportedEdge>) {
    let [cell] = &cells(place, guest)[..] else { panic!("one cell") };
    let near = |value: u64, expected: u64| value.abs_diff(expected) <= expected / 100;
    let fall = &items(&cell["threads"][0]["series"])[0];
    for (edge, unit) in [(cell, "_ns"), (fall, "")] {
        let of = |name: &str| count(edge, &format!("{name}{unit}"));
        println!("{} to {}, p50 {}, p99 {}", of("min"), of("max"), of("p50"), of("p99"));
        assert_eq!(count(edge, "samples"), 1_000);
        assert!(near(of("min"), 200_000) && of("max") <= 399_800 + TICK_NS, "{edge}");
        assert!(near(of("p50"), 299_800) && near(of("p99"), 397_800), "{edge}");
    }
    let exported = place.run(&format!("export {guest} --worst --csv")).with(0).stdout;
    let edges: Vec<ExportedEdge> = exported.lines().skip(1).map(ExportedEdge::of).collect();
    assert!(edges.iter().all(|edge| edge.release_ns % 1_000_000 == phase_ns), "{guest}");
    let least = edges.iter().map(ExportedEdge::more_ns).min().unwrap();
    let (constant, later): (Vec<_>, Vec<_>) =
        edges.into_iter().partition(|edge| edge.more_ns() - least < 1_000);
    println!("{} edges are {least} ns later, to 1 us, {} are not", constant.len(), later.len());
    assert_eq!(constant.len() + later.len(), 1_000);
    let latencies = || constant.iter().map(|edge| edge.latency_ns);
    assert!(near(latencies().min().unwrap(), 200_000), "{guest}");
    assert!(near(latencies().max().unwrap(), 399_800), "{guest}");
    if later.is_empty() {
        assert!(near(count(cell, "max_ns"), 399_800), "{cell}");
    }
    (least, later)
}

/// The timer's interrupt is why these edges are late.
fn explained(place: &Place, guest: &str, least: u64, ticked: &[ExportedEdge]) {
    let times: Vec<String> = ticked.iter().map(|edge| format!("{}ns", edge.at_ns)).collect();
    let line = format!("lab explain --offline -q --json --at {} {guest}", times.join(","));
    let explained = place.run(&line).with(0).json();
    let samples = items(&explained[0]["cells"][0]["samples"]);
    assert_eq!(samples.len(), ticked.len());
    for sample in samples {
        let (at, latency) = (count(sample, "at_ns"), count(sample, "latency_ns"));
        let edge = ticked.iter().find(|edge| edge.at_ns == at).unwrap();
        let late = latency - edge.made_ns;
        let (ticked, others) = interrupted(sample, edge.made_ns);
        println!("{} ns late and {late} ns, of that {ticked} the timer's interrupt", edge.made_ns);
        assert!(ticked > 0, "{edge:?}: {sample}");
        // The thread itself takes as long as for each edge.
        assert!(late - ticked - others < least + 1_000, "{edge:?}: {sample}");
    }
}

/// For how long a sample did not run from an instant after its release on, ns: while the timer's
/// interrupt was served, and for the rest.
fn interrupted(sample: &Value, since: u64) -> (u64, u64) {
    let functions = items(&sample["functions"]);
    let (mut ticked, mut others, mut begin) = (0, 0, 0);
    for span in items(&sample["spans"]) {
        let end = count(span, "end_ns");
        let length = end.saturating_sub(since.max(begin));
        begin = end;
        let name = |number: &Value| &functions[usize::try_from(number.as_u64().unwrap()).unwrap()];
        let outermost = items(&span["stack"]).first().map(name);
        match outermost.and_then(Value::as_str) {
            Some("[user]") => {}
            Some("asm_sysvec_apic_timer_interrupt") => ticked += length,
            _ => others += length,
        }
    }
    (ticked, others)
}

/// A rising edge as `export --worst --csv` has it.
#[derive(Debug)]
struct ExportedEdge {
    at_ns: u64,
    /// On CLOCK_MONOTONIC.
    release_ns: u64,
    latency_ns: u64,
    /// By how much it was made late.
    made_ns: u64,
}

impl ExportedEdge {
    fn of(line: &str) -> Self {
        let mut last = line.rsplit(',').map(|number| number.parse().unwrap());
        let monotonic_ns: u64 = last.next().unwrap();
        let (at_ns, latency_ns): (u64, u64) = (last.next().unwrap(), last.next().unwrap());
        let pulse = (at_ns - latency_ns) / 1_000_000;
        let made_ns = 400_000 * (1_000 + pulse * 617 % 1_000) / 2_000;
        Self { at_ns, release_ns: monotonic_ns - latency_ns, latency_ns, made_ns }
    }

    /// By how much it was later.
    fn more_ns(&self) -> u64 {
        self.latency_ns.checked_sub(self.made_ns).unwrap()
    }
}

/// Rows of `export --intervals --csv` behind the key, which has commas: CPU, start and end in ns, and
/// the actor.
fn intervals(place: &Place, guest: &str) -> Vec<(u32, u64, u64, String)> {
    let csv = place.run(&format!("export {guest} --intervals --csv")).with(0).stdout;
    let row = |line: &str| {
        let mut fields = line.rsplitn(5, ',');
        let actor = fields.next()?.to_owned();
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (to, from, cpu) = (number()?, number()?, number()?);
        Some((u32::try_from(cpu).ok()?, from, to, actor))
    };
    csv.lines().filter_map(row).collect()
}

/// A thread of priority 95 has the CPU for 3.0 ms every 37.3 ms: the longest gap is that, and whose it
/// is is not the probe's.
#[test]
fn a_map_shows_who_had_the_cpu_for_how_long() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "spin"));
    let kernel = module.kernel("full");
    let folder = module.folder.to_str().unwrap();
    let line = format!("lab run --offline -q --no-report --out p --modules {folder} --kernel");
    let words = line.split_whitespace().chain([kernel.as_str(), "--module"]);
    let words = words.chain(["spin period_us=37300", "cpumap:policy=fifo", "-D", "5s"]);
    place.words(&words.collect::<Vec<_>>()).with(0);
    let guest = format!("p/{}-0", kernel.replace(':', "-"));
    let [cell] = &cells(&place, &guest)[..] else { panic!("one cell") };
    let (max, lost) = (count(cell, "max_ns"), counter(cell, "lost") + counter(cell, "unmapped"));
    assert!((2_850_000..=3_150_000).contains(&max), "{cell}");
    assert_eq!((&cell["threads"][0]["policy"], lost), (&"fifo".into(), 0), "{cell}");
    let map = intervals(&place, &guest);
    // 134 of them, of which those within the thread's sleep of 1 ms in 10 are no gap, or a part of one.
    let long = map.iter().filter(|(_, from, to, _)| to - from >= 2_850_000);
    let long: Vec<_> = long.filter(|(.., actor)| actor == "other").collect();
    println!("{max} ns, {} of at least 2.85 ms", long.len());
    assert!((60..=134).contains(&long.len()), "{}", long.len());
    assert!(map.iter().all(|(_, from, to, actor)| actor != "other" || to - from <= 3_150_000));
    for pair in map.windows(2) {
        assert!(pair[0].2 <= pair[1].1, "two had the CPU: {pair:?}");
    }
    // Nine tenths of the time are the thread's, less what the module has of them.
    let ran: u64 =
        map.iter().filter(|one| one.3 == "thread 0").map(|(_, from, to, _)| to - from).sum();
    assert!((3_900_000_000..=4_500_000_000).contains(&ran), "{ran}");
}

/// The same, with the kernel's trace: what had the CPU is called by its name.
#[test]
fn a_map_names_who_had_the_cpu() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "spin"));
    let probes = ["cpumap:policy=fifo,trace=on", "-D", "5s"];
    let cells = beside_spin(&place, &module, "spin period_us=37300", &probes, 0);
    let [cell] = &cells[..] else { panic!("one cell") };
    let (max, lost) = (count(cell, "max_ns"), counter(cell, "lost") + counter(cell, "unmapped"));
    assert!((2_850_000..=3_150_000).contains(&max), "{cell}");
    assert_eq!(lost, 0, "{cell}");
    let map = intervals(&place, &format!("p/{}-0", module.kernel("full").replace(':', "-")));
    let of = |name: &str| -> Vec<u64> {
        let of = map.iter().filter(|(.., actor)| actor == name);
        of.map(|(_, from, to, _)| to - from).collect()
    };
    let (spin, ticks, other) = (of("spin"), of("interrupt local_timer"), of("other"));
    let total = |of: &[u64]| of.iter().sum::<u64>();
    println!(
        "spin {} times, {} ns; ticks {}, {} ns; other {} ns, {} at most",
        spin.len(),
        total(&spin),
        ticks.len(),
        total(&ticks),
        total(&other),
        other.iter().max().unwrap()
    );
    // 134 of 3.0 ms, but for what was in the thread's sleep; the tick interrupts them.
    assert!((300_000_000..=402_000_000).contains(&total(&spin)), "{}", total(&spin));
    assert!(ticks.len() >= 1_000, "{}", ticks.len());
    // The kernel's code around its events.
    assert!(other.iter().all(|length| *length < 100_000), "{other:?}");
    for pair in map.windows(2) {
        assert!(pair[0].2 <= pair[1].1, "two had the CPU: {pair:?}");
    }
}

/// Two threads want the only CPU all the time; in what they leave of it, processes come and go in every
/// second.
#[test]
fn processes_go_on_beside_threads_that_spin_on_the_only_cpu() {
    need!(x86_64());
    let place = Place::of_build();
    let probes = "cpumap:threads=2,policy=fifo cpumap:threads=2 clock noise";
    measure(&place, "debian:full", &format!("{probes} --load process:jobs=1,threads=4 -D 3s"))
        .with(0);
    let cells = cells(&place, "p/debian-full-0");
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let load = &items(&cell["load_work"])[0];
        println!("{}: {load}", cell["key"]);
        assert!(count(&items(&load["counters"])[0], "total") >= 30, "{cell}");
        assert_eq!(count(load, "idle_seconds"), 0, "{cell}");
    }
}
