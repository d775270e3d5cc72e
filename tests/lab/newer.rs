//! Boards of QEMU 10, which starts several x86 CPUs with counted time, and tells an observer what
//! registers hold. Where it cannot be had these tests are skipped, under `CI` too: everything else
//! runs with Debian 12's own QEMU.

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use crate::boards::{aarch64, hog, side_by_side, x86_64};
use crate::exact::same_twice;
use crate::explain::samples_of_arm64_kernels;
use punctual_harness::schema::validate;
use punctual_harness::{Place, conditions, count, items, need, refused, run_json, sources};

/// How tests/newer-qemu ends where there is no newer QEMU; any other failure is one of its own.
const NOT_TO_BE_HAD: i32 = 3;

/// The newer QEMU of this name.
fn qemu(name: &str) -> Result<PathBuf, &'static str> {
    static FOLDER: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        let script = sources().join("tests/newer-qemu");
        let ended = Command::new(&script).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.signal().is_none(), "{}: {}: {said}", script.display(), ended.status);
        match ended.status.code() {
            Some(0) => Ok(PathBuf::from(String::from_utf8(ended.stdout).unwrap().trim())),
            Some(NOT_TO_BE_HAD) => Err(said),
            _ => panic!("{}: {said}", script.display()),
        }
    });
    FOLDER.as_ref().map(|folder| folder.join(name)).map_err(String::as_str)
}

/// Ends a test where there is no newer QEMU.
macro_rules! newer {
    ($name:expr) => {
        match qemu($name) {
            Ok(program) => program.display().to_string(),
            Err(reason) => return refused(reason.trim()),
        }
    };
}

