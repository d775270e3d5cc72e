use super::*;
use crate::plan::Plan;
use crate::schema::{
    Board, BoardKind, Broke, Cell, CellState, Condition, Cost, Counter, DRIFT, Lab, Latency,
    LoadWork, Outcome, Placement, Quantity, RunState, Stats, Tells, Thread, Verdict, What,
};
use crate::units::SECOND_NS;
use proptest::prelude::*;

mod cells;
mod episodes;
mod pool;

const MS: u64 = 1_000_000;

fn stats(n: u64, max: i64) -> Stats {
    Stats { scheduled: n, samples: n, max: Some(max), ..Stats::default() }
}

/// Of a plan whose cells are to be measured anywhere.
fn judge_run(state: RunState, cells: &[Cell], rule: &Rule) -> Verdict {
    super::judge_run(state, cells, &[], rule)
}

fn board(lab: Option<Lab>) -> Board {
    Board {
        name: String::new(),
        kind: BoardKind::Local,
        fingerprint: String::new(),
        identity: Vec::new(),
        cpu_model: String::new(),
        cpus: 1,
        hypervisor: None,
        turn_wait_ns: None,
        marks: None,
        modules: Vec::new(),
        lab,
    }
}

fn virtual_board(counted: bool) -> Board {
    board(Some(Lab { counted, ..Lab::default() }))
}

/// Activations are counted one by one.
fn hard() -> Rule {
    let rule = Rule::of(&Plan::new("test"), &board(None));
    Rule { deadline_ns: Some(200_000), singly: true, ..rule }
}

fn soft(tolerated: f64) -> Rule {
    Rule { tolerate: Some(tolerated), ..hard() }
}

fn activations() -> Quantity {
    Quantity {
        noun: "activation".to_owned(),
        nouns: "activations".to_owned(),
        ..Quantity::default()
    }
}

fn judged_thread(stats: &Stats, exceedances: u64, rule: &Rule) -> Verdict {
    let primary = &activations();
    judge_thread(
        &Evidence {
            stats,
            exceedances,
            interval_ns: Some(MS),
            primary,
            episodes: None,
            observed_share: 1.0,
        },
        rule,
    )
}

/// The largest latency of a thread with `k` late releases.
fn max_of(k: u64) -> i64 {
    if k == 0 { 104_100 } else { 250_000 + i64::try_from(k).unwrap() }
}

fn judge(n: u64, k: u64, rule: &Rule) -> Verdict {
    judged_thread(&stats(n, max_of(k)), k, rule)
}

fn cell(state: CellState, verdicts: Vec<Verdict>) -> Cell {
    let threads = verdicts.into_iter().zip(0..).map(|(verdict, thread)| Thread {
        thread,
        placement: Placement { cpu: Some(thread), ..Placement::default() },
        stats: stats(30_000, max_of(verdict.exceedances)),
        max_at_ns: Some(10_033_000_000),
        verdict,
        ..Thread::default()
    });
    let threads: Vec<Thread> = threads.collect();
    let latency = Latency {
        probe: "wakeup".to_owned(),
        primary: activations(),
        interval_ns: Some(MS),
        stats: Stats { max: threads.iter().filter_map(|t| t.stats.max).max(), ..Stats::default() },
        threads,
        ..Latency::default()
    };
    let key = "wakeup @ none @ 30s".to_owned();
    let what = What::Latency(latency);
    Cell { state, ..Cell::new(key, String::new(), "none".to_owned(), 30_000 * MS, what) }
}

fn judged(state: CellState, verdicts: Vec<Verdict>) -> Cell {
    let mut cell = cell(state, verdicts);
    cell.verdict = judge_cell(&cell, &hard());
    cell
}

#[test]
fn enough_releases_without_an_exceedance_pass() {
    let verdict = judge(30_005, 0, &hard());
    assert_eq!(verdict.outcome, Outcome::Pass);
    assert_eq!(
        verdict.because,
        [
            "none of 30,005 activations was later than 200 us",
            "if late activations come singly, at most 1 in 10,016 is late (95 % confidence)",
        ]
    );
    assert!(verdict.upper_bound.unwrap() <= 1e-4);
}

