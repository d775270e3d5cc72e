//! Known answers: what a test has put into a guest is what `lab explain` says of its worst sample.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use serde_json::Value;

use crate::boards::x86_64;
use crate::modules::{Module, module};
use punctual_harness::{Place, count, items, need, run_json};

/// Measures the module's kernel with this preemption model and the module with these parameters,
/// and what is explained of that of the three worst samples with the longest leg of this name: as
/// data, and its sentence. The thread of a single one may have been stopped before it set its timer.
fn worst(
    place: &Place,
    (module, loaded): (&Module, &str),
    model: &str,
    options: &str,
    leg: &str,
) -> (Value, String) {
    let kernel = module.kernel(model);
    let run = |line: &str| {
        let folder = module.folder.to_str().unwrap();
        let words = line.split_whitespace().chain(["--offline", "-q", "--modules", folder]);
        place.words(&words.chain(["--module", loaded]).collect::<Vec<_>>()).with(0)
    };
    let measured = "wakeup -i 100us -D 300ms";
    run(&format!("lab run --no-report --out {model} --kernel {kernel} {options} {measured}"));
    let dir = format!("{model}/{}-0", kernel.replace(':', "-"));
    let all = run(&format!("lab explain --json --worst 3 -o why.html {options} {dir}")).json();
    fs::remove_dir_all(place.path.join(model)).unwrap();
    let page = fs::read_to_string(place.path.join("why.html")).unwrap();
    let [_, samples @ ..] = items(&all[0]["cells"][0]["samples"]) else { panic!("{all}") };
    let named = samples.iter().zip(["worst", "2nd worst", "3rd worst"]);
    let (sample, name) = named.max_by_key(|(sample, _)| leg_ns(sample, leg)).unwrap();
    let from = page.split_once(&format!("<b>{name}</b>: ")).unwrap().1;
    let sentence = from.split_once("</p>").unwrap().0;
    println!("{name}: {sentence}");
    (sample.clone(), sentence.to_owned())
}

/// The length of a leg of a sample, ns.
fn leg_ns(sample: &Value, until: &str) -> u64 {
    let legs = items(&sample["legs"]);
    let place = legs.iter().position(|leg| leg["until"] == until).unwrap();
    let begin = place.checked_sub(1).map_or(0, |before| count(&legs[before], "end_ns"));
    count(&legs[place], "end_ns") - begin
}

/// The function that executed most of a sample itself, and for how long, ns.
fn longest_function(sample: &Value) -> (String, u64) {
    let mut own: BTreeMap<u64, u64> = BTreeMap::new();
    let mut begin = 0;
    for span in items(&sample["spans"]) {
        let end = count(span, "end_ns");
        if let Some(function) = items(&span["stack"]).last() {
            *own.entry(function.as_u64().unwrap()).or_default() += end - begin;
        }
        begin = end;
    }
    let (function, ns) = own.into_iter().max_by_key(|(_, ns)| *ns).unwrap();
    let name = &items(&sample["functions"])[usize::try_from(function).unwrap()];
    (name.as_str().unwrap().to_owned(), ns)
}

/// The probe has a priority of 80, the module's thread one of 95: it runs first for 3.0 ms, every
/// 97 ms, with preemption and interrupts on.
#[test]
fn a_thread_of_a_higher_priority_is_what_a_release_waited_for() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "spin"));
    // Two releases are at most 200 us apart.
    let (sample, sentence) = worst(&place, (&module, "spin"), "full", "", "schedule");
    let waited = leg_ns(&sample, "schedule");
    assert!((2_800_000..3_050_000).contains(&waited), "{waited}");
    println!("{} releases missed", sample["missed"]);
    assert!((27..=30).contains(&count(&sample, "missed")), "{}", sample["missed"]);
    let others: Vec<&Value> =
        items(&sample["held"]).iter().filter(|held| held["how"] == "preferred").collect();
    let [held] = others[..] else { panic!("{}", sample["held"]) };
    assert_eq!(held["ended_in"], "spin_all [spin]");
    let length = count(held, "to_ns") - count(held, "from_ns");
    assert!(length <= waited && length > 2_780_000, "{held}");
    let (function, ns) = longest_function(&sample);
    assert_eq!(function, "spin_for [spin]");
    assert!(ns <= length && ns > 2_780_000, "{ns}");
    assert!(sentence.contains(" ms in spin_for [spin] "), "{sentence}");
    assert!(sentence.contains(" while the scheduler preferred spin (pid "), "{sentence}");
    assert!(sentence.contains(", real-time 95)"), "{sentence}");
    assert!(!sentence.contains("under preempt="), "{sentence}");
    // With a priority below that of the probe it keeps nobody waiting.
    let folder = module.folder.display();
    let line = format!("lab run --offline -q --no-report --out low --modules {folder} --kernel");
    let kernel = module.kernel("full");
    let words = line.split_whitespace().chain([kernel.as_str(), "--module", "spin priority=70"]);
    let all: Vec<&str> = words.chain("wakeup -i 100us -D 300ms".split_whitespace()).collect();
    place.words(&all).with(0);
    let run = run_json(&place.path.join("low").join(format!("{}-0", kernel.replace(':', "-"))));
    assert!(count(&run["cells"][0], "max_ns") < 100_000, "{}", run["cells"][0]["max_ns"]);
}

