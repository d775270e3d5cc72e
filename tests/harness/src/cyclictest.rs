//! Runs of cyclictest and of punctual that can be compared.

use std::path::Path;

use crate::histogram::median;
use crate::{Folder, text};

/// Latencies up to this are counted one by one, ns: cyclictest's limit.
const BINS: usize = 1_000_000;

/// The last CPU that this process may use.
pub fn last_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    line.trim().rsplit([',', '-']).next().unwrap().to_owned()
}

/// The median latency of cyclictest, ns, from its histogram of single nanoseconds.
pub fn cyclictest_median(folder: &Folder, cpu: &str, samples: u64) -> i64 {
    let (samples_text, bins) = (samples.to_string(), BINS.to_string());
    let line = ["-q", "-m", "-N", "-p", "80", "-i", "1000", "-a", cpu, "-l", &samples_text];
    let output = folder.run("cyclictest", &[&line[..], &["-h", &bins]].concat());
    median(&text(&output.stdout), samples)
}

/// The median latency of punctual under the same conditions, ns; up to 0.8 % too high.
pub fn punctual_median(folder: &Folder, binary: &Path, cpu: &str, samples: u64) -> i64 {
    let samples = samples.to_string();
    let line = ["run", "wakeup", "-q", "-p", "80", "-i", "1000", "-a", cpu, "-l", &samples];
    let output =
        folder.run(binary, &[&line[..], &["--no-report", "--json", "--out", "m"]].concat());
    std::fs::remove_dir_all(folder.path("m")).unwrap();
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let cell = &run["cells"][0];
    let thread = &cell["threads"][0];
    assert_eq!((&thread["policy"], &thread["priority"]), (&"fifo".into(), &80.into()), "{thread}");
    cell["p50_ns"].as_i64().unwrap()
}

/// The lower bound of the median of what these sorted values are drawn from, with a
/// confidence of at least 95 %: the order statistic with the largest rank k for which
/// at most k - 1 of n fair coins fall on one side with a probability of at most 5 %.
pub fn lower_bound_of_median(sorted: &[f64]) -> f64 {
    let n = i32::try_from(sorted.len()).unwrap();
    let mut probability = 0.5_f64.powi(n);
    let mut term = probability;
    assert!(probability <= 0.05, "{n} pairs are too few for a bound");
    let mut rank = 1;
    loop {
        term *= f64::from(n - rank + 1) / f64::from(rank);
        probability += term;
        if probability > 0.05 {
            return sorted[usize::try_from(rank).unwrap() - 1];
        }
        rank += 1;
    }
}
