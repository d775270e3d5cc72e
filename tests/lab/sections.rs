//! Sections of known lengths (hold/) are found by watching boards from outside, in which nothing
//! changes; and what cannot be watched is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use punctual_lab::arch::Arch;
use punctual_lab::kernel::Kernels;
use serde_json::Value;

use crate::boards::{aarch64, emulators, side_by_side, start, working, x86_64};
use crate::modules::module;
use punctual_harness::processes::{signal, wait_at_most};
use punctual_harness::schema::validate;
use punctual_harness::{
    Place, Tmpfs, count, items, need, programs, refused, root, run_json, until,
};

/// What the module holds, ns, each once in a period.
const NOMINAL_NS: [u64; 3] = [50_000, 200_000, 800_000];
const PERIOD_NS: u64 = 97_000_000;

/// Whether a length is another within 1 %.
fn is_about(ns: u64, nominal_ns: u64) -> bool {
    ns.abs_diff(nominal_ns) * 100 <= nominal_ns
}

/// The sections of one model, and what its module said.
struct Model {
    cell: Value,
    console: String,
}

impl Model {
    fn kind(&self, how: &str) -> &Value {
        let found = items(&self.cell["kinds"]).iter().find(|kind| kind["how"] == how);
        found.unwrap_or_else(|| panic!("no {how} in {}", self.cell))
    }

    fn pair(&self, how: &str, from: &str, to: &str) -> &Value {
        let pairs = items(&self.kind(how)["pairs"]);
        let found = pairs.iter().find(|pair| pair["from"] == from && pair["to"] == to);
        found.unwrap_or_else(|| panic!("no {how} from {from} to {to} in {pairs:#?}"))
    }

    /// How often each section came, at least and at most.
    fn periods(&self) -> std::ops::RangeInclusive<u64> {
        let times = count(&self.cell, "watched_ns") / PERIOD_NS;
        times..=times + 1
    }

    /// The longest of a kind and length that the module has measured itself, ns.
    fn most_ns(&self, what: &str) -> u64 {
        let line = self.console.lines().find(|line| line.contains(what));
        let line = line.unwrap_or_else(|| panic!("no {what} in {}", self.console));
        line.rsplit("most ").next().and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap()
    }

    /// All sections with interrupts off in one of the module's functions.
    fn check_off(&self, held: &str) {
        let function = format!("hold_{held} [hold]");
        let pair = self.pair("interrupts", &function, &function);
        let longest = items(&self.kind("interrupts")["longest"]);
        let all: Vec<&Value> = longest.iter().filter(|one| one["from"] == *function).collect();
        assert_eq!(all.len() as u64, count(pair, "count"), "all of them are among the longest");
        let lengths: Vec<u64> = all.iter().map(|one| count(one, "length_ns")).collect();
        assert_eq!(lengths.iter().sum::<u64>(), count(pair, "total_ns"));
        assert_eq!(lengths.iter().max(), Some(&count(pair, "max_ns")));
        for one in &all {
            assert_eq!(one["to"], *function);
            assert_eq!(one["interrupts_off_ns"], one["length_ns"]);
            let stack = items(&one["stack"]);
            let callers =
                stack.windows(2).any(|two| two[0] == "hold_all [hold]" && two[1] == *function);
            assert!(callers, "{stack:?}");
            assert_eq!(one["functions"][0][0], *function);
        }
        let mut known = 0;
        for nominal in NOMINAL_NS {
            let these: Vec<u64> =
                lengths.iter().copied().filter(|ns| is_about(*ns, nominal)).collect();
            println!("{held} {} us: {these:?}", nominal / 1_000);
            assert!(self.periods().contains(&(these.len() as u64)), "{lengths:?}");
            let most = self.most_ns(&format!("{held} {} us", nominal / 1_000));
            // The module's own reading begins later and ends earlier.
            assert!(these.iter().all(|ns| *ns + 100 > most && is_about(*ns, most)), "{most}");
            known += these.len();
        }
        assert_eq!(known, lengths.len(), "{lengths:?}");
    }
}