/// An emulator whose boards have the device edu, and nothing that drives it.
const WITH_EDU: &str = r#"#!/bin/sh
exec qemu-system-x86_64 "$@" -device edu
"#;

/// One interrupt of 500 us keeps the timer's from being served; 50 of 10 us, one right after the
/// other, let it in between two of them, and then keep the CPU from the scheduler.
#[test]
fn a_storm_of_interrupts_is_what_a_release_waited_for() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "storm"));
    let qemu = place.path.join("qemu");
    fs::write(&qemu, WITH_EDU).unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    for (loaded, leg, says) in [
        ("storm us=500 times=1", "interrupt", " with interrupts off from asm_common_interrupt "),
        ("storm us=10 times=50", "schedule", " before it came to the scheduler"),
    ] {
        let (sample, sentence) = worst(&place, (&module, loaded), "full", "--qemu ./qemu", leg);
        let waited = leg_ns(&sample, leg);
        // What surrounds the handler comes on top.
        assert!((300_000..650_000).contains(&waited), "{waited}");
        let (function, ns) = longest_function(&sample);
        assert_eq!(function, "storm_handler [storm]");
        assert!((250_000..=520_000).contains(&ns), "{ns}");
        // The handler itself, or what calls it 50 times, by what took the longest stretch.
        let named = [" of a device's interrupt", " storm_handler [storm]"];
        assert!(named.iter().all(|words| sentence.contains(words)), "{sentence}");
        assert!(sentence.contains(says), "{sentence}");
    }
}

/// What a sentence says before these words, as a time, ns.
fn said_ns(sentence: &str, words: &str) -> u64 {
    let before = sentence.split_once(words).unwrap_or_else(|| panic!("{words}: {sentence}")).0;
    let mut last = before.rsplit(' ');
    let (unit, number) = (last.next().unwrap(), last.next().unwrap());
    let seconds: f64 = number.parse().unwrap();
    let seconds = match unit {
        "us" | "µs" => seconds / 1e6,
        "ms" => seconds / 1e3,
        _ => panic!("{words}: {sentence}"),
    };
    u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap()
}

/// Two culprits, one after the other: each is told with its own length, and none with the leg's.
#[test]
fn each_of_two_culprits_is_told_with_its_own_length() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "compound"));
    let around = |us: u64, least: u64| (1_000 * us - least)..=(1_000 * us + 20_000);
    // The release comes up to 100 us after the first begins, and on the way there is a tick.
    let loaded = "compound kind=softirq first_us=1500 second_us=900";
    let (sample, sentence) = worst(&place, (&module, loaded), "full", "", "schedule");
    assert!(leg_ns(&sample, "schedule") > 2_200_000, "{sample}");
    let first = said_ns(&sentence, " in compound_flood [compound] of a softirq before it came ");
    assert!(around(1_500, 220_000).contains(&first), "{sentence}");
    let second = said_ns(&sentence, " in compound_spin [compound] ");
    assert!(around(900, 10_000).contains(&second), "{sentence}");
    assert!(sentence.contains(" while the scheduler preferred fifo98 (pid "), "{sentence}");
    assert!(sentence.contains(", real-time 98)"), "{sentence}");

    let loaded = "compound kind=preempt first_us=700 second_us=400";
    let (_, sentence) = worst(&place, (&module, loaded), "full", "", "schedule");
    let first = said_ns(&sentence, " in compound_preempt_off [compound] ");
    assert!(around(700, 220_000).contains(&first), "{sentence}");
    let off = " with interrupts off from compound_irqs_off [compound] to compound_irqs_off ";
    assert!(around(400, 10_000).contains(&said_ns(&sentence, off)), "{sentence}");

    let loaded = "compound kind=timers first_us=300 second_us=200";
    let (_, sentence) = worst(&place, (&module, loaded), "full", "", "wakeup");
    let first = said_ns(&sentence, " in compound_first [compound], which another timer calls");
    assert!(around(300, 220_000).contains(&first), "{sentence}");
    let second = said_ns(&sentence, " in compound_second [compound], which another timer calls");
    assert!(around(200, 10_000).contains(&second), "{sentence}");
}
