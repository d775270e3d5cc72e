//! Runs repeated and watched: what is found of their samples, and what cannot be explained.

use std::fs;
use std::process::Command;

use punctual_lab::arch::Arch;
use punctual_lab::kernel::Kernels;

use crate::boards::{aarch64, hog, prepared, x86_64};
use crate::modules::module;
use punctual_harness::{Place, count, end_of, need, programs, run_json};
use serde_json::Value;

const MODELS: [&str; 4] = ["none", "voluntary", "full", "rt"];

fn json(place: &Place, line: &str) -> Value {
    place.run(line).with(0).json()
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// What every explained sample must hold, whatever it is.
#[track_caller]
fn whole(sample: &Value) {
    let latency = ns(&sample["latency_ns"]);
    let legs = sample["legs"].as_array().unwrap();
    let ends: Vec<u64> = legs.iter().map(|leg| ns(&leg["end_ns"])).collect();
    assert!(ends.is_sorted(), "{ends:?}");
    assert_eq!(*ends.last().unwrap(), latency);
    let until: Vec<&str> = legs.iter().map(|leg| leg["until"].as_str().unwrap()).collect();
    assert_eq!(until, ["interrupt", "wakeup", "schedule", "switch", "user", "clock"]);
    let spans = sample["spans"].as_array().unwrap();
    assert_eq!(ns(&spans.last().unwrap()["end_ns"]), latency);
    let functions: Vec<&str> =
        sample["functions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for needed in ["hrtimer_wakeup", "try_to_wake_up", "__schedule", "[user]"] {
        assert!(functions.contains(&needed), "{needed} is not in {functions:?}");
    }
    assert!(!functions.contains(&"[unnamed]"), "{functions:?}");
}

/// The thread that was measured comes last, and all have names.
#[track_caller]
fn has_threads(sample: &Value) {
    let turns = sample["turns"].as_array().unwrap();
    let last = turns.last().unwrap();
    assert_eq!(last["end_ns"], sample["latency_ns"]);
    let thread = &last["thread"];
    assert_eq!((&thread["name"], &thread["priority"]), (&"probe-0".into(), &19.into()));
    assert!(turns.iter().all(|turn| turn["thread"]["pid"].is_u64()), "{turns:?}");
}

#[test]
fn samples_of_all_models_are_explained_on_a_busy_host() {
    need!(x86_64());
    let place = Place::of_build();
    let _hog = hog();
    let kernels = MODELS.map(|model| format!("debian:{model}")).join(",");
    place
        .run(&format!(
            "lab run --offline -q --no-report --replicates 1 --out a --kernel {kernels} wakeup --load none,hackbench -D 500ms"
        ))
        .with(0);
    for model in MODELS {
        let dir = format!("a/debian-{model}-0");
        let all = json(&place, &format!("lab explain --offline --json --worst 2 {dir}"));
        let run = run_json(&place.path.join(&dir));
        let [idle, busy] = &all[0]["cells"].as_array().unwrap()[..] else { panic!("{all}") };
        for (cell, recorded) in [idle, busy].into_iter().zip(run["cells"].as_array().unwrap()) {
            let samples = cell["samples"].as_array().unwrap();
            samples.iter().for_each(whole);
            samples.iter().for_each(has_threads);
            let latencies: Vec<u64> =
                samples.iter().map(|sample| ns(&sample["latency_ns"])).collect();
            let [typical, worst, second] = latencies[..] else { panic!("{latencies:?}") };
            assert_eq!(worst, ns(&recorded["max_ns"]));
            assert!(typical <= second && second <= worst, "{latencies:?}");
        }
        // What an idle CPU does is the path of a wake-up: the timer fires within a step of its
        // release, and nobody holds the scheduler off.
        let typical = &idle["samples"][0];
        assert_eq!(typical["idle"], true, "{model}");
        assert!(ns(&typical["legs"][0]["end_ns"]) < 1_000, "{}", typical["legs"]);
        assert_eq!(typical["turns"][0]["thread"]["pid"], 0, "{model}: the idle thread");
        let is_hackbench = |turn: &Value| turn["thread"]["name"] == "hackbench";
        let mut turns =
            busy["samples"].as_array().unwrap().iter().flat_map(|s| s["turns"].as_array().unwrap());
        assert!(turns.any(is_hackbench), "{model}: {busy}");
        assert!(ns(&typical["instructions"]) * 4 <= ns(&typical["latency_ns"]));
    }
    // What kept the thread waiting is another in each course: a system call, or an interrupt.
    let text = place
        .run("lab explain --offline --worst 1 -q -o why.html --perfetto late.json a/debian-none-0");
    print!("{}", text.stdout);
    text.with(0).says(&["hackbench @ 500ms", "the longest leg", "hackbench (pid "]);
    let trace: Value =
        serde_json::from_slice(&fs::read(place.path.join("late.json")).unwrap()).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 100);
    assert!(fs::read_to_string(place.path.join("why.html")).unwrap().contains("<svg"));
}