#[test]
fn sections_of_known_lengths_are_found_and_nothing_changes() {
    need!(x86_64());
    let place = Place::of_build();
    let module = need!(module(&place, "hold"));
    let models = ["full", "none"].map(|model| module.kernel(model));
    let folder = module.folder.display();
    let modules = format!("--modules {folder} --module hold");
    let common =
        format!("--kernel {} {modules} --append loglevel=7 wakeup -D 1s", models.join(","));
    let [watched, plain] = side_by_side(
        &place,
        [
            &format!("lab sections --json --longest 64 --out watched {common}"),
            &format!("lab run -q --no-report --jobs 1 --replicates 1 --out plain {common}"),
        ],
    );
    plain.with(0);
    let watched = watched.with(0).json();
    place.run("compare --exact watched plain").with(0);
    let page = fs::read_to_string(place.path.join("watched/sections.html")).unwrap();
    assert!(page.contains("hold_irqs_off [hold]"));

    let [full, none] = [0, 1].map(|number: usize| {
        let dir =
            place.path.join("watched").join(format!("{}-0", models[number].replace(':', "-")));
        let run = run_json(&dir);
        validate(&run);
        let known = items(&run["board"]["modules"]);
        assert_eq!((known.len(), &known[0]["name"]), (1, &"hold".into()));
        let kept = fs::read(dir.join("sections.json")).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&kept).unwrap(), watched[number]);
        let cell = watched[number]["cells"][0].clone();
        assert!(is_about(count(&cell, "watched_ns"), 1_000_000_000), "{}", cell["watched_ns"]);
        assert_eq!(cell["sampled_max_ns"], run["cells"][0]["max_ns"]);
        let executed = items(&watched[number]["coverage"]["executed"]);
        let covers =
            |name: &str| executed.iter().any(|one| one["name"] == format!("{name} [hold]"));
        assert!(
            ["hold_all", "hold_irqs_off", "hold_preempt_off", "hold_spinlock"].map(covers)
                == [true; 4]
        );
        assert!(!covers("held_get"), "nobody has asked");
        let console = fs::read(dir.join("console.log")).unwrap();
        Model { cell, console: String::from_utf8_lossy(&console).into_owned() }
    });
    for model in [&full, &none] {
        model.check_off("irqs_off");
        model.check_off("spinlock");
        let kinds = items(&model.cell["kinds"]);
        assert!(!kinds.iter().any(|kind| kind["pairs"].to_string().contains("[unnamed]")));
    }

    // Interrupts that are served meanwhile make some of these longer.
    let held = "hold_preempt_off [hold]";
    let pair = full.pair("scheduler", held, held);
    println!("preempt_off: {pair}");
    let most = full.most_ns("preempt_off 800 us");
    assert!(is_about(count(pair, "max_ns"), most), "{pair}, {most} ns by the module");
    // By powers of two, each of which has one of the module's lengths.
    let lengths = items(&pair["lengths"]);
    assert_eq!(lengths.len(), NOMINAL_NS.len(), "{pair}");
    let mut nominal = 0;
    for (length, ns) in lengths.iter().zip(NOMINAL_NS) {
        let times = length[1].as_u64().unwrap();
        assert!(full.periods().contains(&times), "{pair}");
        nominal += ns * times;
    }
    assert!(is_about(count(pair, "total_ns"), nominal), "{pair}");

    // Without preemption the module's thread is what runs until it asks for another, from where
    // the scheduler has looked last whether to switch again.
    let pair = none.pair("scheduler", "schedule", "hold_all [hold]");
    println!("none: {pair}");
    // All nine of a period, but at the edges of the cell.
    let (least, most) = (9 * none.periods().start(), 9 * none.periods().end());
    assert!((least..=most).contains(&count(pair, "count")), "{pair}");
    assert!((800_000..840_000).contains(&count(pair, "max_ns")), "{pair}");

    let run = format!("watched/{}-0", models[0].replace(':', "-"));
    let why = place.run(&format!("lab explain -q --json --worst 1 {modules} {run}")).with(0).json();
    let names: Vec<&str> = items(&why[0]["cells"][0]["samples"])
        .iter()
        .flat_map(|sample| items(&sample["functions"]))
        .filter_map(Value::as_str)
        .collect();
    assert!(names.iter().any(|name| name.starts_with("hold_")), "{names:?}");
    assert!(!names.contains(&"[unnamed]"), "{names:?}");
}

#[test]
fn what_cannot_be_watched_is_refused_before_the_boot() {
    need!(x86_64());
    let place = Place::of_build();
    let refuses = |options: &str, says: &str| {
        let line = format!("lab sections --offline -q --out r {options} -D 1s");
        place.run(&line).with(2).says(&[says]);
        assert!(!place.path.join("r").exists(), "{options}");
    };
    let other = "handoff @ idle @ 1s: only the probe wakeup can be watched";
    refuses("--kernel debian:rt handoff", other);
    refuses("--kernel debian:rt wakeup:threads=2", "its 2 threads cannot be told apart");
    refuses("--kernel debian:rt --cpus 1 --free-running wakeup", "time was not counted");

    need!(aarch64());
    let qemu = place.path.join("qemu");
    fs::write(&qemu, "#!/bin/sh\necho QEMU emulator version 7.2.22\n").unwrap();
    fs::set_permissions(&qemu, fs::Permissions::from_mode(0o755)).unwrap();
    let older = "--board aarch64 --qemu ./qemu --kernel debian:rt";
    refuses(older, "need QEMU 10, which tells what registers hold: ./qemu is QEMU 7.2.22");

    let old = "debian:5.10-rt";
    let kernels = Kernels::of_user().unwrap();
    let cached = kernels.resolve(&[old], Arch::X86_64, None, false, &mut |_| ());
    if let Err(error) = cached {
        return refused(&format!("{old}: {error}"));
    }
    // All kernels are looked at before the first one is booted.
    refuses(&format!("--kernel debian:rt,{old} wakeup"), "need Linux 5.12 or later");
}

#[test]
fn no_watched_guest_outlives_an_interrupt_or_a_full_disk() {
    need!(x86_64());
    let place = Place::of_build();
    let line = "lab sections --offline --kernel debian:rt wakeup -i 1s -D 1h --out";
    let mut child = start(&place, &format!("{line} r"));
    // Before, it is only asked for its version.
    let is_watched = || emulators(&place).iter().any(|line| line.contains("-plugin"));
    assert!(until(Duration::from_secs(20), is_watched), "{:?}", place.living());
    signal(&child, "INT");
    let limit = Duration::from_secs(2);
    assert_eq!(wait_at_most(&mut child, limit, "SIGINT").code(), Some(130));
    assert!(until(limit, || place.living().is_empty()), "{:?}", place.living());
    assert_eq!(working(&place.path.join("r")), None);
    assert!(!place.path.join("r/sections.html").exists());

    need!(root());
    need!(programs(&["mount"]));
    // Too small for what the guest starts with.
    let disk = Tmpfs::mount(&place.path.join("small"), "1m");
    place.run(&format!("{line} small/r")).with(2).says(&["small/r", "No space left on device"]);
    assert_eq!(working(&disk.path().join("r")), None);
    assert_eq!(place.living(), [""; 0]);
}
