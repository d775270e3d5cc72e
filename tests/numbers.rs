//! The numeric promises of SPECIFICATION.md, measured on the release binary. Each
//! test prints what it found.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::cyclictest::{cyclictest_median, last_cpu, lower_bound_of_median, punctual_median};
use support::{Folder, count, has_time, megabytes, need, programs, release, root, text, usage};

/// User-space instructions of a whole process.
fn instructions(folder: &Folder, program: &Path, args: &[&str]) -> i64 {
    let tool = ["--tool=callgrind", "--callgrind-out-file=/dev/null", program.to_str().unwrap()];
    let output = folder.run("valgrind", &[&tool, args].concat());
    let report = text(&output.stderr);
    let collected = report.lines().find_map(|line| line.split_once("Collected : "));
    let collected = collected.unwrap_or_else(|| panic!("callgrind said {report}")).1;
    collected.trim().parse().unwrap()
}

/// Instructions that each sample costs: what is the same for any number drops out.
/// Large numbers, since the worst samples of a busy machine cost some once each.
fn instructions_each(measure: impl Fn(&str) -> i64) -> f64 {
    let (few, many) = (5_000, 20_000);
    let difference = measure(&many.to_string()) - measure(&few.to_string());
    f64::from(i32::try_from(difference).unwrap()) / f64::from(many - few)
}

#[test]
fn instructions_per_sample() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["valgrind", "cyclictest"]));
    let folder = Folder::new("instructions");
    let ours = instructions_each(|samples| {
        let line = ["run", "wakeup", "-i", "1000", "-p", "80", "-l", samples];
        let line = [&line[..], &["--out", samples]].concat();
        instructions(&folder, &binary, &line)
    });
    let theirs = instructions_each(|samples| {
        let line = ["-q", "-m", "-p", "80", "-i", "1000", "-l", samples];
        instructions(&folder, "cyclictest".as_ref(), &line)
    });
    println!("instructions a sample: punctual {ours:.1}, cyclictest {theirs:.1}");
    assert!(ours <= theirs, "{ours} instructions a sample, cyclictest {theirs}");
}

/// The system calls of the probe's thread, by name, in order.
fn calls_of_probe(traces: &Path) -> Vec<String> {
    let of_probe = fs::read_dir(traces).unwrap().find_map(|entry| {
        let trace = fs::read_to_string(entry.unwrap().path()).unwrap();
        trace.contains("prctl(PR_SET_NAME, \"probe-0\")").then_some(trace)
    });
    let trace = of_probe.expect("a trace of a thread with the name probe-0");
    let name = |line: &str| Some(line.split_once('(')?.0.to_owned());
    trace.lines().filter_map(name).collect()
}

#[test]
fn no_system_call_but_the_wait() {
    let binary = need!(release());
    need!(programs(&["strace"]));
    const SAMPLES: usize = 400;
    for (timer, wait) in [
        ("nanosleep", "clock_nanosleep"),
        ("posix", "rt_sigtimedwait"),
        ("timerfd", "read"),
        ("relative", "clock_nanosleep"),
    ] {
        let folder = Folder::new(&format!("calls-{timer}"));
        fs::create_dir(folder.path("traces")).unwrap();
        let samples = SAMPLES.to_string();
        let tool = ["-f", "-ff", "-o", "traces/trace", binary.to_str().unwrap()];
        let line = ["run", "wakeup", "-i", "1000", "-l", &samples, "--timer", timer];
        folder.run("strace", &[&tool[..], &line, &["--no-report", "--out", "r"]].concat());
        let engine = &folder.json("r/run.json")["facts"]["engine"];
        let vdso = engine["clock_vdso"].as_bool().expect("facts.engine.clock_vdso");
        let mut calls = calls_of_probe(&folder.path("traces"));
        if !vdso {
            println!("  clock_gettime is a system call of this kernel's clock source: allowed");
            calls.retain(|call| call != "clock_gettime");
        }
        // The last unbroken row of waits is the measurement; warm-up is the one before.
        let rows = calls.chunk_by(|a, b| a == b).filter(|row| row[0] == wait);
        let longest: Vec<usize> = rows.map(<[String]>::len).filter(|&row| row > 1).collect();
        println!("{timer}: rows of {wait} without another system call: {longest:?}");
        let measured = *longest.last().unwrap_or(&0);
        assert!(measured >= SAMPLES, "{timer}: {measured} waits in a row, then {calls:?}");
        assert_eq!(longest.len(), 2, "{timer}: {calls:?}");
    }
}

#[test]
fn peak_memory() {
    let binary = need!(release());
    need!(has_time());
    let folder = Folder::new("memory");
    let used = usage(&folder, &binary, &["run", "wakeup", "-D", "1m", "--out", "r"]);
    assert!(folder.path("r/report.html").exists());
    let state = count(&folder.json("r/run.json")["facts"]["engine"], "state_bytes_per_thread");
    println!("peak resident size of a minute: {:.2} MB", megabytes(used.peak));
    println!("state of a thread: {state} bytes");
    assert!(used.peak <= 6_000_000, "{} bytes", used.peak);
    assert!(state < used.peak, "{state} bytes of state in {} bytes", used.peak);
}