/// The load `worst` delays wake-ups by some 26 ms, which is more than the observer's ring holds.
#[test]
fn latencies_of_the_worst_load_are_explained() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --no-report --replicates 1 --out w --kernel debian:none";
    place.run(&format!("{line} wakeup --load worst -D 3s")).with(0);
    let all = json(&place, "lab explain --offline -q --json --worst 2 w/debian-none-0");
    let cell = &all[0]["cells"][0];
    let samples = cell["samples"].as_array().unwrap();
    assert_eq!((samples.len(), &cell["unexplained"]), (3, &Value::Null), "{all}");
    samples.iter().for_each(covers_all);
    let run = run_json(&place.path.join("w/debian-none-0"));
    let latest = ns(&samples[1]["latency_ns"]);
    println!("{latest} ns, {} spans", samples[1]["spans"].as_array().unwrap().len());
    assert_eq!(latest, ns(&run["cells"][0]["max_ns"]));
    assert!(latest > 10_000_000, "{latest}");
}

/// The legs and what ran add up to the latency.
#[track_caller]
fn covers_all(sample: &Value) {
    let latency = ns(&sample["latency_ns"]);
    for part in ["legs", "spans"] {
        assert_eq!(ns(&sample[part].as_array().unwrap().last().unwrap()["end_ns"]), latency);
    }
}

/// Interrupts off for 60 ms, by a module whose file is named; and the repeat finds it by itself,
/// from another directory too.
#[test]
fn a_hold_of_60_ms_by_a_module_s_file_is_explained() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "hold"));
    let loaded = "kernel-module/my hold.ko";
    fs::create_dir(place.path.join("kernel-module")).unwrap();
    fs::copy(module.folder.join("kernel/hold.ko"), place.path.join(loaded)).unwrap();
    let line = format!(
        "lab run --offline -q --no-report --replicates 1 --seed 3 --out h --kernel {} wakeup -D 1s",
        module.kernel("none")
    );
    let told = format!("{loaded} only=irqs_off longest_us=60000 period_ms=300");
    let words = line.split_whitespace().chain(["--module", &told]);
    end_of(place.command(&words.collect::<Vec<_>>())).with(0);
    let run = fs::read_dir(place.path.join("h")).unwrap().flatten();
    let run = run.map(|entry| entry.path()).find(|path| path.is_dir()).unwrap();
    // Seed 3 is that of the replicate with the number 2.
    assert!(run.display().to_string().ends_with("-2"), "{}", run.display());
    assert_eq!(run_json(&run)["board"]["lab"]["seed"], 3);
    let elsewhere = place.open_folder("elsewhere");
    let mut command = prepared(&place, "lab explain --offline -q --json --worst 1");
    command.arg(&run).current_dir(&elsewhere);
    let all = end_of(command).with(0).json();
    let samples = all[0]["cells"][0]["samples"].as_array().unwrap();
    samples.iter().for_each(covers_all);
    let worst = &samples[1];
    let (latency, held) = (ns(&worst["latency_ns"]), &worst["held"][0]);
    println!("{latency} ns: {held}");
    assert!((58_000_000..61_000_000).contains(&latency), "{latency}");
    assert_eq!(held["how"], "interrupts");
    for end in ["began_in", "ended_in"] {
        assert_eq!(held[end], "hold_irqs_off [hold]", "{held}");
    }
    let length = held["to_ns"].as_i64().unwrap() - held["from_ns"].as_i64().unwrap();
    assert!((59_990_000..60_100_000).contains(&length), "{held}");
}

