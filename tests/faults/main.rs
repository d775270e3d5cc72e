//! Faults injected into every system call of a run, by strace: no hang, no silent loss, the
//! right exit status, nothing left behind, and everything reads back.
//!
//! `make test` takes a sample, always the same one; `make faults` many (`FAULTS=N`).

mod cases;
mod outcome;
mod run;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cases::{Case, SCENARIOS};
use outcome::Outcome;
use punctual_harness::{Tally, keep, need, programs, release, root};

/// Faults of `make test`.
const SAMPLE: usize = 40;
/// Runs at once. They sleep more than they work.
const AT_ONCE: usize = 4;

/// A case and how its run ended.
struct Ended<'c> {
    case: &'c Case,
    outcome: Outcome,
    took: Duration,
    survival: Duration,
}

#[test]
fn every_fault_is_answered() {
    let binary = need!(release());
    need!(root());
    need!(programs(&["strace"]));
    let asked = std::env::var("FAULTS").ok().map(|number| number.parse().expect("FAULTS=N"));
    let all: Vec<Case> = SCENARIOS
        .into_iter()
        .flat_map(|scenario| {
            let counts = cases::counts(&run::trace(&binary, scenario));
            assert!(counts.len() > 20, "{scenario}: strace saw only {counts:?}");
            cases::cases(scenario, &counts)
        })
        .collect();
    let (known, calls) = (all.len(), distinct_calls(&all));
    let chosen = cases::sample(all, asked.unwrap_or(SAMPLE));
    println!("{} of {known} cases, in {calls} system calls", chosen.len());

    let begin = Instant::now();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ran = run::run(&binary, case);
                    let outcome = outcome::judge(case, &ran);
                    let ended = Ended { case, outcome, took: ran.took, survival: ran.survival };
                    outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap();
    assert_eq!(outcomes.len(), chosen.len());
    keep(&summary(&outcomes, known, begin.elapsed()));
    let reached = outcomes.iter().filter(|one| one.outcome != Outcome::NotReached).count();
    assert!(reached * 2 > chosen.len(), "only {reached} of {} were reached", chosen.len());
    let wrong: Vec<&str> = outcomes
        .iter()
        .filter_map(|one| match &one.outcome {
            Outcome::Wrong(what) => Some(what.as_str()),
            _ => None,
        })
        .collect();
    assert!(wrong.is_empty(), "{} went wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn distinct_calls(all: &[Case]) -> usize {
    let mut calls: Vec<&str> = all.iter().map(|case| case.call.as_str()).collect();
    calls.sort_unstable();
    calls.dedup();
    calls.len()
}

/// How the runs ended, by scenario and by system call.
fn summary(ended: &[Ended<'_>], known: usize, took: Duration) -> String {
    let mut by_scenario =
        Tally::new("load, timer, whether all threads or main meet it", Outcome::NAMES);
    let mut by_call = Tally::new("system call", Outcome::NAMES);
    for Ended { case, outcome, .. } in ended {
        let numbers = Outcome::NAMES.map(|name| u64::from(name == outcome.name()));
        by_scenario.add(&case.scenario.to_string(), numbers);
        by_call.add(&case.call, numbers);
    }
    let longest = |of: fn(&Ended<'_>) -> Duration| ended.iter().map(of).max().unwrap_or_default();
    format!(
        "Faults: {} of {known} cases, {AT_ONCE} at once, in {:.0} s. Each is a run of 300 ms in \
         which strace lets one\nsystem call fail, at its first, second, middle or last time, with \
         an error of its man page.\nThe longest took {:.1} s (more than {} s: it hung). The last \
         process was gone {:.2} s after punctual (limit {} s).\n\n{}\n\n{}\n\n{}",
        ended.len(),
        took.as_secs_f64(),
        longest(|one| one.took).as_secs_f64(),
        run::LIMIT.as_secs(),
        longest(|one| one.survival).as_secs_f64(),
        run::SURVIVAL.as_secs(),
        by_scenario.text(),
        by_call.sorted().text(),
        Outcome::MEANING,
    )
}