#[test]
fn binary_size() {
    let binary = need!(release());
    need!(programs(&["readelf"]));
    let folder = Folder::new("size");
    let shown = folder.run("readelf", &["-lWd", binary.to_str().unwrap()]);
    let headers = text(&shown.stdout);
    assert!(headers.contains("LOAD"), "{headers}");
    for dynamic in ["INTERP", "(NEEDED)"] {
        assert!(!headers.contains(dynamic), "the binary is not static: {headers}");
    }
    let size = fs::metadata(&binary).unwrap().len();
    println!("static binary: {:.2} MB", megabytes(size));
    assert!(size <= 3_000_000, "{size} bytes");
}

#[test]
fn median_against_cyclictest() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["cyclictest"]));
    const PAIRS: usize = 12;
    const SAMPLES: u64 = 2_000;
    let folder = Folder::new("median");
    let cpu = last_cpu();
    let mut pairs = Vec::new();
    for pair in 0..PAIRS {
        let ours = || punctual_median(&folder, &binary, &cpu, SAMPLES);
        let theirs = || cyclictest_median(&folder, &cpu, SAMPLES);
        // Who is first changes: neither profits from a drift of the machine.
        let (ours, theirs) = if pair % 2 == 0 {
            let first = ours();
            (first, theirs())
        } else {
            let first = theirs();
            (ours(), first)
        };
        pairs.push((ours, theirs));
    }
    let nanoseconds = |ns: i64| f64::from(i32::try_from(ns).unwrap());
    let ratio = |&(ours, theirs): &(i64, i64)| nanoseconds(ours) / nanoseconds(theirs);
    let mut ratios: Vec<f64> = pairs.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = f64::midpoint(ratios[(PAIRS - 1) / 2], ratios[PAIRS / 2]);
    let bound = lower_bound_of_median(&ratios);
    println!("medians on CPU {cpu}, punctual and cyclictest, ns: {pairs:?}");
    println!("ratio of medians: {middle:.3}, above {bound:.3} with 95 % confidence");
    assert!(bound <= 1.03, "ratio of medians {middle}, surely above {bound}");
}

#[test]
fn report_of_24_hours() {
    let binary = need!(release());
    need!(has_time());
    let folder = Folder::new("day");
    // The second has late samples and a new maximum all day long: the most that a report shows.
    let tail = "sim:dist=exponential,order=random,stall=30ms,stall-every=977";
    for (name, probe) in [("even", "sim"), ("tail", tail)] {
        folder.run(&binary, &["run", probe, "-D", "24h", "--no-report", "--out", name]);
        let samples = count(&folder.json(&format!("{name}/run.json"))["cells"][0], "scheduled");
        assert_eq!(samples, 86_400_000);
        let page = format!("{name}.html");
        let used = usage(&folder, &binary, &["report", name, "-o", &page]);
        let size = fs::metadata(folder.path(&page)).unwrap().len();
        let (peak, file) = (megabytes(used.peak), megabytes(size));
        println!("report of 24 h, {name}: {:.2} s, {peak:.1} MB, file {file:.2} MB", used.wall);
        assert!(used.wall <= 1.0, "{name}: {} s", used.wall);
        assert!(used.peak <= 200_000_000, "{name}: {} bytes", used.peak);
        assert!(size <= 2_000_000, "{name}: {size} bytes");
    }
}

#[test]
fn recording_speed() {
    let binary = need!(release());
    need!(has_time());
    let folder = Folder::new("speed");
    let seconds = (0..3).map(|_| {
        let line = ["run", "sim", "-l", "100000000", "--no-report", "--out", "r"];
        let used = usage(&folder, &binary, &line);
        let samples = count(&folder.json("r/run.json")["cells"][0], "samples");
        assert_eq!(samples, 100_000_000);
        fs::remove_dir_all(folder.path("r")).unwrap();
        used.cpu
    });
    // Whatever disturbs makes it slower: the best is the nearest to its cost.
    let best = seconds.fold(f64::INFINITY, f64::min);
    let each = best * 1e9 / 1e8;
    println!("recording: {each:.2} ns of CPU time a sample");
    assert!(each <= 10.0, "{each} ns a sample");
}

#[test]
fn the_bound_of_a_median_has_its_rank() {
    // Of n values the k-th is the bound: David and Nagaraja, Order Statistics, 7.1.
    let ranks: BTreeMap<usize, f64> = [(5, 1.0), (8, 2.0), (10, 2.0), (12, 3.0), (20, 6.0)].into();
    for (n, rank) in ranks {
        let values: Vec<f64> = (1..=n).map(|k| f64::from(u32::try_from(k).unwrap())).collect();
        assert!((lower_bound_of_median(&values) - rank).abs() < 1e-9, "{n}");
    }
}
