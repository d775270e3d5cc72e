//! A wake-up of the probe against one of cyclictest, in one guest that measures nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use punctual_lab::arch::Arch;
use punctual_lab::board::BoardSpec;
use punctual_lab::emulator::Emulator;
use punctual_lab::initramfs::Initramfs;
use punctual_lab::kernel::Kernels;

use crate::boards::x86_64;
use punctual_harness::histogram::median;
use punctual_harness::processes::wait_at_most;
use punctual_harness::{Place, need, programs, release};

const SAMPLES: u64 = 1000;

/// Pairs of runs, half of them with cyclictest first.
const PAIRS: usize = 6;

/// The guest's init: it prints what both medians are in, with a line before each.
const SCRIPT: &str = r#"#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
probe() {
    /punctual run wakeup -p 80 -i 1000 -l $SAMPLES --no-report -q --json --out /run/$1 > /run/probe
    echo "= probe"
    grep -E '"(p50_ns|policy|priority)"' /run/probe
}
cyclic() {
    cyclictest -q -m -N -p 80 -i 1000 -l $SAMPLES -h 40000 > /run/cyclic
    echo "= cyclictest"
    grep -v ' 000000$' /run/cyclic
}
for pair in 1 2 3; do
    probe $pair-1; cyclic
    cyclic; probe $pair-2
done
echo "= end"
"#;

/// Where the shell finds a program.
fn path_of(program: &str) -> String {
    let line = format!("command -v {program}");
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert!(output.status.success(), "{program} is not installed");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The libraries of a program and its dynamic linker, as ldd(1) finds them.
fn libraries(program: &str) -> Vec<String> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    assert!(output.status.success(), "ldd {program}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

/// A guest with this machine's cyclictest and shell, and the binary that is tested.
fn initramfs() -> Vec<u8> {
    let mut files = Initramfs::new().unwrap();
    for folder in ["proc", "sys", "run", "tmp"] {
        files.directory(folder).unwrap();
    }
    let mut from_here = BTreeSet::new();
    for program in ["mount", "grep", "cyclictest"] {
        let path = path_of(program);
        from_here.extend(libraries(&path));
        from_here.insert(path);
    }
    from_here.extend(libraries("/bin/sh"));
    from_here.insert("/bin/sh".to_owned());
    for path in from_here {
        files.file(path.trim_start_matches('/'), 0o755, &fs::read(&path).unwrap()).unwrap();
    }
    files.file("punctual", 0o755, &fs::read(release().unwrap()).unwrap()).unwrap();
    let script = SCRIPT.replace("$SAMPLES", &SAMPLES.to_string());
    files.file("init", 0o755, script.as_bytes()).unwrap();
    files.finish()
}

/// Boots an initramfs on the board of the lab, to its end; what it said.
fn console(place: &Place, initramfs: &[u8]) -> String {
    fs::write(place.path.join("initramfs"), initramfs).unwrap();
    let board = BoardSpec::default();
    let kernels = Kernels::of_user().unwrap();
    let kernel = kernels.resolve(&["debian:rt"], Arch::X86_64, None, false, &mut |_| ());
    let kernel = kernel.unwrap().remove(0);
    let emulator = Emulator::find(Arch::X86_64, None, None).unwrap();
    let mut qemu = Command::new(&emulator.program)
        .args(board.options(&emulator.cpu, 1))
        .args(["-chardev", "null,id=channel", "-serial", "file:console", "-initrd", "initramfs"])
        .arg("-kernel")
        .arg(&kernel.image)
        .args(["-append", &board.parameters(&kernel.parameters)])
        .current_dir(&place.path)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    wait_at_most(&mut qemu, Duration::from_secs(180), "the guest");
    String::from_utf8_lossy(&fs::read(place.path.join("console")).unwrap()).replace('\r', "")
}

/// The median of the cell, which comes before those of its threads in `run.json`.
fn probe_median(lines: &str) -> u32 {
    let median = lines.lines().find_map(|line| line.trim().strip_prefix("\"p50_ns\": "));
    let median = median.unwrap_or_else(|| panic!("no median in {lines}"));
    median.trim_end_matches(',').parse().unwrap()
}

#[test]
fn a_wake_up_costs_no_more_than_cyclictests() {
    need!(x86_64());
    need!(programs(&["cyclictest", "/bin/sh"]));
    let place = Place::of_build();
    let console = console(&place, &initramfs());
    assert!(console.contains("= end\n"), "{console}");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for part in console.split("= ") {
        if let Some(lines) = part.strip_prefix("probe\n") {
            // As a number: what the thread had, where the plan's own words are texts.
            assert!(lines.contains("\"priority\": 80,"), "{lines}");
            ours.push(probe_median(lines));
        } else if let Some(lines) = part.strip_prefix("cyclictest\n") {
            theirs.push(u32::try_from(median(lines, SAMPLES)).unwrap());
        }
    }
    assert_eq!((ours.len(), theirs.len()), (PAIRS, PAIRS), "{console}");
    println!("medians in one guest, ns: punctual {ours:?}, cyclictest {theirs:?}");
    let middle = |values: &mut Vec<u32>| {
        values.sort_unstable();
        f64::from(values[(PAIRS - 1) / 2] + values[PAIRS / 2]) / 2.0
    };
    let ratio = middle(&mut ours) / middle(&mut theirs);
    println!("ratio of the medians of {PAIRS}: {ratio:.4}");
    assert!(ratio <= 1.03, "{ratio}: punctual {ours:?}, cyclictest {theirs:?}");
}