/// Checks that a run says on which QEMU and CPU it was measured.
#[track_caller]
fn is_of_newer(run: &Value) {
    validate(run);
    let lab = &run["board"]["lab"];
    let major = lab["qemu"].as_str().and_then(|version| version.split('.').next());
    assert!(major.is_some_and(|major| major.parse::<u32>().unwrap() >= 10), "{lab}");
    let options: Vec<&str> =
        lab["options"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let cpu = options.iter().position(|option| *option == "-cpu").unwrap();
    // All of them are known to it.
    assert_eq!(options[cpu + 1], "max,-erms,-fsrm,-fzrm,-fsrs,-fsrc");
}

#[test]
fn one_cpu_repeats_on_a_newer_qemu_too() {
    need!(x86_64());
    let program = newer!("qemu-system-x86_64");
    let place = Place::of_build();
    let _hog = hog();
    let line = format!("--qemu {program} --kernel debian:rt wakeup --load hackbench -D 500ms");
    same_twice(&place, &line, ["a", "b"]);
    let run = run_json(&place.path.join("a/debian-rt-0"));
    is_of_newer(&run);
    assert_eq!(run["board"]["turn_wait_ns"], Value::Null);
    assert_eq!(run["board"]["lab"]["not_exact"].as_array().unwrap().len(), 0);

    let explained = place
        .run(&format!("lab explain --offline --json --worst 1 --qemu {program} a/debian-rt-0"))
        .with(0)
        .json();
    let turns = explained[0]["cells"][0]["samples"][0]["turns"].as_array().unwrap();
    assert_eq!(turns.last().unwrap()["thread"]["name"], "probe-0", "{turns:?}");
}

#[test]
fn several_x86_cpus_are_measured_and_their_turns_excuse_what_is_late() {
    need!(x86_64());
    let program = newer!("qemu-system-x86_64");
    let place = Place::of_build();
    let line = format!(
        "lab check -q --offline --qemu {program} --cpus 2 --kernel debian:rt --replicates 1 \
         --out r wakeup -t per-cpu --load hackbench -D 500ms --max 500us"
    );
    let says = "the 2 CPUs of this board take turns and one waits up to";
    place.run(&line).with(125).says(&["cannot be judged: debian:rt", says]);

    let run = run_json(&place.path.join("r/debian-rt-0"));
    is_of_newer(&run);
    assert_eq!(run["facts"]["clock"]["source"], "tsc");
    let cell = &run["cells"][0];
    assert_eq!((&cell["state"], &run["board"]["cpus"]), (&"complete".into(), &2.into()));
    let threads = cell["threads"].as_array().unwrap();
    let measured = threads.iter().map(|thread| (&thread["cpu"], &thread["scheduled"]));
    assert_eq!(
        measured.collect::<Vec<_>>(),
        [(&0.into(), &500.into()), (&1.into(), &500.into())],
        "{cell}"
    );
    // Not so long as the kernel's longest path, and not so short as an interrupt.
    let wait_ns = run["board"]["turn_wait_ns"].as_u64().unwrap();
    assert!((500_000..=20_000_000).contains(&wait_ns), "{wait_ns} ns");
    assert!(conditions(&run).contains(&"counted-instructions"));
    assert_eq!(run["board"]["lab"]["not_exact"].as_array().unwrap().len(), 1);
    assert_eq!(run["verdict"]["outcome"], "INCONCLUSIVE");
}

/// Each of three threads computes for 20 ms on two CPUs. CPUs of a board take turns, for up to a few
/// milliseconds.
#[test]
fn the_higher_of_three_threads_run_at_once_on_two_cpus_unless_they_may_not_move() {
    need!(x86_64());
    let qemu = newer!("qemu-system-x86_64");
    let place = Place::of_build();
    let probe = "migrate:work=20ms,interval=50ms";
    let line = format!(
        "lab run --offline -q --no-report --out m --qemu {qemu} --cpus 2 --kernel debian:rt {probe} \
         {probe},push=forbidden --load none,hackbench -D 1s"
    );
    place.run(&line).with(0);
    let run = run_json(&place.path.join("m/debian-rt-0"));
    validate(&run);
    let cells = run["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let overtaken = cell["counters"][0]["total"].as_u64().unwrap();
        let threads = cell["threads"].as_array().unwrap();
        let spans: Vec<_> =
            threads.iter().map(|t| (count(t, "min_ns"), count(t, "max_ns"))).collect();
        println!("{}: {spans:?} ns, {overtaken} overtaken", cell["key"]);
        let priorities: Vec<_> = threads.iter().map(|t| count(t, "priority")).collect();
        assert_eq!((priorities, count(&cell["helpers"][0], "priority")), (vec![80, 79], 78));
        if cell["params"]["push"] == "forbidden" {
            // The second waits for the first, although the lowest has the other CPU.
            assert!(
                spans[1].0 >= 20_000_000 && overtaken >= count(&threads[1], "samples"),
                "{cell}"
            );
        } else {
            assert!(spans.iter().all(|(_, max)| *max < 10_000_000), "{cell}");
        }
    }
}

/// A load reaches a CPU without load balancing if it is asked to, and keeps all CPUs busy.
#[test]
fn loads_run_where_they_are_placed_on_isolated_cpus_too() {
    need!(x86_64());
    let qemu = newer!("qemu-system-x86_64");
    let place = Place::of_build();
    let (alone, everywhere) =
        ("syscalls,hackbench,paper", "syscalls:cpus=all,hackbench:cpus=all,paper:cpus=all");
    let line = format!(
        "lab run --offline -q --no-report --out m --qemu {qemu} --cpus 2 --append isolcpus=1 \
         --kernel debian:full wakeup:affinity=0 --load none,{alone},{everywhere},syscalls:cpus=1 \
         -D 1s"
    );
    place.run(&line).with(0);
    let run = run_json(&place.path.join("m/debian-full-0"));
    validate(&run);
    let cells = run["cells"].as_array().unwrap();
    let busy: Vec<_> = cells.iter().map(|cell| cell["cpu_utilisation"].as_f64().unwrap()).collect();
    println!("busy: {busy:?}");
    assert!(busy[0] < 0.1, "idle");
    // The init of the board, and so what it starts, is kept from the second CPU.
    assert!(busy[1..4].iter().all(|busy| (0.4..0.6).contains(busy)));
    assert!(busy[4] >= 0.95 && busy[6] >= 0.95, "the papers' 100 % busy");
    // Two groups are idle while the tasks of a round end and are created anew.
    assert!(busy[5] > 0.75);
    // The other CPU has the probe and what starts the load.
    assert!((0.4..0.75).contains(&busy[7]));
    assert_eq!(cells[4]["load_work"][0]["params"]["cpus"], "0-1");
    assert_eq!(cells[7]["load_work"][0]["params"]["cpus"], "1");
    // What strains the machine is that of the load: hackbench is made of wakeups.
    let switches = |n: usize| cells[n]["strain"]["switches_per_second"].as_f64().unwrap();
    let waiting = |n: usize| cells[n]["strain"]["pressure"]["cpu"].as_f64();
    println!("switches/s {:?}, CPU pressure {:?}", [0, 1, 2].map(switches), [0, 1, 2].map(waiting));
    assert!(switches(2) > 2.0 * switches(1) && switches(1) >= switches(0));
}

/// R-A12: the set-up of nearly every real-time user. Isolated CPUs are measured, and loads keep off.
#[test]
fn isolated_cpus_are_measured_and_no_load_runs_there() {
    need!(x86_64());
    let qemu = newer!("qemu-system-x86_64");
    let place = Place::of_build();
    let line = format!(
        "lab run --offline -q --no-report --out m --qemu {qemu} --cpus 4 \
         --append isolcpus=2-3 --kernel debian:full wakeup:threads=per-cpu \
         --load none,syscalls -D 1s"
    );
    place.run(&line).with(0);
    let run = run_json(&place.path.join("m/debian-full-0"));
    validate(&run);
    assert_eq!(run["facts"]["cpu"]["isolated"], "2-3");
    for cell in items(&run["cells"]) {
        let cpus: Vec<_> =
            items(&cell["threads"]).iter().map(|thread| thread["cpu"].as_u64().unwrap()).collect();
        assert_eq!(cpus, [0, 1, 2, 3], "{cell}");
    }
    let busy = run["cells"][1]["cpu_utilisation"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&busy), "two of four CPUs have the load: {busy}");
}