#[test]
fn the_first_release_too_few_is_inconclusive() {
    assert_eq!(judge(29_956, 0, &hard()).outcome, Outcome::Pass);
    let verdict = judge(29_955, 0, &hard());
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.upper_bound.is_some());
    assert_eq!(
        judge(9_956, 0, &hard()).because[2],
        "9,956 activations are too few: 29,956 are needed to show at most 0.01 % late; run with \
         -D 30s"
    );
}

#[test]
fn one_exceedance_fails_a_hard_deadline_however_long_the_run() {
    let verdict = judged_thread(&stats(100_000_000, 1_204_000), 1, &hard());
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert_eq!(verdict.exceedances, 1);
    assert_eq!(
        verdict.because,
        ["1 of 100,000,000 activations was later than 200 us"],
        "of a missed deadline nobody asks how often it may be missed"
    );
}

#[test]
fn a_soft_deadline_weighs_both_bounds() {
    // 3 of 1e6: lower 8.18e-7, upper 7.75e-6.
    for (tolerated, outcome) in [
        (8.1e-7, Outcome::Fail),
        (8.2e-7, Outcome::Inconclusive),
        (7.75e-6, Outcome::Inconclusive),
        (7.76e-6, Outcome::Pass),
    ] {
        let verdict = judge(1_000_000, 3, &soft(tolerated));
        assert_eq!(verdict.outcome, outcome, "{tolerated}");
    }
    let verdict = judge(5_000, 3, &soft(1e-3));
    assert!(
        verdict.because[2].contains("7,752 are needed to show at most 0.1 %"),
        "{:?}",
        verdict.because
    );
    assert!(verdict.because[2].ends_with("if no more are late"));
}

#[test]
fn nothing_measured_is_no_pass() {
    let verdict = judged_thread(&Stats::default(), 0, &hard());
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert_eq!(verdict.upper_bound, None);
    assert!(verdict.because[0].starts_with("no samples"));
}

#[test]
fn without_a_deadline_nothing_is_judged() {
    let rule = Rule { deadline_ns: None, ..hard() };
    assert_eq!(judge(1_000, 0, &rule), rule.verdict(Outcome::None, vec![]));
}

#[test]
fn the_rule_is_that_of_the_board() {
    let kind = |board| {
        let rule = Rule::of(&Plan::new("test"), &board);
        (rule.deterministic, rule.plumbing)
    };
    assert_eq!(kind(board(None)), (false, false));
    assert_eq!(kind(virtual_board(true)), (true, false));
    assert_eq!(kind(virtual_board(false)), (false, true));
}

#[test]
fn a_guest_without_instruction_counting_is_not_judged() {
    let plan = Plan { deadline_ns: Some(200_000), ..Plan::new("test") };
    let rule = Rule::of(&plan, &virtual_board(false));
    let threads = vec![judge(100_000, 0, &rule), judge(100_000, 7, &rule)];
    for (verdict, exceedances) in threads.iter().zip([0, 7]) {
        assert_eq!((verdict.outcome, verdict.upper_bound), (Outcome::Inconclusive, None));
        assert_eq!(verdict.exceedances, exceedances);
    }
    let mut measured = cell(CellState::Complete, threads);
    measured.verdict = judge_cell(&measured, &rule);
    let mut pending = cell(CellState::Pending, vec![]);
    pending.verdict = judge_cell(&pending, &rule);
    let run = judge_run(RunState::Complete, &[pending.clone(), measured.clone()], &rule);
    for verdict in [&measured.verdict, &pending.verdict, &run] {
        assert_eq!(verdict.outcome, Outcome::Inconclusive);
        assert_eq!(
            verdict.because[0],
            "not a measurement: the guest ran without instruction counting, so its latencies are \
             host noise"
        );
        assert!(!verdict.because.iter().any(|s| s.contains(" threads: ")), "{verdict:?}");
    }
    let open = judge(1_000, 0, &Rule { deadline_ns: None, ..rule });
    assert_eq!((open.outcome, &open.because[..]), (Outcome::None, &[][..]));
}

