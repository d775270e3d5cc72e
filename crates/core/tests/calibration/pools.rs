//! What is said of several runs, of boots that differ in how often they are late.

use std::collections::BTreeMap;

use punctual_core::judge::judge_record;
use punctual_core::plan::Plan;
use punctual_core::random::Random;
use punctual_core::schema::{Episodes, Run};
use punctual_core::units::SECOND_NS;
use punctual_core::verdict::pool;

use super::generators::{exponential, gamma, uniform};
use super::{MANY, SEED, percent};

/// The time of each run, s.
const SECONDS: f64 = 60.0;

/// Late activations a second, on average over all boots.
const MEAN: f64 = 0.02;

/// How the boots of a kernel differ.
#[derive(Debug, Clone, Copy)]
enum Boots {
    Equal,
    /// Rates of a gamma distribution of this shape.
    Gamma(f64),
    /// One in ten has all of it.
    OneInTen,
}

const KINDS: [(&str, Boots); 4] = [
    ("equal", Boots::Equal),
    ("gamma, shape 0.5", Boots::Gamma(0.5)),
    ("gamma, shape 0.2", Boots::Gamma(0.2)),
    ("one in ten has all of it", Boots::OneInTen),
];

impl Boots {
    fn rate(self, random: &mut Random) -> f64 {
        match self {
            Self::Equal => MEAN,
            Self::Gamma(shape) => gamma(random, shape) * MEAN / shape,
            Self::OneInTen => f64::from(u8::from(uniform(random) < 0.1)) * 10.0 * MEAN,
        }
    }

    /// The share of boots that are late in the time of a run.
    fn late(self) -> f64 {
        match self {
            Self::Equal => 1.0 - (-MEAN * SECONDS).exp(),
            Self::Gamma(shape) => 1.0 - (1.0 + SECONDS * MEAN / shape).powf(-shape),
            Self::OneInTen => 0.1 * (1.0 - (-10.0 * MEAN * SECONDS).exp()),
        }
    }
}

/// The percentage in the sentence on `late` of `runs`.
fn printed(late: u64, runs: u64) -> f64 {
    let seed = include_str!("../../../../fuzz/seeds/run_json/simulated");
    let text = "name = \"p\"\ndeadline = \"1us\"\n[[cell]]\nprobe = \"sim\"";
    let plan = Plan::from_toml(text).unwrap();
    let run = |number: u64| -> Run {
        let mut run: Run = serde_json::from_str(seed).unwrap();
        run.run_id = number.to_string();
        run.plan = plan.clone();
        run.cells.truncate(1);
        let latency = run.cells[0].latency_mut().unwrap();
        latency.episodes =
            Some(Episodes { observed_ns: SECONDS as u64 * SECOND_NS, ..Episodes::default() });
        for thread in &mut latency.threads {
            thread.stats.max = Some(if number < late { 1_001 } else { 1_000 });
        }
        judge_record(&mut run);
        run
    };
    let all: Vec<Run> = (0..runs).map(run).collect();
    let pooled = pool(&all.iter().collect::<Vec<_>>()).unwrap();
    let said = pooled.verdict.because.iter().find(|said| said.contains("of runs")).unwrap();
    match said.split_once("up to ") {
        Some((_, rest)) => rest.split_once(" %").unwrap().0.parse().unwrap(),
        None => {
            assert!(said.contains("no upper bound on the share of runs"), "{said}");
            100.0
        }
    }
}

/// How often the sentence holds, in percent.
fn held(trials: u64, boots: Boots, runs: u64) -> f64 {
    let said: BTreeMap<u64, f64> = (0..=runs).map(|late| (late, printed(late, runs))).collect();
    let mut random = Random::new(SEED);
    let mut is_late = || {
        let rate = boots.rate(&mut random);
        rate > 0.0 && exponential(&mut random, 1.0 / rate) < SECONDS
    };
    let mut trial = || {
        let late = (0..runs).map(|_| u64::from(is_late())).sum();
        u64::from(said[&late] >= 100.0 * boots.late())
    };
    percent((0..trials).map(|_| trial()).sum(), trials)
}

#[test]
fn the_share_of_late_boots_is_as_is_said_however_boots_differ() {
    for (name, boots) in KINDS {
        for runs in [3, 8, 20] {
            let held = held(5_000, boots, runs);
            assert!(held >= 93.5, "{name}, {runs} runs: {held}");
        }
    }
    // That the boots are those of the kind.
    let mut random = Random::new(SEED);
    for (name, boots) in KINDS {
        let late = |random: &mut Random| 1.0 - (-boots.rate(random) * SECONDS).exp();
        let mean = (0..100_000).map(|_| late(&mut random)).sum::<f64>() / 100_000.0;
        assert!((mean - boots.late()).abs() < 0.005, "{name}: {mean}, {}", boots.late());
    }
}

#[test]
#[ignore = "a minute: make calibrate"]
fn tables() {
    println!("| boots | share that is late | 3 runs | 8 | 20 |\n|---|---|---|---|---|");
    for (name, boots) in KINDS {
        print!("| {name} | {:.1} % |", 100.0 * boots.late());
        for runs in [3, 8, 20] {
            print!(" {:.1} |", held(MANY, boots, runs));
        }
        println!();
    }
}
