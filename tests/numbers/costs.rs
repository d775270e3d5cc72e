//! Costs against programs that time the same, in turn with them.

use std::fs;
use std::path::Path;

use punctual_harness::cyclictest::last_cpu;
use punctual_harness::{Folder, alternating, need, programs, release, root, text};

/// Pairs of what was measured.
const PAIRS: usize = 9;

/// What `punctual cost` says of a metric.
fn cost(folder: &Folder, before: &[&str], binary: &Path, metric: &str) -> f64 {
    let line = ["cost", metric, "-D", "500ms", "-q", "--no-report", "--json", "--out", "c"];
    let words = [before, &[binary.to_str().unwrap()], &line].concat();
    let output = folder.run(words[0], &words[1..]);
    fs::remove_dir_all(folder.path("c")).unwrap();
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cell = &run["cells"][0];
    // Half a second may be too short for a narrow interval, but not for a value.
    cell["value"].as_f64().unwrap_or_else(|| panic!("no value: {cell}"))
}

/// Fails if the medians of what both found are further apart than a busy machine explains, twice.
fn alike(what: &str, ours: impl Fn() -> f64, theirs: impl Fn() -> f64) {
    let ratio = || {
        let pairs = alternating(PAIRS, &ours, &theirs);
        let mut ratios: Vec<f64> = pairs.iter().map(|(ours, theirs)| ours / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        let [least, middle, most] = [0, PAIRS / 2, PAIRS - 1].map(|rank| ratios[rank]);
        println!("{what}, ours and theirs, us: {pairs:.3?}");
        println!("{what}: ratio {middle:.3}, of single pairs {least:.3} to {most:.3}");
        middle
    };
    let found = ratio();
    let found = if (0.8..=1.25).contains(&found) { found } else { ratio() };
    assert!((0.8..=1.25).contains(&found), "{what}: ratio {found}, twice");
}

/// perf's value is the mean over all operations, with whatever else ran meanwhile: so both sides are
/// real-time. They take less than a second, after which real-time threads are throttled.
#[test]
fn costs_against_perf_bench() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["perf", "taskset", "chrt"]));
    let (folder, cpu) = (Folder::new("perf"), last_cpu());
    for (metric, bench, operations) in [
        ("lat.pipe:peer=same", ["sched", "pipe"], "50000"),
        ("lat.syscall:", ["syscall", "basic"], "2000000"),
    ] {
        let metric = format!("{metric},cpu={cpu}").replace(":,", ":");
        let ours = || cost(&folder, &["chrt", "-f", "80"], &binary, &metric);
        let theirs = || {
            let line = ["-c", &cpu, "chrt", "-f", "80", "perf", "bench"];
            let line = [&line[..], &bench, &["-l", operations]].concat();
            let said = text(&folder.run("taskset", &line).stdout);
            let each = said.lines().find_map(|line| line.trim().strip_suffix("usecs/op"));
            each.unwrap_or_else(|| panic!("{said}")).trim().parse().unwrap()
        };
        alike(&format!("{metric} and perf bench {}", bench.join(" ")), ours, theirs);
    }
}

/// Both run in the session of this test, among whose processes the scheduler shares CPUs (sched(7),
/// autogroup).
#[test]
fn the_cost_hackbench_against_that_of_rt_tests() {
    let binary = need!(release());
    need!(programs(&["hackbench"]));
    let folder = Folder::new("hackbench-cost");
    for (ipc, of_theirs) in [("socket", &[][..]), ("pipe", &["-p"])] {
        let ours =
            || cost(&folder, &[], &binary, &format!("time.hackbench:groups=2,loops=100,ipc={ipc}"));
        let theirs = || {
            // As many as ours at least, of which it tells the median.
            let mut times = [0; 3].map(|_| {
                let words = ["-g", "2", "-l", "100", "-s", "100"];
                let said = text(&folder.run("hackbench", &[&words, of_theirs].concat()).stdout);
                let time = said.lines().find_map(|line| line.strip_prefix("Time: "));
                let time = time.unwrap_or_else(|| panic!("{said}")).trim();
                time.parse::<f64>().unwrap() * 1e6
            });
            times.sort_by(f64::total_cmp);
            times[1]
        };
        alike(&format!("hackbench with {ipc}"), ours, theirs);
    }
}
