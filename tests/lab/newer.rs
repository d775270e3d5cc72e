//! Boards of QEMU 10, which starts several x86 CPUs with counted time. Where it cannot be had
//! these tests are skipped, under `CI` too: everything else runs with Debian 12's own QEMU.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use crate::boards::{hog, x86_64};
use crate::exact::same_twice;
use punctual_harness::schema::validate;
use punctual_harness::{Place, conditions, count, need, refused, run_json, sources};

/// How tests/newer-qemu ends where there is no newer QEMU; any other failure is one of its own.
const NOT_TO_BE_HAD: i32 = 3;

/// The newer QEMU for x86_64 boards.
fn qemu() -> Result<&'static Path, &'static str> {
    static FOLDER: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        let script = sources().join("tests/newer-qemu");
        let ended = Command::new(&script).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.signal().is_none(), "{}: {}: {said}", script.display(), ended.status);
        match ended.status.code() {
            Some(0) => {
                let folder = String::from_utf8(ended.stdout).unwrap();
                Ok(Path::new(folder.trim()).join("qemu-system-x86_64"))
            }
            Some(NOT_TO_BE_HAD) => Err(said),
            _ => panic!("{}: {said}", script.display()),
        }
    });
    FOLDER.as_deref().map_err(String::as_str)
}

/// Ends a test where there is no newer QEMU.
macro_rules! newer {
    () => {
        match qemu() {
            Ok(program) => program.display(),
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
    let program = newer!();
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
    let program = newer!();
    let place = Place::of_build();
    let line = format!(
        "lab check -q --offline --qemu {program} --cpus 2 --kernel debian:rt --replicates 1 \
         --out r wakeup -t per-cpu --load hackbench -D 500ms --max 50us"
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
    let qemu = newer!();
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
