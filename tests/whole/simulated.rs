//! Known distributions through the released binary. What must come out is worked
//! out here from the definitions alone: the quantile q of N values is the value
//! at rank ceil(qN), and there is none where fewer than 1 / (1 - q) releases were due.

use serde_json::Value;

use punctual_harness::Place;
use punctual_harness::schema::validate;

/// The value at rank ceil(qN) of ascending values, q in ten thousandths.
fn quantile(values: &[u64], q: usize, scheduled: u64) -> Option<u64> {
    let enough = scheduled * (10_000 - q as u64) >= 10_000;
    enough.then(|| values[(values.len() * q).div_ceil(10_000) - 1])
}

/// A quantile is told as the upper end of its bin: never too small, under 0.8 %
/// too large, and never above the maximum.
#[track_caller]
fn near(told: &Value, truth: Option<u64>, max: u64) {
    let Some(truth) = truth else { return assert_eq!(told, &Value::Null) };
    let told = told.as_u64().unwrap_or_else(|| panic!("{told} is not near {truth}"));
    assert!(told >= truth && (told - truth) * 125 < truth && told <= max, "{told}, {truth}");
}

#[track_caller]
fn check(cell: &Value, mut values: Vec<u64>, missed: u64) {
    values.sort_unstable();
    let (n, max) = (values.len() as u64, values[values.len() - 1]);
    assert_eq!(cell["samples"], n);
    assert_eq!(cell["missed"], missed);
    assert_eq!(cell["scheduled"], n + missed);
    assert_eq!((&cell["min_ns"], &cell["max_ns"]), (&values[0].into(), &max.into()));
    let sum: u64 = values.iter().sum();
    #[allow(clippy::cast_precision_loss, reason = "sums below 2^53")]
    let mean = sum as f64 / n as f64;
    assert!((cell["avg_ns"].as_f64().unwrap() - mean).abs() < 1e-6 * mean);
    for (key, q) in [("p50_ns", 5_000), ("p99_ns", 9_900), ("p999_ns", 9_990), ("p9999_ns", 9_999)]
    {
        near(&cell[key], quantile(&values, q, n + missed), max);
    }
}

#[test]
fn a_uniform_distribution_comes_out_exactly() {
    let place = Place::new();
    let run = place.run("run sim -l 8192 -D 1h --json --no-report").with(0).json();
    validate(&run);
    // 4096 values at the middles of equal shares of 10 us to 20 us, each twice.
    let value = |i: u64| 10_000 + (10_000 * (2 * i + 1) + 4_096) / 8_192;
    let values = (0..4_096).chain(0..4_096).map(value).collect();
    check(&run["cells"][0], values, 0);
    check(&run["cells"][0]["threads"][0], (0..4_096).chain(0..4_096).map(value).collect(), 0);
}

/// 900 wake-ups at 10 us and one stall of 100 ms, period 1 ms: the releases that
/// passed behind it saw 99 ms, 98 ms, … 1 ms.
#[test]
fn a_stall_shows_in_the_corrected_distribution() {
    let place = Place::new();
    let line = "run sim:dist=list,values=10us*900/100ms -l 901 --json --no-report --out r";
    let run = place.run(line).with(0).json();
    validate(&run);
    let cell = &run["cells"][0];
    let raw: Vec<u64> = std::iter::repeat_n(10_000, 900).chain([100_000_000]).collect();
    check(cell, raw.clone(), 99);
    let mut corrected = raw;
    corrected.extend((1..100).map(|ms| ms * 1_000_000));
    corrected.sort_unstable();
    assert_eq!(quantile(&corrected, 9_500, 1_000), Some(50_000_000), "the oracle itself");
    assert_eq!(cell["corrected"]["samples"], 1_000);
    for (key, q) in [("p50_ns", 5_000), ("p99_ns", 9_900), ("p999_ns", 9_990), ("p9999_ns", 9_999)]
    {
        near(&cell["corrected"][key], quantile(&corrected, q, 1_000), 100_000_000);
    }
    // What is read back is what was printed.
    assert_eq!(place.run("show r --json").with(0).json(), run);
}

/// A latency that is no multiple of the period leaves its last positive rest.
#[test]
fn the_last_positive_rest_is_kept() {
    let place = Place::new();
    let line = "run sim:dist=list,values=10us*900/100500us -l 901 --json --no-report";
    let run = place.run(line).with(0).json();
    // 100.5 ms, 99.5 ms, … 0.5 ms: 101 values, one of them the sample.
    assert_eq!(run["cells"][0]["missed"], 100);
    assert_eq!(run["cells"][0]["corrected"]["samples"], 1_001);
}

#[test]
fn a_day_in_simulated_time_ends_in_seconds() {
    let place = Place::new();
    let run = place.run("run sim -D 24h --deadline 25us --json --no-report").with(0).json();
    validate(&run);
    assert_eq!(run["cells"][0]["samples"], 86_400_000);
    assert_eq!(run["verdict"]["outcome"], "PASS");
}