/// A program of the user's whose file is not moved: what it executes has its names.
#[test]
fn code_of_a_program_among_the_files_has_its_names() {
    need!(x86_64());
    need!(programs(&["cc"]));
    let place = Place::of_build();
    let bin = place.open_folder("root").join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(place.path.join("burn.c"), BURN).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-static", "-no-pie", "-o"]).arg(bin.join("burn")).arg("burn.c");
    assert!(cc.current_dir(&place.path).status().unwrap().success());
    fs::copy(bin.join("burn"), bin.join("sh")).unwrap();
    let line = "lab run --offline -q --no-report --replicates 1 --out f --kernel debian:none";
    let mut command = prepared(&place, &format!("{line} wakeup -D 300ms --files root"));
    command.args(["--load", "cmd:burn"]);
    end_of(command).with(0);
    let all = json(&place, "lab explain --offline -q --json --worst 3 f/debian-none-0");
    // The latest may interrupt what collects the samples, the typical one does not.
    let samples = all[0]["cells"][0]["samples"].as_array().unwrap().iter();
    let functions: Vec<_> = samples.flat_map(|one| one["functions"].as_array().unwrap()).collect();
    assert!(functions.contains(&&"[sh] spin".into()), "{functions:?}");
}

/// What a load `cmd` finds as its shell.
const BURN: &str = "
__attribute__((noinline)) void spin(volatile unsigned long *count) { for (;;) ++*count; }
int main(void) { unsigned long count = 0; spin(&count); }
";

/// Legs begin and end in functions that are known by name: without names there is nothing to say.
#[test]
fn a_kernel_without_symbols_is_measured_and_not_explained() {
    need!(x86_64());
    let place = Place::of_build();
    let kernels = Kernels::of_user().unwrap();
    let kernel = kernels.resolve(&["debian:rt"], Arch::X86_64, None, false, &mut |_| ());
    let mut image = fs::read(&kernel.unwrap().remove(0).image).unwrap();
    // By the digits among the tokens that names are made of its tables are recognised.
    let digits: Vec<u8> = (b'0'..=b'9').flat_map(|digit| [digit, 0]).collect();
    let all: Vec<usize> = (0..image.len()).filter(|at| image[*at..].starts_with(&digits)).collect();
    assert!(!all.is_empty(), "no tokens");
    for at in all {
        image[at] = b'o';
    }
    fs::write(place.path.join("nameless"), image).unwrap();
    let line = "--offline -q --kernel nameless wakeup -D 100ms";
    place.run(&format!("lab run --no-report --out a {line}")).with(0);
    let says = ["the kernel has no kallsyms", "CONFIG_KALLSYMS=y"];
    place.run("lab explain --offline a/nameless-0").with(2).says(&says);
    place.run(&format!("lab run --legs --out b {line}")).with(2).says(&says);
    assert!(!place.path.join("b").exists());
}

#[test]
fn samples_of_arm64_kernels_are_explained() {
    need!(aarch64());
    samples_of_arm64_kernels("");
}

