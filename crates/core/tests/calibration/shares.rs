//! How often a soft deadline passes, or fails, although the share that is late is not what is claimed.

use punctual_core::block::Spell;
use punctual_core::random::Random;
use punctual_core::schema::Outcome;
use punctual_core::verdict::Rule;

use crate::generators::{MS, stalls};
use crate::{MANY, REPLICATES, SEED, outcome, percent, rule};

const LENGTHS_S: [f64; 4] = [0.05, 0.5, 3.0, 10.0];
const SHARES: [f64; 2] = [0.005, 0.05];
const SECONDS: [u64; 3] = [30, 60, 600];

fn tolerating(share: f64) -> Rule {
    rule(&format!("tolerate = {share:?}"))
}

/// Of so many runs: how many pass at a hair less than the truth, and fail at a hair more.
fn wrong(replicates: u64, length_s: f64, fixed: bool, share: f64, seconds: u64) -> [f64; 2] {
    let mut random = Random::new(SEED);
    let (less, more) = (tolerating(share * 0.9999), tolerating(share * 1.0001));
    let (mut passes, mut fails) = (0, 0);
    for _ in 0..replicates {
        let spells = stalls(&mut random, length_s, fixed, share, seconds as f64);
        passes += u64::from(outcome(spells.clone(), seconds * 1_000, &less) == Outcome::Pass);
        fails += u64::from(outcome(spells, seconds * 1_000, &more) == Outcome::Fail);
    }
    [percent(passes, replicates), percent(fails, replicates)]
}

/// 0.5 % of 600,000 activations, independently late, against 5 %.
fn independent(replicates: u64) -> f64 {
    let mut random = Random::new(SEED);
    let rule = tolerating(0.05);
    let passes = (0..replicates).filter(|_| {
        let late = (0..600_000).filter(|_| random.below(200) == 0);
        let spell =
            |at: u64| Spell { thread: 0, from: at * MS, to: at * MS + MS * 3 / 10, late: 1 };
        outcome(late.map(spell).collect(), 600_000, &rule) == Outcome::Pass
    });
    percent(passes.count() as u64, replicates)
}

fn check(replicates: u64, most: f64, tell: bool) {
    for fixed in [true, false] {
        for length_s in LENGTHS_S {
            for share in SHARES {
                let found =
                    SECONDS.map(|seconds| wrong(replicates, length_s, fixed, share, seconds));
                if tell {
                    let each = found.map(|[passes, fails]| format!("{passes:.2} / {fails:.2}"));
                    let how = if fixed { "each" } else { "on average" };
                    println!(
                        "| {length_s} s {how}, {:.1} % | {} |",
                        share * 100.0,
                        each.join(" | ")
                    );
                }
                for of in found.as_flattened() {
                    assert!(*of <= most, "{length_s} s, {share}, fixed {fixed}: {found:?}");
                }
            }
        }
    }
}

#[test]
fn a_share_is_rarely_claimed_that_is_not_true() {
    check(REPLICATES / 4, 9.0, false);
}

#[test]
fn independent_lateness_below_the_share_passes() {
    let passes = independent(20);
    assert!(passes >= 95.0, "{passes} %");
}

/// `make calibrate`.
#[test]
#[ignore = "minutes: make calibrate"]
fn tables() {
    let titles = SECONDS.map(|seconds| format!("{seconds} s"));
    println!(
        "| stalls, share | {} |\n|---|---|---|---|\nwrong PASS / wrong FAIL, % of {MANY}",
        titles.join(" | ")
    );
    check(MANY, 7.0, true);
    println!("independent, 0.5 % against 5 %: {:.1} % of 400 pass", independent(400));
}
