//! A wake-up of the probe against one of cyclictest, in one guest that measures nothing else.

use std::time::Duration;

use crate::boards::x86_64;
use crate::shell::{console, initramfs};
use punctual_harness::histogram::median;
use punctual_harness::{Place, need, programs};

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
    let script = SCRIPT.replace("$SAMPLES", &SAMPLES.to_string());
    let files = initramfs(&["mount", "grep", "cyclictest"], &script);
    let console = console(&place, &files, Duration::from_secs(180));
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