/// Registers are read only where sections are followed: samples are explained as with an older QEMU.
#[test]
fn samples_of_arm64_kernels_are_explained_on_a_newer_qemu_too() {
    need!(aarch64());
    let program = newer!("qemu-system-aarch64");
    samples_of_arm64_kernels(&format!("--qemu {program}"));
}

fn ns(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

/// Whether sections of a cell have one with interrupts off between these functions, and as long: to a
/// power of two of instructions.
fn has(cell: &Value, held: &Value) -> bool {
    let (from, to) = (&held["began_in"], &held["ended_in"]);
    let length = (ns(&held["to_ns"]) - ns(&held["from_ns"])).unsigned_abs();
    let power = 4 << (length / 4).ilog2();
    let is_it = |pair: &&Value| {
        let mut lengths = items(&pair["lengths"]).iter().map(|length| &length[0]);
        let is_long = count(pair, "max_ns") >= length && lengths.any(|ns| *ns == power);
        &pair["from"] == from && &pair["to"] == to && is_long
    };
    println!("{length} ns with interrupts off, from {from} to {to}");
    items(&cell["kinds"][0]["pairs"]).iter().any(|pair| is_it(&pair))
}

/// What held samples up is deduced from the blocks that were executed; sections are read from registers.
#[test]
fn sections_of_arm64_kernels_are_those_that_held_samples_up() {
    need!(aarch64());
    let program = newer!("qemu-system-aarch64");
    let place = Place::of_build();
    let common = format!(
        "--offline --qemu {program} --board aarch64 --kernel debian:voluntary,debian:rt wakeup \
         --load hackbench,process -i 200us -D 50ms"
    );
    let [watched, plain] = side_by_side(
        &place,
        [
            &format!("lab sections -q --json --out watched {common}"),
            &format!("lab run -q --no-report --jobs 1 --replicates 1 --out plain {common}"),
        ],
    );
    plain.with(0);
    let watched = watched.with(0).json();
    place.run("compare --exact watched plain").with(0);
    for found in items(&watched) {
        for cell in items(&found["cells"]) {
            let kinds = items(&cell["kinds"]);
            let names: Vec<&Value> = kinds.iter().map(|kind| &kind["how"]).collect();
            assert_eq!(names, ["interrupts", "scheduler"]);
            // Each of the 250 releases is served by an interrupt.
            assert!(kinds.iter().all(|kind| count(kind, "count") > 250), "{cell}");
        }
        let coverage = &found["coverage"];
        assert!(count(coverage, "blocks") > 3_000 && count(coverage, "locking") > 1_000);
    }
    let line = format!("lab explain -q --offline --json --worst 12 --qemu {program}");
    let why = place.run(&format!("{line} plain/debian-voluntary-0")).with(0).json();
    let mut known = 0;
    for (cell, explained) in items(&watched[0]["cells"]).iter().zip(items(&why[0]["cells"])) {
        let held = items(&explained["samples"]).iter().flat_map(|sample| items(&sample["held"]));
        for held in held.filter(|held| held["how"] == "interrupts") {
            assert!(has(cell, held), "{held} {cell}");
            known += 1;
        }
    }
    println!("{known} stretches");
    assert!(known > 0);
}

#[test]
fn a_release_is_aimed_at_a_section_of_an_arm64_kernel() {
    need!(aarch64());
    let program = newer!("qemu-system-aarch64");
    let place = Place::of_build();
    let line = format!(
        "lab aim -q --offline --json --qemu {program} --board aarch64 --kernel debian:voluntary \
         wakeup --load hackbench -D 300ms --aim 1 --out aimed"
    );
    let all = place.run(&line).with(0).json();
    let cell = &items(&all)[0]["cells"][0];
    let target = &items(&cell["targets"])[0];
    println!("{target}");
    // Else something before it was not as it had been.
    let shot = &target["measured"]["measured"];
    let (measured, predicted) = (count(shot, "latency_ns"), count(target, "predicted_ns"));
    let length = count(&target["section"], "length_ns");
    // How well this course can be predicted is not known; that it was predicted from its length is.
    assert!(predicted >= length - 5_000 && measured.abs_diff(predicted) < 60_000, "{target}");
}
