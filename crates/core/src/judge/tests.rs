//! Judgements of records, edited ones too.

use std::collections::BTreeMap;

use super::*;
use crate::block::{Block, Moments, Spell, coarse_bin};
use crate::histogram::SignedHistogram;
use crate::schema::{Latency, Outcome, Stats, What};
use crate::units::SECOND_NS;
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

/// A run of a thread that found these latencies, ns, in one second, with all its recordings; judged
/// while it was measured, by this deadline.
fn measured(latencies: &[i64], deadline_ns: Option<u64>) -> LoadedRun {
    let seed = include_str!("../../../../fuzz/seeds/run_json/simulated");
    let mut run: Run = serde_json::from_str(seed).unwrap();
    run.cells.truncate(1);
    run.state = RunState::Complete;
    let deadline = deadline_ns.map_or_else(String::new, |ns| format!("deadline = \"{ns}ns\""));
    let text = format!("name = \"p\"\n{deadline}\n[[cell]]\nprobe = \"wakeup\"");
    run.plan = Plan::from_toml(&text).unwrap();
    let cell = &mut run.cells[0];
    cell.state = CellState::Complete;
    cell.conditions.clear();
    let late = |ns: &&i64| deadline_ns.is_some_and(|deadline| ns.unsigned_abs() > deadline);
    let exceeded = latencies.iter().filter(late).count() as u64;
    let (count, max) = (latencies.len() as u64, latencies.iter().copied().max());
    let mut histogram = SignedHistogram::new();
    latencies.iter().for_each(|ns| histogram.record(*ns));
    let mut coarse = BTreeMap::new();
    latencies.iter().for_each(|ns| *coarse.entry(coarse_bin(*ns)).or_default() += 1);
    let moments = Moments {
        count,
        exceeded,
        min: latencies.iter().copied().min().unwrap(),
        max: max.unwrap(),
        max_at: SECOND_NS / 2,
        sum: latencies.iter().map(|ns| i128::from(*ns)).sum(),
        ..Moments::EMPTY
    };
    let coarse = coarse.into_iter().collect();
    let block = Block { thread: 0, series: 0, index: 0, moments, coarse };
    let mut data = CellData::default();
    data.threads.push(ThreadData::default());
    let series = data.threads[0].series_mut(0);
    (series.histogram, series.blocks) = (Some(histogram.sparse()), vec![block]);
    let latency = cell.latency_mut().unwrap();
    latency.warmup_max_ns = Some(7_000_000);
    latency.threads.truncate(1);
    let stats = Stats { samples: count, scheduled: count, max, ..Stats::default() };
    (latency.stats, latency.threads[0].stats) = (stats.clone(), stats);
    latency.threads[0].verdict = Verdict { exceedances: exceeded, ..Verdict::default() };
    (latency.threads[0].episodes, latency.episodes) = (None, None);
    if deadline_ns.is_some() {
        let spell = Spell { thread: 0, from: 1, to: SECOND_NS / 2, late: exceeded };
        tell_episodes(cell, vec![if exceeded > 0 { vec![spell] } else { Vec::new() }], false);
    }
    let mut loaded = LoadedRun {
        run,
        cells: vec![data],
        legs: None,
        damage: Vec::new(),
        label: None,
        side: None,
    };
    ByPlan.cell(&mut loaded.run, 0, None);
    ByPlan.run(&mut loaded.run);
    loaded
}

/// From 1 to 1,000 us.
fn microseconds() -> Vec<i64> {
    (1..=1_000).map(|us| us * 1_000).collect()
}

fn exceedances_of(loaded: &LoadedRun) -> u64 {
    loaded.run.verdict.exceedances
}

