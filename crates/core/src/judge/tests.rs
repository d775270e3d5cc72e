//! Judgements of records, edited ones too.

use super::*;
use crate::schema::{Latency, Outcome, What};
use proptest::prelude::*;

#[test]
fn a_warm_up_later_than_the_deadline_is_a_condition() {
    let noted = |max, deadline| {
        let what = What::Latency(Latency { warmup_max_ns: max, ..Latency::default() });
        let mut cell = Cell::new(String::new(), String::new(), "none".to_owned(), 1, what);
        note_warm_up(&mut cell, deadline);
        note_warm_up(&mut cell, deadline);
        cell.conditions.into_iter().map(|condition| condition.id).collect::<Vec<_>>()
    };
    assert_eq!(noted(Some(6_999_000), Some(6_000_000)), ["warmup-later-than-deadline"]);
    for (max, deadline) in
        [(Some(6_000_000), Some(6_000_000)), (None, Some(1)), (Some(-5), Some(1)), (Some(9), None)]
    {
        assert_eq!(noted(max, deadline), [""; 0], "{max:?} {deadline:?}");
    }
}

/// What somebody may write into a record about a thread.
#[derive(Debug, Clone)]
struct Said {
    max: Option<i64>,
    exceedances: u64,
    episodes: Option<u64>,
    outcome: Outcome,
}

/// And into it about the run.
#[derive(Debug, Clone)]
struct Edits {
    keys: &'static str,
    deadline_ns: Option<u64>,
    threads: [Said; 2],
    cell_max: Option<i64>,
    cell_episodes: Option<u64>,
    cell_state: CellState,
    state: RunState,
    outcome: Outcome,
    judged: bool,
}

fn outcomes() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::None),
        Just(Outcome::Pass),
        Just(Outcome::Skipped),
        Just(Outcome::Inconclusive),
        Just(Outcome::Fail)
    ]
}

/// Latencies around the deadlines, and some at the ends of what can be recorded.
fn latencies() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        1 => Just(None),
        6 => (0_i64..4).prop_map(|n| Some(100_000 + n - 1)),
        2 => Just(Some(28_176)),
        1 => Just(Some(i64::MAX)),
        1 => Just(Some(-5)),
    ]
}

prop_compose! {
    fn said()(
        max in latencies(),
        exceedances in prop_oneof![Just(0), 0_u64..40, Just(u64::MAX)],
        episodes in prop::option::of(0_u64..40),
        outcome in outcomes(),
    ) -> Said {
        Said { max, exceedances, episodes, outcome }
    }
}

prop_compose! {
    fn edits()(
        keys in prop::sample::select(vec![
            "",
            "confidence = 0.99",
            "episodes = \"1/h\"",
            "tolerate_episodes = \"6/min\"",
            "tolerate = 0.01",
            "singly = true",
        ]),
        deadline_ns in prop_oneof![Just(None), (100_000_u64..100_003).prop_map(Some)],
        threads in [said(), said()],
        cell_max in latencies(),
        cell_episodes in prop::option::of(0_u64..40),
        cell_state in prop::sample::select(vec![
            CellState::Complete,
            CellState::Interrupted,
            CellState::Failed,
            CellState::Skipped,
            CellState::Pending,
            CellState::Running,
        ]),
        state in prop::sample::select(vec![
            RunState::Complete,
            RunState::Interrupted,
            RunState::Failed,
        ]),
        outcome in outcomes(),
        judged in any::<bool>(),
    ) -> Edits {
        Edits {
            keys,
            deadline_ns,
            threads,
            cell_max,
            cell_episodes,
            cell_state,
            state,
            outcome,
            judged,
        }
    }
}

fn episodes(count: u64) -> Episodes {
    Episodes {
        count,
        size_sum: count,
        size_sum_sq: count,
        seconds_late: count,
        observed_ns: 60_000_000_000,
        ..Episodes::default()
    }
}

/// A record into which this has been written.
fn edited(edits: &Edits) -> Run {
    let seed = include_str!("../../../../fuzz/seeds/run_json/simulated");
    let mut run: Run = serde_json::from_str(seed).unwrap();
    run.cells.truncate(1);
    let keys = if edits.deadline_ns.is_some() { edits.keys } else { "" };
    let deadline =
        edits.deadline_ns.map_or_else(String::new, |ns| format!("deadline = \"{ns}ns\""));
    let text = format!("name = \"p\"\n{deadline}\n{keys}\n[[cell]]\nprobe = \"wakeup\"");
    run.plan = Plan::from_toml(&text).unwrap();
    (run.state, run.judged, run.verdict.outcome) = (edits.state, edits.judged, edits.outcome);
    let cell = &mut run.cells[0];
    (cell.state, cell.verdict.outcome) = (edits.cell_state, edits.outcome);
    let latency = cell.latency_mut().unwrap();
    latency.stats.max = edits.cell_max;
    latency.episodes = edits.cell_episodes.map(episodes);
    for (thread, said) in latency.threads.iter_mut().zip(&edits.threads) {
        thread.stats.max = said.max;
        thread.verdict.exceedances = said.exceedances;
        thread.verdict.outcome = said.outcome;
        thread.episodes = said.episodes.map(episodes);
    }
    run
}

proptest! {
    /// Whatever a record says of itself, outcome, maximum and deadline agree.
    #[test]
    fn no_verdict_contradicts_the_maximum_and_the_deadline(edits in edits()) {
        let mut run = edited(&edits);
        judge_record(&mut run);
        let verdict = run.verdict.clone();
        let max = edits.threads.iter().filter_map(|said| said.max).max();
        prop_assert_eq!(run.cells[0].max_ns(), max);
        prop_assert_eq!(verdict.deadline_ns, edits.deadline_ns);
        let Some(deadline) = edits.deadline_ns else {
            prop_assert_eq!(verdict.outcome, Outcome::None);
            return Ok(());
        };
        let late = max.is_some_and(|max| u64::try_from(max).is_ok_and(|max| max > deadline));
        prop_assert_eq!(verdict.exceedances > 0, late, "{:?}", verdict);
        prop_assert_ne!(verdict.outcome, Outcome::None);
        if run.plan.tolerate.is_none() && run.plan.tolerate_episodes.is_none() {
            prop_assert_eq!(verdict.outcome == Outcome::Fail, late, "{:?}", verdict);
        } else if verdict.outcome == Outcome::Fail {
            prop_assert!(late, "{:?}", verdict);
        }
        if let Some(max) = max {
            let sign = if late { '>' } else { '<' };
            let first = &verdict.because[0];
            prop_assert!(first.starts_with(&format!("max {} {sign}", human_ns(max))), "{}", first);
        }
        if run.state != RunState::Complete || run.cells[0].state != CellState::Complete {
            prop_assert_ne!(verdict.outcome, Outcome::Pass);
        }
    }

    /// No verdict of a record has a say in the next.
    #[test]
    fn a_verdict_is_a_function_of_the_samples(edits in edits(), outcome in outcomes()) {
        let mut run = edited(&edits);
        let mut other = edited(&Edits { outcome, judged: !edits.judged, ..edits });
        for thread in &mut other.cells[0].latency_mut().unwrap().threads {
            thread.verdict = Verdict { exceedances: thread.verdict.exceedances, ..Verdict::default() };
        }
        judge_record(&mut run);
        judge_record(&mut other);
        prop_assert_eq!(&run.verdict, &other.verdict);
        judge_record(&mut other);
        prop_assert_eq!(&run, &other);
    }
}