#[test]
fn a_deterministic_board_gets_no_bound() {
    let rule = Rule { deterministic: true, ..hard() };
    let of_two = judge_run(
        RunState::Complete,
        &[cell(CellState::Complete, vec![judge(100, 0, &rule); 2])],
        &rule,
    );
    assert!(!of_two.because.iter().any(|s| s.contains("confidence")), "{of_two:?}");
    let pass = judge(100, 0, &rule);
    assert_eq!((pass.outcome, pass.upper_bound), (Outcome::Pass, None));
    assert!(pass.because[1].starts_with("deterministic"));
    assert_eq!(judge(100, 1, &rule).outcome, Outcome::Fail);
    let tolerant = Rule { tolerate: Some(0.01), ..rule };
    assert_eq!(judge(100, 1, &tolerant).outcome, Outcome::Pass);
    assert_eq!(judge(99, 1, &tolerant).outcome, Outcome::Fail);
}

/// A board with 4 CPUs that wait up to 1.9 ms for their turns.
fn taking_turns(turn_wait_ns: Option<u64>) -> Board {
    let lab = Lab { counted: true, cpus: 4, ..Lab::default() };
    Board { cpus: 4, turn_wait_ns, ..board(Some(lab)) }
}

#[test]
fn a_deadline_is_not_failed_by_what_turns_of_cpus_explain() {
    let plan = Plan { deadline_ns: Some(100_000), ..Plan::new("test") };
    let rule = Rule::of(&plan, &taking_turns(Some(1_900_000)));
    let late = |max, rule: &Rule| judged_thread(&stats(500, max), 1, rule);
    // 4 times 100 us, and one wait.
    for (max, outcome) in [(2_300_000, Outcome::Inconclusive), (2_300_001, Outcome::Fail)] {
        let verdict = late(max, &rule);
        assert_eq!((verdict.outcome, verdict.exceedances), (outcome, 1), "{max}");
    }
    assert_eq!(
        late(376_000, &rule).because[1],
        "the 4 CPUs of this board take turns and one waits up to 1.900 ms, so what takes 100.0 us \
         may take 2.300 ms here: whether the kernel was late is open; --cpus 1 tells"
    );
    assert_eq!(judge(500, 0, &rule).outcome, Outcome::Pass);
    assert!(judge(500, 0, &rule).because[1].starts_with("deterministic: nearly every run"));

    let soft = Rule { tolerate: Some(1e-3), ..rule };
    assert_eq!(late(9_000_000, &soft).outcome, Outcome::Inconclusive);
    assert_eq!(judged_thread(&stats(1_000, 376_000), 1, &soft).outcome, Outcome::Pass);

    let measured = cell(CellState::Complete, vec![late(376_000, &rule)]);
    let run = judge_run(RunState::Complete, &[measured], &rule);
    assert_eq!(run.outcome, Outcome::Inconclusive);
    assert!(run.because.iter().any(|because| because.contains("take turns")), "{run:?}");
}

#[test]
fn turns_of_unknown_length_explain_everything() {
    let plan = Plan { deadline_ns: Some(100_000), ..Plan::new("test") };
    let of = |board: &Board| judged_thread(&stats(500, 9_000_000), 1, &Rule::of(&plan, board));
    let verdict = of(&taking_turns(None));
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.because[1].contains("how long one waits is not known: whether"));
    // One CPU has no turns to wait for.
    assert_eq!(of(&virtual_board(true)).outcome, Outcome::Fail);
    // In the guest, before the lab adds its part of the record.
    let guest = Board { lab: None, ..taking_turns(Some(1_900_000)) };
    assert_eq!(
        Rule::of(&plan, &guest).turns,
        Rule::of(&plan, &taking_turns(Some(1_900_000))).turns
    );
}
