//! How often a stated bound holds.

use punctual_core::random::Random;
use punctual_core::stats::episodes;

use crate::generators::{Lateness, MS, late};
use crate::{MANY, REPLICATES, SEED, percent};

const SECOND: u64 = 1_000;
const CONFIDENCE: f64 = 0.95;

/// What lateness is like, how often a second it begins, and the seconds that a run measures.
const CASES: [(&str, Lateness, f64, u64); 9] = [
    ("single ones, 0.02/s", Lateness::Bursts(1.0), 0.02, 60),
    ("single ones, 0.3/s", Lateness::Bursts(1.0), 0.3, 60),
    ("single ones, 3/s", Lateness::Bursts(1.0), 3.0, 60),
    ("bursts of 50 ms, 0.1/s", Lateness::Bursts(50.0), 0.1, 60),
    ("bursts of 50 ms, 0.3/s", Lateness::Bursts(50.0), 0.3, 300),
    ("bursts of 50 ms, 3/s", Lateness::Bursts(50.0), 3.0, 60),
    ("stalls of 20 ms, 0.05/s", Lateness::Stalls(20.0), 0.05, 600),
    ("stalls of 2 s, 0.02/s", Lateness::Stalls(2_000.0), 0.02, 600),
    ("stalls of 2 s, 0.1/s", Lateness::Stalls(2_000.0), 0.1, 60),
];

/// How often each bound holds, where it is given, and how often that is.
struct Held {
    rate_upper: (u64, u64),
    rate_lower: (u64, u64),
    share_lower: (u64, u64),
    share_upper: (u64, u64),
    clustered: u64,
}

fn held(replicates: u64, lateness: Lateness, per_second: f64, seconds: u64) -> Held {
    let mut random = Random::new(SEED);
    let releases = seconds * SECOND;
    let rate = per_second / SECOND as f64;
    let mut runs = Vec::new();
    for _ in 0..replicates {
        let spells = late(&mut random, lateness, rate, releases);
        runs.push(episodes(spells, releases * MS));
    }
    // The rate of episodes, as they are defined, and the share of late activations are those of all.
    let time = (replicates * seconds) as f64;
    let episode_rate = runs.iter().map(|run| run.count as f64).sum::<f64>() / time;
    let share = runs.iter().map(|run| run.size_sum as f64).sum::<f64>() / time / SECOND as f64;
    let mut held = Held {
        rate_upper: (0, 0),
        rate_lower: (0, 0),
        share_lower: (0, 0),
        share_upper: (0, 0),
        clustered: runs.iter().filter(|run| run.clustered).count() as u64,
    };
    let count = |of: &mut (u64, u64), holds: bool| {
        of.0 += u64::from(holds);
        of.1 += 1;
    };
    for run in &runs {
        // Of what the generator makes, which is more than there are episodes: they may be joined.
        if let Some(upper) = run.rate_upper(CONFIDENCE) {
            count(&mut held.rate_upper, upper >= per_second);
        }
        count(&mut held.rate_lower, run.rate_lower(CONFIDENCE) <= episode_rate);
        // Nothing is claimed of few episodes: a claim only of many would be one of the lucky runs.
        let bounds = run.share_bounds(releases, CONFIDENCE);
        count(&mut held.share_lower, bounds.is_none_or(|(lower, _)| lower <= share));
        count(&mut held.share_upper, bounds.is_none_or(|(_, upper)| upper >= share));
    }
    held
}

/// In percent; 100 if it was hardly ever given.
fn share((held, given): (u64, u64)) -> f64 {
    if given < 100 { 100.0 } else { percent(held, given) }
}

fn check(replicates: u64, least: f64, tell: bool) {
    for (name, lateness, per_second, seconds) in CASES {
        let held = held(replicates, lateness, per_second, seconds);
        let of_rate = [held.rate_upper, held.rate_lower].map(share);
        let of_share = [held.share_lower, held.share_upper].map(share);
        let clustered = percent(held.clustered, replicates);
        if tell {
            let given = percent(held.rate_upper.1, replicates);
            let bounds = [of_rate, of_share].concat();
            let bounds: Vec<_> = bounds.iter().map(|held| format!("{held:.1}")).collect();
            println!(
                "| {name}, {seconds} s | {given:.0} | {} | {clustered:.1} |",
                bounds.join(" | ")
            );
        }
        for held in of_rate {
            assert!(held >= least, "{name}: a bound on the rate holds in {held:.2} %");
        }
        assert!(of_share[0] >= least && of_share[1] >= LEAST_OF_SHARE, "{name}: {of_share:?}");
        assert!(clustered <= 2.0, "{name}: {clustered} % are said to be clustered");
    }
}

/// What holds of the upper bound on the share in 20 late batches of stalls that spread as the
/// exponential distribution does, in percent.
const LEAST_OF_SHARE: f64 = 93.5;

#[test]
fn bounds_hold_as_often_as_they_say() {
    check(REPLICATES, 93.5, false);
}

/// `make calibrate`.
#[test]
#[ignore = "a minute: make calibrate"]
fn tables() {
    println!(
        "| lateness | upper bound given, % | rate <= upper, % | rate >= lower, % | \
         share >= lower, % | share <= upper, % | said to be clustered, % |\n\
         |---|---|---|---|---|---|---|"
    );
    check(MANY, 93.5, true);
}
