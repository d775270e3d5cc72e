use super::*;
use crate::plan::Plan;
use crate::schema::{
    Board, BoardKind, Broke, Cell, CellState, Cost, Counter, Lab, Latency, LoadWork, Outcome,
    Placement, Quantity, Stats, Thread, Verdict, What,
};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn stats(n: u64, max: i64) -> Stats {
    Stats { scheduled: n, samples: n, max: Some(max), ..Stats::default() }
}

fn board(lab: Option<Lab>) -> Board {
    Board {
        name: String::new(),
        kind: BoardKind::Local,
        fingerprint: String::new(),
        cpu_model: String::new(),
        cpus: 1,
        hypervisor: None,
        lab,
    }
}

fn virtual_board(counted: bool) -> Board {
    board(Some(Lab { counted, ..Lab::default() }))
}

fn hard() -> Rule {
    Rule { deadline_ns: Some(200_000), ..Rule::of(&Plan::new("test"), &board(None)) }
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

fn judged_thread(stats: &Stats, exceedances: u64, clusters: u64, rule: &Rule) -> Verdict {
    let primary = &activations();
    judge_thread(&Evidence { stats, exceedances, clusters, interval_ns: Some(MS), primary }, rule)
}

fn judge(n: u64, k: u64, rule: &Rule) -> Verdict {
    judged_thread(&stats(n, 104_100), k, k.min(1), rule)
}

#[test]
fn enough_releases_without_an_exceedance_pass() {
    let verdict = judge(30_005, 0, &hard());
    assert_eq!(verdict.outcome, Outcome::Pass);
    assert_eq!(
        verdict.because,
        [
            "no activation was later than 200 us; at 95 % confidence (one-sided), at most 1 in \
             10,016 is later under this load",
            "a maximum seen in 30.0 s (104.1 us) has a 50 % chance of being exceeded in the next \
             30.0 s",
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
        judge(9_956, 0, &hard()).because[1],
        "not enough evidence for P <= 1e-4: needs 29,956 releases, 20.0 s more at this interval"
    );
}

#[test]
fn one_exceedance_fails_a_hard_deadline_however_long_the_run() {
    let verdict = judged_thread(&stats(100_000_000, 1_204_000), 1, 1, &hard());
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert_eq!(verdict.exceedances, 1);
    assert_eq!(
        verdict.because[0],
        "1 of 100,000,000 activations was later than 200 us, 1.204 ms at worst; at 95 % \
         confidence (one-sided), at most 1 in 21,079,860 is later under this load"
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
    assert!(verdict.because[1].contains("needs 7,752 releases"), "{:?}", verdict.because);
    assert!(verdict.because[1].ends_with("if no more are late"));
}

#[test]
fn bursts_are_counted_besides_the_exceedances() {
    let verdict = judged_thread(&stats(100_000, 900_000), 200, 2, &hard());
    assert_eq!(
        verdict.because[1],
        "the misses are bursty: all 200 fall into 2 one-second blocks (extremal index 0.01); \
         counting bursts, at most one every 15.9 s (95 %, one-sided)"
    );
    let once = judged_thread(&stats(100_000, 900_000), 200, 1, &hard());
    assert!(once.because[1].contains("fall into 1 one-second block ("), "{:?}", once.because);
    let apart = judged_thread(&stats(100_000, 900_000), 2, 2, &hard());
    assert!(!apart.because.iter().any(|s| s.contains("bursty")));
}

#[test]
fn nothing_measured_is_no_pass() {
    let verdict = judged_thread(&Stats::default(), 0, 0, &hard());
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert_eq!(verdict.upper_bound, None);
    assert!(verdict.because[0].starts_with("no samples"));
}

#[test]
fn without_a_deadline_the_maximum_is_put_in_its_place() {
    let rule = Rule { deadline_ns: None, ..hard() };
    let verdict = judge(1_000, 0, &rule);
    assert_eq!(verdict.outcome, Outcome::None);
    assert!(verdict.because[0].contains("50 % chance"));
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
    let run = judge_run(&[pending.clone(), measured.clone()]);
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
    let of_two = judge_run(&[cell(CellState::Complete, vec![judge(100, 0, &rule); 2])]);
    assert!(!of_two.because.iter().any(|s| s.contains("confidence")), "{of_two:?}");
    let pass = judge(100, 0, &rule);
    assert_eq!((pass.outcome, pass.upper_bound), (Outcome::Pass, None));
    assert!(pass.because[1].starts_with("deterministic"));
    assert_eq!(judge(100, 1, &rule).outcome, Outcome::Fail);
    let tolerant = Rule { tolerate: Some(0.01), ..rule };
    assert_eq!(judge(100, 1, &tolerant).outcome, Outcome::Pass);
    assert_eq!(judge(99, 1, &tolerant).outcome, Outcome::Fail);
}

#[test]
fn bonferroni_asks_for_more_of_each() {
    let rule = hard().for_all_of(5);
    assert!((rule.confidence - 0.99).abs() < 1e-12);
    assert_eq!(judge(29_956, 0, &rule).outcome, Outcome::Inconclusive);
    assert_eq!(judge(46_050, 0, &rule).outcome, Outcome::Pass);
}

fn cell(state: CellState, verdicts: Vec<Verdict>) -> Cell {
    let threads = verdicts.into_iter().zip(0..).map(|(verdict, thread)| Thread {
        thread,
        placement: Placement { cpu: Some(thread), ..Placement::default() },
        verdict,
        ..Thread::default()
    });
    let latency = Latency {
        probe: "wakeup".to_owned(),
        interval_ns: Some(MS),
        threads: threads.collect(),
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
fn a_cell_is_its_worst_thread() {
    let threads = vec![
        judge(30_000, 0, &hard()),
        judge(30_000, 2, &hard()),
        judge(30_000, 3, &hard()),
        judge(10, 0, &hard()),
    ];
    let upper = threads[2].upper_bound;
    let verdict = judged(CellState::Complete, threads).verdict;
    assert_eq!(verdict.outcome, Outcome::Fail);
    assert_eq!((verdict.exceedances, verdict.upper_bound), (5, upper));
    assert_eq!(verdict.because.last().unwrap(), "the worst of 4 threads: thread 2 on CPU 2");
}

#[test]
fn a_cell_that_was_not_measured_does_not_pass() {
    let mut skipped = cell(CellState::Skipped, vec![]);
    skipped.reason = Some("needs an invariant TSC (x86)".to_owned());
    skipped.verdict = judge_cell(&skipped, &hard());
    assert_eq!(skipped.verdict.outcome, Outcome::Skipped);
    assert_eq!(skipped.verdict.because, ["skipped: needs an invariant TSC (x86)"]);
    let pending = judged(CellState::Pending, vec![]);
    assert_eq!(pending.verdict.outcome, Outcome::Inconclusive);
    assert_eq!(pending.verdict.because, ["not measured: the run ended before this cell"]);
    let cost = Cell { what: What::Cost(Cost::default()), ..cell(CellState::Complete, vec![]) };
    assert_eq!(judge_cell(&cost, &hard()), hard().verdict(Outcome::None, vec![]));
}

#[test]
fn a_cell_cut_short_keeps_its_verdict_and_says_so() {
    for (n, k, outcome) in
        [(30_000, 0, Outcome::Pass), (30_000, 1, Outcome::Fail), (300, 0, Outcome::Inconclusive)]
    {
        let cut = judged(CellState::Interrupted, vec![judge(n, k, &hard())]).verdict;
        assert_eq!(cut.outcome, outcome);
        assert!(cut.because.last().unwrap().starts_with("the cell was interrupted"));
    }
}

#[test]
fn a_break_is_worse_than_too_little_evidence_and_better_than_a_missed_deadline() {
    let broken = |k, rule: &Rule| {
        let mut cell = cell(CellState::Interrupted, vec![judge(300, k, rule)]);
        cell.latency_mut().unwrap().broke = Some(Broke {
            limit_ns: 100_000,
            latency_ns: 104_100,
            thread: 1,
            cpu: Some(3),
            at_ns: Some(757_000_000),
        });
        cell.verdict = judge_cell(&cell, rule);
        cell
    };
    let text = "104.1 us > break value 100 us (thread 1, CPU 3, at 757.000 ms)";
    let unjudged = Rule { deadline_ns: None, ..hard() };
    for (k, rule, outcome, place) in [
        (0, hard(), Outcome::Break, 0),
        (0, unjudged, Outcome::Break, 0),
        (2, hard(), Outcome::Fail, 1),
    ] {
        let cell = broken(k, &rule);
        assert_eq!(cell.verdict.outcome, outcome);
        assert_eq!(cell.verdict.because[place], text);
        let open = judged(CellState::Complete, vec![judge(300, 0, &hard())]);
        assert_eq!(judge_run(&[open, cell]).outcome, outcome);
    }
}

#[test]
fn a_run_is_its_worst_cell() {
    let pass = || judged(CellState::Complete, vec![judge(30_000, 0, &hard()); 2]);
    let skipped = || judged(CellState::Skipped, vec![]);
    let open = || judged(CellState::Complete, vec![judge(300, 0, &hard())]);
    let fail = || judged(CellState::Complete, vec![judge(300, 1, &hard())]);
    for (cells, outcome) in [
        (vec![pass(), pass()], Outcome::Pass),
        (vec![pass(), skipped()], Outcome::Skipped),
        (vec![skipped(), open(), pass()], Outcome::Inconclusive),
        (vec![open(), fail(), skipped()], Outcome::Fail),
        (vec![], Outcome::None),
    ] {
        assert_eq!(judge_run(&cells).outcome, outcome);
    }
    let run = judge_run(&[pass(), fail(), skipped()]);
    assert_eq!(run.exceedances, 1);
    assert!(run.because.iter().any(|s| s == "the worst of 3 cells: wakeup @ none @ 30s"));
    assert!(run.because.iter().any(|s| s.starts_with("3 tests (one per thread and cell)")));
    assert!(run.because.iter().any(|s| s == "1 of 3 cells skipped"));
}

#[test]
fn samples_are_called_what_the_probe_calls_them() {
    let primary = &Quantity {
        noun: "hand-over".to_owned(),
        nouns: "hand-overs".to_owned(),
        ..Quantity::default()
    };
    let stats = &stats(1_000, 104_100);
    let said = |exceedances| {
        let evidence = Evidence { stats, exceedances, clusters: 0, interval_ns: None, primary };
        judge_thread(&evidence, &hard()).because
    };
    assert!(said(0)[0].starts_with("no hand-over was later than 200 us"), "{:?}", said(0));
    assert!(said(0)[1].contains("needs 29,956 hand-overs"), "{:?}", said(0));
    assert!(said(0)[2].contains("1,000 hand-overs"), "{:?}", said(0));
    assert!(said(2)[0].starts_with("2 of 1,000 hand-overs were later"), "{:?}", said(2));
    let mut latency = Latency { primary: primary.clone(), ..Latency::default() };
    let verdict = Verdict { exceedances: 2, ..Verdict::default() };
    latency.threads = vec![Thread { stats: stats.clone(), verdict, ..Thread::default() }];
    judge_threads(&mut latency, &hard());
    assert_eq!(latency.threads[0].verdict.because, said(2));
}

#[test]
fn a_bad_counter_forbids_a_pass() {
    let counter = |total, bad| Counter {
        name: "dropouts".to_owned(),
        meaning: "buffers that came too late".to_owned(),
        total,
        bad,
    };
    let with = |n, k, counters| {
        let mut cell = cell(CellState::Complete, vec![judge(n, k, &hard())]);
        cell.counters = counters;
        judge_cell(&cell, &hard())
    };
    let said = |verdict: &Verdict| {
        verdict
            .because
            .iter()
            .position(|because| because.starts_with("3 dropouts (buffers that came too late)"))
    };
    for (counters, outcome, at) in [
        (vec![], Outcome::Pass, None),
        (vec![counter(0, true), counter(3, false)], Outcome::Pass, None),
        (vec![counter(0, true), counter(3, true)], Outcome::Inconclusive, Some(0)),
    ] {
        let verdict = with(30_000, 0, counters);
        assert_eq!((verdict.outcome, said(&verdict)), (outcome, at), "{verdict:?}");
    }
    let failed = with(30_000, 1, vec![counter(3, true)]);
    assert_eq!(failed.outcome, Outcome::Fail);
    assert!(failed.because[0].starts_with("1 of 30,000") && said(&failed) > Some(0));
    let cost = Cell {
        what: What::Cost(Cost::default()),
        counters: vec![counter(3, true)],
        ..cell(CellState::Complete, vec![])
    };
    let verdict = judge_cell(&cost, &hard());
    assert_eq!((verdict.outcome, said(&verdict)), (Outcome::None, Some(0)));
}

proptest! {
    #[test]
    fn more_exceedances_are_never_better(n in 1_u64..200_000, k in 0_u64..50, tolerated in 1e-6_f64..0.5) {
        let rank = |k| judge(n, k, &soft(tolerated)).outcome;
        prop_assert!(rank(k + 1) >= rank(k));
        let verdict = judge(n, k, &soft(tolerated));
        prop_assert_eq!(verdict.outcome == Outcome::Inconclusive, verdict.because.iter().any(|s| s.contains("needs")));
    }
}

#[test]
fn a_cell_whose_load_did_not_hold_cannot_pass() {
    let judged = |deaths, rule: &Rule, exceedances| {
        let mut cell = cell(CellState::Complete, vec![judge(30_005, exceedances, rule)]);
        cell.load_work = vec![LoadWork { load: "copy".into(), deaths, ..LoadWork::default() }];
        judge_cell(&cell, rule)
    };
    let says = "the load did not hold: copy died once";
    assert_eq!(judged(0, &hard(), 0).outcome, Outcome::Pass);
    let inconclusive = judged(1, &hard(), 0);
    assert_eq!(inconclusive.outcome, Outcome::Inconclusive);
    assert_eq!(inconclusive.because[0], says);
    // A deadline that was missed was missed under whatever ran.
    let failed = judged(1, &hard(), 1);
    assert_eq!(failed.outcome, Outcome::Fail);
    assert!(failed.because[0] != says && failed.because.iter().any(|one| one == says));
    let unjudged = judged(1, &Rule { deadline_ns: None, ..hard() }, 0);
    assert_eq!(unjudged.outcome, Outcome::None);
}
