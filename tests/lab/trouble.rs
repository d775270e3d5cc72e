//! Guests that fail, and requests that cannot be met.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use punctual_lab::arch::Arch;
use punctual_lab::kernel::Kernels;

use crate::boards::{aarch64, emulators, prepared, start, working, x86_64};
use punctual_harness::processes::{signal, wait_at_most};
use punctual_harness::{Ended, Place, end_of, need, run_json, until};

const PLAN: &str = "-q --no-report wakeup -D 1s --out r";

/// The lab with Debian's real-time kernel and these options.
fn lab(place: &Place, options: &str) -> Ended {
    place.run(&format!("lab run --offline --kernel debian:rt {options} {PLAN}"))
}

fn console(place: &Place, run: &str) -> String {
    let bytes = fs::read(place.path.join("r").join(run).join("console.log")).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn a_guest_with_too_little_memory_is_told_of() {
    need!(x86_64());
    let place = Place::of_build();
    lab(&place, "--memory 24").with(69).says(&["debian-rt-0: FAILED: ", "too little memory"]);
    // It ends before it has a console.
    assert!(!console(&place, "debian-rt-0").contains("punctual"));
    assert!(!place.path.join("r/debian-rt-0/run.json").exists());
}

#[test]
fn a_panic_is_shown_and_kept() {
    need!(x86_64());
    let place = Place::of_build();
    let panic = "Kernel panic - not syncing: Attempted to kill init!";
    // The guest's init ends at this word on the kernel's command line.
    lab(&place, "--append punctual.end_init").with(69).says(&[
        "debian-rt-0: FAILED: ",
        "a panic",
        panic,
    ]);
    assert!(console(&place, "debian-rt-0").contains(panic));
    assert_eq!(emulators(&place), [""; 0]);
}

#[test]
fn a_guest_that_hangs_is_ended() {
    need!(x86_64());
    let place = Place::of_build();
    // A kernel without init, that stays where it panics.
    let options = ["--patience", "12", "--append", "rdinit=/nothing panic=0"];
    let line = ["lab", "run", "--offline", "--kernel", "debian:rt"].into_iter().chain(options);
    let words: Vec<&str> = line.chain(PLAN.split_whitespace()).collect();
    place.words(&words).with(69).says(&[
        "debian-rt-0: FAILED: no sign of life for 12 s",
        "Kernel panic",
        "--patience",
    ]);
    assert!(console(&place, "debian-rt-0").contains("Unable to mount root fs"));
}

/// Debian's real-time kernel with another name for the program that it starts.
fn kernel_without_init(place: &Place) {
    let kernels = Kernels::of_user().unwrap();
    let kernel = kernels.resolve(&["debian:rt"], Arch::X86_64, None, false, &mut |_| ());
    let kernel = kernel.unwrap().remove(0);
    let mut image = fs::read(&kernel.image).unwrap();
    let (name, other) = (b"/init\0", b"/tini\0");
    let starts: Vec<usize> =
        (0..image.len() - name.len()).filter(|&at| image[at..].starts_with(name)).collect();
    assert!(!starts.is_empty(), "no /init in {}", kernel.image.display());
    for at in starts {
        image[at..at + name.len()].copy_from_slice(other);
    }
    fs::write(place.path.join("broken"), image).unwrap();
}

#[test]
fn a_kernel_that_fails_leaves_the_others_alone() {
    need!(x86_64());
    let place = Place::of_build();
    kernel_without_init(&place);
    let line =
        format!("lab run --offline --jobs 2 --replicates 1 --kernel broken,debian:rt {PLAN}");
    place.run(&line).with(69).says(&["broken-0: FAILED: ", "Kernel panic"]);
    assert!(console(&place, "broken-0").contains("Kernel panic"));
    let run = run_json(&place.path.join("r/debian-rt-0"));
    assert_eq!((&run["state"], &run["cells"][0]["samples"]), (&"complete".into(), &1000.into()));
}

#[test]
fn what_cannot_be_had_is_refused_before_the_boot() {
    need!(x86_64());
    need!(aarch64());
    let place = Place::of_build();
    let old = place.path.join("old");
    fs::write(&old, "#!/bin/sh\necho 'QEMU emulator version 9.2.1'\n").unwrap();
    fs::set_permissions(&old, Permissions::from_mode(0o755)).unwrap();
    for (options, says) in [
        ("--module no_such_module", "module no_such_module is neither in"),
        ("--cpus 5", "--cpus 5: the board x86_64 has 1 to 4 CPUs"),
        ("--cpus 2 --qemu ./old", "install QEMU 10.0 or newer"),
        ("--mips 300", "--mips 300: must be one of 125"),
        ("--device modem", "--device no device \"modem\"; there are: parport"),
        ("--memory 8", "--memory 8 MiB: must be from 16"),
        ("--board aarch64 --device parport", "boards that have it: x86_64"),
    ] {
        lab(&place, options).with(2).says(&[says]);
        // Nothing stands in the way of the next try.
        assert!(!place.path.join("r").exists(), "{options}");
    }

    let line = format!("lab run --kernel debian:rt {PLAN}");
    let mut without_qemu = prepared(&place, &line);
    without_qemu.env("PATH", &place.path);
    let package = "apt-get install --no-install-recommends qemu-system-x86";
    end_of(without_qemu).with(2).says(&["there is no qemu-system-x86_64", package]);

    // Of the other architecture: no kernel of this machine will do.
    let line = format!("lab run --offline --board aarch64 --kernel debian:rt {PLAN}");
    let mut without_kernels = prepared(&place, &line);
    without_kernels.env("PUNCTUAL_CACHE", place.path.join("empty"));
    end_of(without_kernels).with(2).says(&["punctual lab fetch --board aarch64 debian:rt"]);
}

/// Two guests that boot.
fn two_guests(place: &Place) -> std::process::Child {
    let line = "lab run --offline --kernel debian:rt --replicates 2 --jobs 2 --out r wakeup -D 1h";
    let child = start(place, line);
    let boot = until(Duration::from_secs(20), || emulators(place).len() == 2);
    assert!(boot, "{:?}", place.living());
    child
}

#[test]
fn no_guest_outlives_an_interrupt() {
    need!(x86_64());
    let place = Place::of_build();
    let mut child = two_guests(&place);
    signal(&child, "INT");
    let limit = Duration::from_secs(2);
    assert_eq!(wait_at_most(&mut child, limit, "SIGINT").code(), Some(130));
    assert!(until(limit, || place.living().is_empty()), "{:?}", place.living());
    for run in ["debian-rt-0", "debian-rt-1"] {
        assert!(place.path.join("r").join(run).join("console.log").exists());
    }
    assert_eq!(working(&place.path.join("r")), None);
}

#[test]
fn no_guest_outlives_a_killed_lab() {
    need!(x86_64());
    let place = Place::of_build();
    let mut child = two_guests(&place);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(until(Duration::from_secs(2), || place.living().is_empty()), "{:?}", place.living());
    assert!(Path::new(&place.at("r/debian-rt-0")).is_dir());
    // Nobody was left to remove it.
    let left = working(&place.path.join("r")).unwrap();
    place.run("restore").with(0).says(&[left.to_str().unwrap()]);
    assert_eq!(working(&place.path.join("r")), None);
    assert!(Path::new(&place.at("r/debian-rt-0/console.log")).exists(), "what was measured stays");
}

/// What it boots again goes to a folder that nobody keeps.
#[test]
fn a_killed_explanation_leaves_nothing_after_a_restore() {
    need!(x86_64());
    let place = Place::of_build();
    place.run("lab run --offline -q --no-report --kernel debian:rt wakeup -D 2s --out r").with(0);
    let temporary = place.path.join("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = prepared(&place, "lab explain --offline -q r/debian-rt-0");
    let command = command.env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let watches = || emulators(&place).iter().any(|line| line.contains("-plugin"));
    assert!(until(Duration::from_secs(60), watches), "{:?}", place.living());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(until(Duration::from_secs(2), || place.living().is_empty()), "{:?}", place.living());
    let left = || fs::read_dir(&temporary).unwrap().count();
    assert_eq!(left(), 1);
    // It is known by its journal, wherever TMPDIR leads by now.
    place.run("restore").with(0).says(&[temporary.to_str().unwrap()]);
    assert_eq!(left(), 0);
}
