//! What is claimed, held against simulations in which the truth is known. Seeds are fixed, so that
//! a failure is one of the claim and not of chance; `make calibrate` repeats all with ten times as
//! many replicates and prints the tables of METHODOLOGY.md.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "simulated times and shares"
)]

mod bounds;
mod generators;
mod passes;
mod pools;
mod real;
mod shares;

use generators::MS;
use punctual_core::block::Spell;
use punctual_core::plan::Plan;
use punctual_core::schema::{Outcome, Quantity, Run, Stats};
use punctual_core::stats::episodes;
use punctual_core::verdict::{Evidence, Rule, judge_thread};

/// Replicates of each case in the ordinary tests.
const REPLICATES: u64 = 2_000;

/// And in `make calibrate`.
const MANY: u64 = 20_000;

/// The seed, fixed before the first run.
const SEED: u64 = 1;

/// Share of `count` in `of`, in percent.
fn percent(count: u64, of: u64) -> f64 {
    100.0 * count as f64 / of as f64
}

/// Of a plan with these keys, and a deadline of 200 us.
fn rule(keys: &str) -> Rule {
    let text = format!("name = \"p\"\ndeadline = \"200us\"\n{keys}\n[[cell]]\nprobe = \"clock\"");
    let run: Run =
        serde_json::from_str(include_str!("../../../../fuzz/seeds/run_json/simulated")).unwrap();
    Rule::of(&Plan::from_toml(&text).unwrap(), &run.board)
}

/// What a run of so many releases, 1 ms apart, comes to that was late in these spells.
fn outcome(spells: Vec<Spell>, releases: u64, rule: &Rule) -> Outcome {
    let exceedances = spells.iter().map(|spell| spell.late).sum();
    let stats = Stats { scheduled: releases, samples: releases, ..Stats::default() };
    let found = episodes(spells, releases * MS);
    let evidence = Evidence {
        stats: &stats,
        exceedances,
        interval_ns: Some(MS),
        primary: &Quantity::default(),
        episodes: Some(&found),
        observed_share: 1.0,
    };
    judge_thread(&evidence, rule).outcome
}