/// The same on a board of which no register is seen: legs of all samples, an explanation of some.
pub fn samples_of_arm64_kernels(options: &str) {
    let place = Place::of_build();
    place
        .run(&format!(
            "lab run --offline -q --no-report --legs --out a {options} --board aarch64 \
             --kernel debian:voluntary,debian:rt wakeup --load none,hackbench -D 200ms"
        ))
        .with(0);
    let mut held = Vec::new();
    for model in ["voluntary", "rt"] {
        let dir = format!("a/debian-{model}-0");
        let line = format!("lab explain --offline --json --worst 4 {options} {dir}");
        let all = json(&place, &line);
        let legs = fs::read(place.path.join(&dir).join("legs.json")).unwrap();
        let legs: Value = serde_json::from_slice(&legs).unwrap();
        let run = run_json(&place.path.join(&dir));
        let cells = all[0]["cells"].as_array().unwrap();
        for (number, cell) in cells.iter().enumerate() {
            let of_all = &legs["cells"][number]["samples"];
            assert_eq!(of_all.as_array().unwrap().len(), 200);
            let samples = cell["samples"].as_array().unwrap();
            samples.iter().for_each(whole);
            samples.iter().for_each(has_threads);
            assert_eq!(samples[1]["latency_ns"], run["cells"][number]["max_ns"]);
            for sample in samples {
                let ends: Vec<&Value> =
                    sample["legs"].as_array().unwrap().iter().map(|leg| &leg["end_ns"]).collect();
                let is_this = |one: &Value| {
                    one["ends_ns"].as_array().unwrap().iter().eq(ends.iter().copied())
                };
                assert!(of_all.as_array().unwrap().iter().any(is_this), "{model}: {ends:?}");
                held.extend(sample["held"].as_array().unwrap().iter().map(|held| {
                    // Whoever held interrupts off did so when the release came, and until then.
                    if held["how"] == "interrupts" {
                        let entered = ns(&sample["legs"][0]["end_ns"]);
                        assert!(held["from_ns"].as_i64().unwrap() < 0, "{held}");
                        assert_eq!(ns(&held["to_ns"]) + 4, entered, "{held}");
                    }
                    held.clone()
                }));
            }
        }
        // The clock of the board has a step of 16 ns.
        let samples = legs["cells"][0]["samples"].as_array().unwrap();
        let idle: Vec<u64> = samples
            .iter()
            .filter(|sample| sample["idle"] == true)
            .map(|sample| ns(&sample["ends_ns"][0]))
            .collect();
        println!("{model}: {} into an idle CPU, {:?} ns", idle.len(), idle.iter().max());
        assert!(idle.len() > 150);
        let prompt = idle.iter().filter(|ns| (150..300).contains(*ns)).count();
        assert!(prompt + 5 >= idle.len(), "{idle:?}");
        assert!(count(&legs["cells"][0]["t1"], "p50_ns") < 300);
    }
    let interrupts = held.iter().filter(|held| held["how"] == "interrupts");
    let names = interrupts.flat_map(|held| [&held["began_in"], &held["ended_in"]]);
    let names: Vec<&str> = names.map(|name| name.as_str().unwrap()).collect();
    println!("with interrupts off: {names:?}");
    assert!(!names.is_empty());
    let is_place = |name: &&str| !name.starts_with('[') && !name.starts_with("arch_local_irq");
    assert!(names.iter().all(is_place), "{names:?}");
    let line = format!("lab explain --offline --worst 1 -q {options} a/debian-voluntary-0");
    let says =
        ["the CPU was idle: ", "no call of the scheduler from ", "threads: ", "hackbench (pid "];
    place.run(&line).with(0).says(&says);
}

#[test]
fn what_cannot_be_repeated_is_not_explained() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab run --offline -q --no-report --kernel debian:rt wakeup -D 200ms";
    place.run(&format!("{line} --out a")).with(0);
    let repeats = place.path.join("repeats");
    fs::create_dir(&repeats).unwrap();
    let refused = |run: &str, says: &str| {
        let mut command = prepared(&place, &format!("lab explain --offline -q {run}"));
        command.env("TMPDIR", &repeats);
        end_of(command).with(2).says(&[says]);
        assert_eq!(fs::read_dir(&repeats).unwrap().count(), 0, "{run} left something behind");
    };
    let dir = place.path.join("a/debian-rt-0");
    let path = dir.join("run.json");
    let text = fs::read_to_string(&path).unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();
    let lab = &run["board"]["lab"];
    let with = |of: &Value, other: &str, says: &str| {
        fs::write(&path, text.replace(of.as_str().unwrap(), other)).unwrap();
        refused("a/debian-rt-0", says);
    };
    with(&lab["qemu"], "9.9.9", "it was measured on QEMU 9.9.9");
    with(&lab["kernel_sha256"], &"0".repeat(64), "is not the kernel of the run any more");
    with(&lab["punctual_sha256"], &"0".repeat(64), "another program (punctual-board ");
    with(&lab["initramfs_sha256"], &"0".repeat(64), "initramfs_sha256");
    fs::write(&path, &text).unwrap();
    refused("a/debian-rt-0 --cell nonsense", "the run has no such cell");

    // A repeat that differs: here it is the record that was changed.
    let max = &run["cells"][0]["max_ns"];
    fs::write(&path, text.replace(&format!("\"max_ns\": {max}"), "\"max_ns\": 1")).unwrap();
    refused("a/debian-rt-0", "the repeat is not identical");

    place.run(&format!("{line} --out warm --warm")).with(0);
    refused("warm/debian-rt-0", "measure again without --warm");
    place.run("run --out here wakeup -D 100ms -q");
    refused("here", "measured on a real machine");
}