#[test]
fn a_recorded_number_of_late_ones_stays_unless_the_recordings_exclude_it() {
    let told = |recorded: u64, deadline_ns: u64| {
        let mut loaded = measured(&microseconds(), Some(500_000));
        loaded.run.plan.deadline_ns = Some(deadline_ns);
        loaded.run.cells[0].latency_mut().unwrap().threads[0].verdict.exceedances = recorded;
        judge_recorded(&mut loaded);
        let in_seconds =
            loaded.run.cells[0].latency().unwrap().episodes.as_ref().unwrap().in_seconds;
        (exceedances_of(&loaded), in_seconds)
    };
    // The bin of 500 us is less than 1 % wide.
    assert_eq!(told(500, 500_000), (500, false));
    assert_eq!(told(499, 500_000), (499, false));
    for (recorded, deadline_ns, late) in
        [(7, 500_000, 500), (1_001, 500_000, 500), (500, 100_000, 900), (500, 900_000, 100)]
    {
        let (found, in_seconds) = told(recorded, deadline_ns);
        assert!((late..late + 10).contains(&found) && in_seconds, "{recorded}: {found}");
    }
    // The maximum is exact.
    assert_eq!(told(500, 1_000_000).0, 0);
}

#[test]
fn a_part_of_the_recordings_excludes_nothing() {
    let mut loaded = measured(&microseconds(), Some(500_000));
    let samples = 2_000;
    let latency = loaded.run.cells[0].latency_mut().unwrap();
    latency.threads[0].stats.samples = samples;
    latency.threads[0].verdict.exceedances = 1_400;
    judge_recorded(&mut loaded);
    assert_eq!(exceedances_of(&loaded), 1_400);
}

/// Without what can only be known to within a bin: how many were late, and when.
fn sentences(loaded: &LoadedRun) -> Vec<String> {
    let all = loaded.run.verdict.because.iter();
    let exact = all.filter(|text| !text.contains("later than") && !text.contains("one time"));
    exact.cloned().collect()
}

#[test]
fn another_deadline_is_judged_as_a_run_with_it() {
    let all = [None, Some(300_000), Some(6_000_000), Some(8_000_000)];
    for (recorded, asked) in all.into_iter().flat_map(|one| all.map(|other| (one, other))) {
        let mut again = measured(&microseconds(), recorded);
        let plan = Plan { deadline_ns: asked, ..again.run.plan.clone() };
        judge_again(&mut again, plan);
        let expected = measured(&microseconds(), asked);
        let what = format!("{recorded:?}, {asked:?}");
        let (cell, like) = (&again.run.cells[0], &expected.run.cells[0]);
        assert_eq!(cell.conditions, like.conditions, "{what}");
        assert_eq!(again.run.verdict.outcome, expected.run.verdict.outcome, "{what}");
        assert_eq!(cell.verdict.outcome, like.verdict.outcome, "{what}");
        assert_eq!(sentences(&again), sentences(&expected), "{what}");
        let is_late = asked == Some(300_000);
        assert_eq!(exceedances_of(&again) > 0, is_late, "{what}");
        let warm_up = cell.conditions.iter().any(|one| one.id == "warmup-later-than-deadline");
        assert_eq!(warm_up, asked.is_some_and(|deadline| deadline < 7_000_000), "{what}");
    }
}

#[test]
fn a_cell_that_was_not_reached_has_no_verdict_by_another_deadline_either() {
    let mut loaded = measured(&microseconds(), Some(300_000));
    let mut pending = loaded.run.cells[0].clone();
    pending.state = CellState::Pending;
    let latency = pending.latency_mut().unwrap();
    latency.stats = Stats::default();
    latency.threads.clear();
    loaded.run.cells.push(pending);
    loaded.cells.push(CellData::default());
    judge_recorded(&mut loaded);
    assert_eq!(loaded.run.cells[1].verdict, Verdict::default());
    let plan = Plan { deadline_ns: Some(2_000_000), ..loaded.run.plan.clone() };
    judge_again(&mut loaded, plan);
    assert_eq!(loaded.run.cells[1].verdict, Verdict::default());
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
