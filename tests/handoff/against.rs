//! Known answers: the same hand-over, timed by another program on the same CPU with the same
//! policy and priority, in turn with the probe's.

use std::path::Path;

use punctual_harness::cyclictest::last_cpu;
use punctual_harness::{Folder, alternating, need, programs, release, root, sources, text};

/// Pairs of runs.
const PAIRS: usize = 7;

/// What the probe measures with these words, ns.
fn ours(folder: &Folder, binary: &Path, words: &str, samples: &str, field: &str) -> f64 {
    let line = ["run", words, "-q", "-l", samples, "--warmup", "50ms", "--no-report", "--json"];
    let output = folder.run(binary, &[&line[..], &["--out", "m"]].concat());
    std::fs::remove_dir_all(folder.path("m")).unwrap();
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cell = &run["cells"][0];
    let thread = &cell["threads"][0];
    assert_eq!((&thread["policy"], &thread["priority"]), (&"fifo".into(), &80.into()), "{cell}");
    assert_eq!(cell["samples"].to_string(), samples, "{cell}");
    cell[field].as_f64().unwrap_or_else(|| panic!("no {field}: {cell}"))
}

/// The median of the ratios of pairs, ours to theirs.
fn ratio(what: &str, ours: impl Fn() -> f64, theirs: impl Fn() -> f64) -> f64 {
    let pairs = alternating(PAIRS, ours, theirs);
    let mut ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
    ratios.sort_by(f64::total_cmp);
    println!("{what}, ours and theirs, ns: {pairs:.0?}; ratio {:.2}", ratios[PAIRS / 2]);
    ratios[PAIRS / 2]
}

/// Runs a program on a CPU with the probe's policy and priority.
fn on_cpu(folder: &Folder, cpu: &str, words: &[&str]) -> String {
    text(&folder.run("taskset", &[&["-c", cpu, "chrt", "-f", "80"], words].concat()).stdout)
}

#[test]
fn a_pipe_against_perf() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["perf", "taskset", "chrt"]));
    let (folder, cpu) = (Folder::new("pipe"), last_cpu());
    for (between, option) in [("threads", "-T"), ("processes", "-l")] {
        let words = format!("handoff:by=pipe,between={between},affinity={cpu},pause=0us");
        // perf's is the time there and back.
        let theirs = || {
            let line = ["perf", "bench", "sched", "pipe", option, "-l", "10000"];
            let line =
                if option == "-l" { [&line[..4], &line[5..]].concat() } else { line.to_vec() };
            let said = on_cpu(&folder, &cpu, &line);
            let each = said.lines().find_map(|line| line.trim().strip_suffix("usecs/op"));
            let each: f64 = each.unwrap_or_else(|| panic!("{said}")).trim().parse().unwrap();
            each * 1_000.0 / 2.0
        };
        let ours = || ours(&folder, &binary, &words, "10000", "p50_ns");
        let ratio = ratio(&format!("pipe between {between}"), ours, theirs);
        assert!((1.0 / 1.5..=1.5).contains(&ratio), "{between}: {ratio}");
    }
}

#[test]
fn a_futex_against_a_program_in_c() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["cc", "taskset", "chrt"]));
    let (folder, cpu) = (Folder::new("futex"), last_cpu());
    let source = sources().join("tests/handoff/futex.c");
    folder.run("cc", &["-O2", "-pthread", "-o", "futex", source.to_str().unwrap()]);
    let program = folder.path("futex");
    let words = format!("handoff:by=futex,affinity={cpu},pause=0us");
    let ours = || ours(&folder, &binary, &words, "10000", "p50_ns");
    let theirs = || {
        let said = on_cpu(&folder, &cpu, &[program.to_str().unwrap(), "10000"]);
        said.trim().parse().unwrap()
    };
    let ratio = ratio("futex", ours, theirs);
    assert!((1.0 / 1.5..=1.5).contains(&ratio), "{ratio}");
}

/// The mean of this many hand-overs that a program of rt-tests writes, ns.
fn rt_tests(folder: &Folder, program: &str, cpu: &str) -> f64 {
    let line = ["-p", "80", "-a", cpu, "-l", "400", "--json=theirs.json", "-t"];
    let (own, hand_overs) = match program {
        // What its first thread has is the time around both.
        "signaltest" => (&["2", "-m"][..], 2.0),
        _ => (&["1", "-i", "500"][..], 1.0),
    };
    folder.run(program, &[&line[..], own].concat());
    let found = folder.json("theirs.json");
    let thread = &found["thread"]["0"];
    let of = if thread["receiver"].is_object() { &thread["receiver"] } else { thread };
    let us = of["avg"].as_f64().unwrap_or_else(|| panic!("{program}: {found}"));
    1_000.0 * us / hand_overs
}

/// They time the second of two hand-overs that follow each other, whatever their interval: so
/// ours pause for nothing.
#[test]
fn the_others_against_rt_tests() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["ptsematest", "svsematest", "pmqtest", "signaltest"]));
    let (folder, cpu) = (Folder::new("rt-tests"), last_cpu());
    for (by, program) in [
        ("sem", "ptsematest"),
        ("svsem", "svsematest"),
        ("mqueue", "pmqtest"),
        ("sigwait", "signaltest"),
    ] {
        let words = format!("handoff:by={by},affinity={cpu},pause=0us");
        let ours = || ours(&folder, &binary, &words, "10000", "avg_ns");
        let theirs = || rt_tests(&folder, program, &cpu);
        let ratio = ratio(&format!("{by} and {program}"), ours, theirs);
        assert!((0.5..=2.0).contains(&ratio), "{by}: {ratio}");
    }
}
