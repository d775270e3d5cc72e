//! How often a run passes although the truth is worse than what is allowed.

use punctual_core::block::Spell;
use punctual_core::random::Random;
use punctual_core::schema::Outcome;
use punctual_core::verdict::Rule;

use crate::generators::{Lateness, Trouble, in_regimes, in_troubles, late};
use crate::{MANY, REPLICATES, SEED, outcome, percent, rule};

/// The least number of releases at 1 ms that can pass at 6/min.
const BY_EPISODES: u64 = 29_958;

/// And at a probability of 1e-4.
const SINGLY: u64 = 29_956;

/// The truth: a ten thousandth above what is allowed.
const RATE: f64 = 1.0001e-4;

const CASES: [(&str, Lateness); 5] = [
    ("independent", Lateness::Bursts(1.0)),
    ("bursts of 10", Lateness::Bursts(10.0)),
    ("bursts of 100", Lateness::Bursts(100.0)),
    ("bursts of 1,000", Lateness::Bursts(1_000.0)),
    ("stalls of 50 ms", Lateness::Stalls(50.0)),
];

fn passes(spells: Vec<Spell>, releases: u64, rule: &Rule) -> bool {
    outcome(spells, releases, rule) == Outcome::Pass
}

/// How many of so many runs pass.
fn passing(
    replicates: u64,
    mut spells: impl FnMut(&mut Random) -> Vec<Spell>,
    rule: &Rule,
    releases: u64,
) -> u64 {
    let mut random = Random::new(SEED);
    (0..replicates).map(|_| u64::from(passes(spells(&mut random), releases, rule))).sum()
}

fn by_case(replicates: u64, lateness: Lateness) -> u64 {
    let spells = |random: &mut Random| late(random, lateness, RATE, BY_EPISODES);
    passing(replicates, spells, &rule(""), BY_EPISODES)
}

const TROUBLES: [(&str, Trouble); 4] = [
    ("2 late, 0.05 to 5 s apart", Trouble { late: 2, gaps: [0.05, 5.0] }),
    ("5 late, 0.05 to 5 s apart", Trouble { late: 5, gaps: [0.05, 5.0] }),
    ("5 late, 2 to 8 s apart", Trouble { late: 5, gaps: [2.0, 8.0] }),
    ("20 late, 2 to 8 s apart", Trouble { late: 20, gaps: [2.0, 8.0] }),
];

fn by_trouble(replicates: u64, trouble: Trouble, rate: f64) -> u64 {
    let spells = |random: &mut Random| in_troubles(random, trouble, rate, BY_EPISODES);
    passing(replicates, spells, &rule(""), BY_EPISODES)
}

fn singly(replicates: u64, lateness: Lateness) -> u64 {
    let spells = |random: &mut Random| late(random, lateness, RATE / lateness.mean(), SINGLY);
    passing(replicates, spells, &rule("singly = true"), SINGLY)
}

/// The probability that nothing is late in so many activations.
fn exact(lateness: Lateness) -> f64 {
    let calm = 1.0 / RATE - lateness.mean();
    calm * RATE * ((BY_EPISODES - 1) as f64 * (-1.0 / calm).ln_1p()).exp()
}

#[test]
fn no_more_than_the_stated_share_passes_however_late_activations_come() {
    for (name, lateness) in CASES {
        let found = percent(by_case(REPLICATES, lateness), REPLICATES);
        assert!(found <= 6.5, "{name}: {found:.2} % pass");
        // Its standard error is half a point.
        let exact = 100.0 * exact(lateness);
        assert!((found - exact).abs() < 1.6 && exact <= 5.0, "{name}: {found:.2} %, {exact:.2} %");
    }
}

#[test]
fn one_by_one_the_stated_share_passes_of_independent_ones_and_far_more_of_bursts() {
    let found = percent(singly(REPLICATES, Lateness::Bursts(1.0)), REPLICATES);
    assert!((3.5..=6.5).contains(&found), "{found:.2} % pass");
    // This is why episodes are counted.
    let found = percent(singly(REPLICATES, Lateness::Bursts(100.0)), REPLICATES);
    assert!(found > 90.0, "{found:.2} % pass");
}

#[test]
fn what_is_bounded_is_how_often_trouble_begins_and_not_how_many_episodes_it_makes() {
    for (name, trouble) in TROUBLES {
        let found = percent(by_trouble(REPLICATES, trouble, RATE), REPLICATES);
        assert!(found <= 6.5, "{name}: {found:.2} % pass");
        let rate = RATE / trouble.episodes();
        let found = percent(by_trouble(REPLICATES, trouble, rate), REPLICATES);
        assert!(found > 6.5, "{name}: {found:.2} % pass");
    }
}

/// Cycles in units of the time that is measured, and in words.
const CYCLES: [(f64, &str); 4] = [(0.01, "T/100"), (1.0 / 3.0, "T/3"), (3.0, "3T"), (30.0, "30T")];

fn by_regime(replicates: u64, noisy: f64, cycle: f64) -> u64 {
    let cycle = cycle * BY_EPISODES as f64;
    let spells = |random: &mut Random| in_regimes(random, noisy, cycle, RATE, BY_EPISODES);
    passing(replicates, spells, &rule(""), BY_EPISODES)
}

#[test]
fn two_regimes_are_bounded_if_a_run_sees_many_of_both() {
    for noisy in [0.1, 0.5] {
        let found = percent(by_regime(REPLICATES, noisy, 0.01), REPLICATES);
        assert!(found <= 6.5, "{noisy}: {found:.2} % pass");
        // No method can tell of a regime that a run does not see.
        let unseen = percent(by_regime(REPLICATES, noisy, 30.0), REPLICATES);
        assert!(unseen > 20.0, "{noisy}: {unseen:.2} % pass");
    }
}

/// `make calibrate`.
#[test]
#[ignore = "a minute: make calibrate"]
fn tables() {
    println!("| late activations | exact | of {MANY} runs |\n|---|---|---|");
    for (name, lateness) in CASES {
        let found = percent(by_case(MANY, lateness), MANY);
        println!("| {name} | {:.2} % | {found:.2} % |", 100.0 * exact(lateness));
        assert!(found <= 5.5, "{name}");
    }
    println!("\n| counted one by one (--singly) | of {MANY} runs |\n|---|---|");
    for (name, lateness) in &CASES[..4] {
        println!("| {name} | {:.2} % |", percent(singly(MANY, *lateness), MANY));
    }
    assert!(percent(singly(MANY, Lateness::Bursts(1.0)), MANY) <= 5.5);
    println!("\n| trouble makes | it begins 6/min | its episodes come 6/min |\n|---|---|---|");
    for (name, trouble) in TROUBLES {
        let found = percent(by_trouble(MANY, trouble, RATE), MANY);
        let by_episodes = percent(by_trouble(MANY, trouble, RATE / trouble.episodes()), MANY);
        println!("| {name} | {found:.2} % | {by_episodes:.1} % |");
        assert!(found <= 5.5, "{name}");
    }
    println!("\n| noisy | {} |\n|---|---|---|---|---|", CYCLES.map(|(_, name)| name).join(" | "));
    for noisy in [0.1, 0.5] {
        let found = CYCLES
            .map(|(cycle, _)| format!("{:.1} %", percent(by_regime(MANY, noisy, cycle), MANY)));
        println!("| {:.0} % of the time | {} |", 100.0 * noisy, found.join(" | "));
    }
}
