//! Faults injected into every system call of a run, by strace: no hang, no silent loss, the
//! right exit status, nothing left behind, and everything reads back.
//!
//! `make test` takes a sample, always the same one; `make faults` many (`FAULTS=N`).

mod cases;
mod outcome;
mod run;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use cases::{Case, SCENARIOS};
use outcome::Outcome;
use punctual_harness::{need, programs, release, root};

/// Faults of `make test`.
const SAMPLE: usize = 40;
/// Runs at once. They sleep more than they work.
const AT_ONCE: usize = 4;

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

    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = outcome::judge(case, &run::run(&binary, case));
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    outcomes.push((case, outcome));
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap();
    assert_eq!(outcomes.len(), chosen.len());
    println!("{}", table(&outcomes));
    let reached = outcomes.iter().filter(|(_, outcome)| *outcome != Outcome::NotReached).count();
    assert!(reached * 2 > chosen.len(), "only {reached} of {} were reached", chosen.len());
    let wrong: Vec<&str> = outcomes
        .iter()
        .filter_map(|(_, outcome)| match outcome {
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

/// How the runs of each scenario ended, and all of them.
fn table(outcomes: &[(&Case, Outcome)]) -> String {
    let mut rows: BTreeMap<String, [u32; Outcome::NAMES.len()]> = BTreeMap::new();
    for (case, outcome) in outcomes {
        let column = Outcome::NAMES.iter().position(|name| *name == outcome.name()).unwrap();
        for row in [case.scenario.to_string(), "all".to_owned()] {
            rows.entry(row).or_default()[column] += 1;
        }
    }
    let mut text = format!("{:<56}", "load, timer, who meets the fault");
    Outcome::NAMES.iter().for_each(|name| write!(text, "{name:>14}").unwrap());
    for (row, numbers) in rows {
        write!(text, "\n{row:<56}").unwrap();
        numbers.iter().for_each(|number| write!(text, "{number:>14}").unwrap());
    }
    text
}
