//! Judgements of cells and runs.

use super::*;
use crate::schema::{AtWork, Ideal, LoadPhase, NO_LEGS, Stop};

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
    assert_eq!(
        verdict.because[..2],
        [
            "max 250.0 us > deadline 200 us (CPU 2, at 10.033 s)",
            "5 of 120,000 activations were later than 200 us"
        ]
    );
    assert_eq!(verdict.because.last().unwrap(), "the worst of 4 threads: thread 2 on CPU 2");
}

#[test]
fn a_cell_that_was_not_measured_does_not_pass() {
    let mut skipped = cell(CellState::Skipped, vec![]);
    skipped.reason = Some("needs an invariant TSC (x86)".to_owned());
    skipped.verdict = judge_cell(&skipped, &hard());
    assert_eq!(skipped.verdict.outcome, Outcome::Skipped);
    assert_eq!(skipped.verdict.because, ["needs an invariant TSC (x86)"]);
    let pending = judged(CellState::Pending, vec![]);
    assert_eq!(pending.verdict.outcome, Outcome::Inconclusive);
    assert_eq!(pending.verdict.because, ["not measured: the run ended before this cell"]);
    let cost = Cell { what: What::Cost(Cost::default()), ..cell(CellState::Complete, vec![]) };
    assert_eq!(judge_cell(&cost, &hard()), hard().verdict(Outcome::None, vec![]));
}

#[test]
fn legs_that_are_not_known_are_inconclusive_with_a_deadline_or_without() {
    let why = "thread 0: the trace has no events of this thread: its legs are not known";
    let without_legs = |verdict: Verdict| {
        let mut cell = cell(CellState::Complete, vec![verdict]);
        cell.conditions.push(Condition { id: NO_LEGS.to_owned(), text: why.to_owned() });
        cell
    };
    let open = Rule { deadline_ns: None, ..hard() };
    for (verdict, rule, outcome) in [
        (judge(30_000, 0, &hard()), hard(), Outcome::Inconclusive),
        (judge(30_000, 0, &open), open, Outcome::Inconclusive),
        (judge(30_000, 3, &hard()), hard(), Outcome::Fail),
    ] {
        let judged = judge_cell(&without_legs(verdict), &rule);
        assert_eq!(judged.outcome, outcome);
        assert!(judged.because.iter().any(|said| said == why), "{judged:?}");
    }
}

#[test]
fn a_cell_cut_short_does_not_pass_and_says_so() {
    for state in [CellState::Interrupted, CellState::Failed, CellState::Recovered] {
        for (k, outcome) in [(0, Outcome::Inconclusive), (1, Outcome::Fail)] {
            let cut = judged(state, vec![judge(30_000, k, &hard())]).verdict;
            assert_eq!(cut.outcome, outcome);
            assert!(cut.because.iter().any(|s| s.starts_with("the cell was")), "{cut:?}");
        }
    }
}

#[test]
fn a_run_that_did_not_reach_its_end_is_never_a_pass() {
    let pass = judged(CellState::Complete, vec![judge(30_000, 0, &hard())]);
    let pending = cell(CellState::Pending, vec![]);
    let run = |state, cells: &[Cell]| judge_run(state, cells, &hard());
    let whole = [pass.clone(), pass.clone()];
    let cut = [pass.clone(), pending.clone(), pending.clone()];
    assert_eq!(run(RunState::Complete, &whole).outcome, Outcome::Pass);
    for (state, says) in [
        (RunState::Running, "the run did not reach its end"),
        (RunState::Interrupted, "the run was interrupted"),
        (RunState::Failed, "an error ended the run"),
    ] {
        let verdict = run(state, &whole);
        assert_eq!((verdict.outcome, verdict.because[2].as_str()), (Outcome::Inconclusive, says));
        let verdict = run(state, &cut);
        assert_eq!(verdict.outcome, Outcome::Inconclusive);
        assert_eq!(verdict.because[2], format!("{says}: 2 of 3 cells were not started"));
        assert_eq!(run(state, std::slice::from_ref(&pending)).outcome, Outcome::Inconclusive);
    }
    let late = judged(CellState::Complete, vec![judge(30_000, 1, &hard())]);
    assert_eq!(run(RunState::Failed, &[late, pending]).outcome, Outcome::Fail);
}

#[test]
fn the_first_sentence_names_the_largest_latency_of_the_run() {
    let few = judged(CellState::Complete, vec![judge(30_000, 2, &hard())]);
    let mut worst_by_rate = judged(CellState::Complete, vec![judge(300, 2, &hard())]);
    worst_by_rate.key = "handoff @ hackbench @ 30s".to_owned();
    worst_by_rate.load = "hackbench".to_owned();
    let mut largest = few.clone();
    {
        let latency = largest.latency_mut().unwrap();
        latency.stats.max = Some(69_900_000);
        latency.threads[0].stats.max = Some(69_900_000);
    }
    let run = judge_run(RunState::Complete, &[worst_by_rate, largest, few], &hard());
    assert_eq!(
        run.because[..2],
        [
            "max 69.900 ms > deadline 200 us (wakeup, idle, CPU 0, at 10.033 s)",
            "6 of 90,000 activations were later than 200 us",
        ]
    );
    assert!(run.because.iter().any(|s| s.starts_with("the worst of 3 cells, wakeup, idle")));
    let pass = judged(CellState::Complete, vec![judge(30_000, 0, &hard())]);
    assert_eq!(
        judge_run(RunState::Complete, &[pass], &hard()).because,
        [
            "max 104.1 us <= deadline 200 us (wakeup, idle, CPU 0, at 10.033 s); if late \
             activations come singly, at most 1 in 10,014 is late (95 % confidence)",
            "none of 30,000 activations was later than 200 us",
            "if nothing changes, the same run again exceeds this max with a chance of at most 50 %",
        ]
    );
    let unjudged = Rule { deadline_ns: None, ..hard() };
    let open = cell(CellState::Complete, vec![judge(300, 0, &unjudged)]);
    assert_eq!(
        judge_run(RunState::Complete, &[open], &unjudged).because[0],
        "max 104.1 us, no deadline given (wakeup, idle, CPU 0, at 10.033 s)"
    );
}

/// "The worst" is the cell, or thread, of the first sentence, and no other.
#[test]
fn the_worst_is_what_the_first_line_shows() {
    let named = |key: &str, max: i64, mut cell: Cell| {
        cell.key = format!("{key} @ none @ 30s");
        let latency = cell.latency_mut().unwrap();
        latency.stats.max = Some(max);
        latency.threads[0].stats.max = Some(max);
        cell
    };
    let run = |cells: &[Cell], rule: &Rule| {
        let because = judge_run(RunState::Complete, cells, rule).because;
        let said = because.iter().find(|said| said.contains(" of 2 cells")).unwrap();
        (because[0].clone(), said.clone())
    };
    // More lateness is tolerated of the one with the largest latency.
    let soft = soft(1e-3);
    let of = |n, k| cell(CellState::Complete, vec![judge(n, k, &soft)]);
    let often = named("often", 251_000, of(30_000, 900));
    let late = named("late", 69_900_000, of(1_000_000, 1));
    let (first, said) = run(&[often.clone(), late], &soft);
    assert!(first.contains("max 69.900 ms > deadline 200 us (late, idle,"), "{first}");
    assert!(said.starts_with("the one of 2 cells that decides, often, idle: "), "{said}");
    let (first, said) = run(&[often, named("less", 250_000, of(30_000, 900))], &soft);
    assert!(first.contains("(often, idle,"), "{first}");
    assert!(said.starts_with("the worst of 2 cells, often, idle: "), "{said}");
    // Of cells that pass the one that was measured for less shows less.
    let of = |n| cell(CellState::Complete, vec![judge(n, 0, &hard())]);
    let (first, said) =
        run(&[named("short", 90_000, of(30_000)), named("long", 99_000, of(60_000))], &hard());
    assert!(first.contains("(long, idle,"), "{first}");
    assert!(said.starts_with("the one of 2 cells that shows least, short, idle"), "{said}");
    let mut threads = cell(CellState::Complete, vec![judge(30_000, 0, &hard()); 2]);
    threads.latency_mut().unwrap().threads[1].verdict = judge(60_000, 0, &hard());
    for (max, which) in [
        (90_000, "the one of 2 threads that shows least: thread 0"),
        (104_100, "the worst of 2 threads: thread 0"),
    ] {
        threads.latency_mut().unwrap().threads[0].stats.max = Some(max);
        let because = judge_cell(&threads, &hard()).because;
        assert!(because.iter().any(|said| said.starts_with(which)), "{which}: {because:?}");
    }
}

#[test]
fn the_first_sentence_names_the_phase_of_the_load() {
    let unjudged = Rule { deadline_ns: None, ..hard() };
    let mut open = cell(CellState::Complete, vec![judge(300, 0, &unjudged)]);
    let at_work =
        |from: u64, to: u64| vec![AtWork { from_ns: from * SECOND_NS + 1, to_ns: to * SECOND_NS }];
    let phase =
        |load: &str, at_work| LoadPhase { load: load.to_owned(), at_work, ..LoadPhase::default() };
    // At 10.033 s.
    for (first, said) in [
        ((0, 11), "in phase 1, idle"),
        ((9, 11), "in phase 1, idle"),
        ((10, 11), "while the load changed"),
        ((0, 9), "in phase 2, copy"),
    ] {
        open.phases = vec![phase("none", at_work(first.0, first.1)), phase("copy", at_work(9, 20))];
        if first.1 > 9 {
            open.phases[1].at_work.clear();
        }
        let because = judge_run(RunState::Complete, std::slice::from_ref(&open), &unjudged).because;
        assert_eq!(
            because[0],
            format!("max 104.1 us, no deadline given (wakeup, idle, CPU 0, at 10.033 s, {said})")
        );
    }
}

#[test]
fn no_reason_repeats_the_outcome_or_an_earlier_one() {
    let mut cells: Vec<Cell> = [(30_000, 0), (300, 0), (300, 7)]
        .map(|(n, k)| judged(CellState::Complete, vec![judge(n, k, &hard()); 2]))
        .into();
    cells.push(judged(CellState::Skipped, vec![]));
    while !cells.is_empty() {
        let run = judge_run(RunState::Complete, &cells, &hard());
        for verdict in cells.iter().map(|cell| &cell.verdict).chain([&run]) {
            let word = format!("{:?}", verdict.outcome).to_lowercase();
            for (place, text) in verdict.because.iter().enumerate() {
                let lower = text.to_lowercase();
                assert!(!lower.starts_with(&word), "{word}: {text}");
                assert!(!verdict.because[..place].contains(text), "{:?}", verdict.because);
            }
        }
        cells.remove(0);
    }
}

#[test]
fn a_warm_up_later_than_the_deadline_is_said_and_the_even_chance_is_not() {
    let chance = |verdict: &Verdict| verdict.because.iter().any(|s| s.contains("at most 50 %"));
    let with = |warmup_max_ns| {
        let mut cell = cell(CellState::Complete, vec![judge(30_000, 0, &hard())]);
        cell.latency_mut().unwrap().warmup_max_ns = Some(warmup_max_ns);
        judge_run(RunState::Complete, &[cell], &hard())
    };
    let said = |verdict: &Verdict| {
        verdict.because.iter().any(|s| s.starts_with("the warm-up, which does not count, had"))
    };
    let verdicts = [100_000, 150_000, 6_999_000].map(with);
    assert_eq!(verdicts.each_ref().map(chance), [true, false, false]);
    assert_eq!(verdicts.each_ref().map(said), [false, false, true]);
    assert!(verdicts[2].because.iter().any(|s| s.contains("6.999 ms > deadline 200 us")));
    assert_eq!(verdicts[2].outcome, Outcome::Pass);
}

#[test]
fn the_even_chance_is_not_said_if_the_cell_with_the_maximum_drifted() {
    let said = |drifted: usize, rule: &Rule| {
        let mut cells = [100_000, 150_000].map(|max| {
            let mut cell = cell(CellState::Complete, vec![judge(30_000, 0, rule)]);
            cell.latency_mut().unwrap().stats.max = Some(max);
            cell
        });
        let drift = Condition { id: DRIFT.to_owned(), text: String::new() };
        cells[drifted].conditions.push(drift);
        let because = judge_run(RunState::Complete, &cells, rule).because;
        because.iter().any(|text| text.contains("at most 50 %"))
    };
    assert_eq!([0, 1].map(|drifted| said(drifted, &hard())), [true, false]);
}

#[test]
fn a_pass_of_all_threads_needs_no_correction_for_their_number() {
    let note = |k, rule: &Rule| {
        let mut cell = cell(CellState::Complete, vec![judge(300_000, k, rule); 3]);
        cell.verdict = judge_cell(&cell, rule);
        let because = judge_run(RunState::Complete, &[cell], rule).because;
        because.into_iter().find(|text| text.contains("3 judgements"))
    };
    assert!(note(0, &hard()).unwrap().ends_with("so 95 % holds for all of them together"));
    assert!(note(900, &soft(1e-3)).unwrap().ends_with("not corrected for their number"));
    assert_eq!(note(3, &hard()), None);
}

#[test]
fn a_break_is_worse_than_too_little_evidence_and_better_than_a_missed_deadline() {
    let broken = |k, latency_ns, rule: &Rule| {
        let mut cell = cell(CellState::Interrupted, vec![judge(300, k, rule)]);
        cell.latency_mut().unwrap().broke = Some(Broke {
            limit_ns: 100_000,
            latency_ns,
            thread: 0,
            cpu: Some(0),
            at_ns: Some(757_000_000),
        });
        cell.verdict = judge_cell(&cell, rule);
        cell
    };
    let first = "max 104.1 us > break value 100 us";
    let text = "104.0 us > break value 100 us (thread 0, CPU 0, at 757.000 ms)";
    let unjudged = Rule { deadline_ns: None, ..hard() };
    for (k, latency_ns, rule, outcome, says) in [
        (0, 104_100, hard(), Outcome::Break, first),
        (0, 104_000, hard(), Outcome::Break, text),
        (0, 104_100, unjudged, Outcome::Break, first),
        (2, 104_000, hard(), Outcome::Fail, text),
    ] {
        let cell = broken(k, latency_ns, &rule);
        assert_eq!(cell.verdict.outcome, outcome);
        let open = judged(CellState::Complete, vec![judge(300, 0, &rule)]);
        let run = judge_run(RunState::Interrupted, &[open, cell.clone()], &rule);
        assert_eq!(run.outcome, outcome);
        for verdict in [&cell.verdict, &run] {
            let said = verdict.because.iter().filter(|said| said.contains(says)).count();
            assert_eq!(said, 1, "{:?}", verdict.because);
            let first = verdict.because[0].starts_with("max 104.1 us > break value 100 us");
            assert_eq!(first, outcome == Outcome::Break, "{:?}", verdict.because);
        }
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
        assert_eq!(judge_run(RunState::Complete, &cells, &hard()).outcome, outcome);
    }
    let run = judge_run(RunState::Complete, &[pass(), fail(), skipped()], &hard());
    assert_eq!(run.exceedances, 1);
    assert!(run.because.iter().any(|s| s.starts_with("the worst of 3 cells, wakeup, idle")));
    assert!(run.because.iter().any(|s| s == "1 of 3 cells skipped"));
}

/// 2.91 ms between two fragments of 2.90 ms are 10 us.
#[test]
fn a_time_between_events_counts_by_what_it_is_above_the_ideal() {
    let unjudged = Rule { deadline_ns: None, ..hard() };
    let open = |max: i64| {
        let mut cell = cell(CellState::Complete, vec![judge(300, 0, &unjudged)]);
        let latency = cell.latency_mut().unwrap();
        latency.stats.max = Some(max);
        latency.threads[0].stats.max = Some(max);
        cell
    };
    let first = |cells: &[Cell]| judge_run(RunState::Complete, cells, &unjudged).because[0].clone();
    let mut fragments = open(2_910_000);
    assert_eq!(fragments.latest_ns(), Some(2_910_000));
    let ideal = Ideal::Interval { ns: 2_900_000, limit_ns: 8_700_000 };
    fragments.latency_mut().unwrap().ideal = Some(ideal);
    assert_eq!(fragments.latest_ns(), Some(10_000));
    let text = first(&[fragments.clone(), open(50_000)]);
    assert!(text.starts_with("max 50.0 us, no deadline given"), "{text}");
    let text = first(&[fragments, open(9_000)]);
    assert!(text.starts_with("max 2.910 ms, no deadline given"), "{text}");
}

/// Fragments of 2.90 ms are compared with a deadline as they are: the first sentence is on what was
/// late, and not on the cell of which most is above the ideal.
#[test]
fn the_first_sentence_names_what_was_compared_with_the_deadline() {
    let late = judge(300, 1, &hard());
    let mut fragments = judged(CellState::Complete, vec![late]);
    let latency = fragments.latency_mut().unwrap();
    latency.ideal = Some(Ideal::Interval { ns: 2_900_000, limit_ns: 8_700_000 });
    latency.stats.max = Some(2_910_000);
    latency.threads[0].stats.max = Some(2_910_000);
    // 104.1 us, in time, and more than 10 us.
    let in_time = judged(CellState::Complete, vec![judge(30_000, 0, &hard())]);
    assert!(in_time.latest_ns() > fragments.latest_ns());
    let run = judge_run(RunState::Complete, &[in_time, fragments], &hard());
    assert_eq!(run.outcome, Outcome::Fail);
    let text = &run.because[0];
    assert!(text.starts_with("max 2.910 ms > deadline 200 us"), "{text}");
}

#[test]
fn a_cell_that_is_wanted_only_where_it_is_available_may_be_skipped() {
    let pass = judged(CellState::Complete, vec![judge(30_000, 0, &hard()); 2]);
    let fail = judged(CellState::Complete, vec![judge(300, 1, &hard())]);
    let skipped = judged(CellState::Skipped, vec![]);
    let planned = |available: bool| {
        let text = if available { "where = \"available\"" } else { "" };
        let plan = format!("name = \"p\"\n[[cell]]\nprobe = \"clock\"\n{text}");
        Plan::from_toml(&plan).unwrap().cells.remove(0)
    };
    let outcome = |cells: &[Cell], available: [bool; 2]| {
        super::super::judge_run(RunState::Complete, cells, &available.map(planned), &hard())
    };
    let cells = [pass, skipped.clone()];
    let judged = outcome(&cells, [false, true]);
    assert_eq!(judged.outcome, Outcome::Pass);
    assert!(judged.because.iter().any(|s| s == "1 of 2 cells skipped"), "{:?}", judged.because);
    assert_eq!(outcome(&cells, [true, false]).outcome, Outcome::Skipped);
    assert_eq!(outcome(&[fail, skipped.clone()], [true; 2]).outcome, Outcome::Fail);
    // There is a deadline, and nothing that meets it.
    assert_eq!(outcome(&[skipped.clone(), skipped], [true; 2]).outcome, Outcome::Inconclusive);
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
        let evidence = Evidence {
            stats,
            exceedances,
            interval_ns: None,
            primary,
            episodes: None,
            observed_share: 1.0,
        };
        judge_thread(&evidence, &hard()).because
    };
    assert!(said(0)[0].starts_with("none of 1,000 hand-overs was later"), "{:?}", said(0));
    assert!(said(0)[1].starts_with("if late hand-overs come singly"), "{:?}", said(0));
    assert!(said(0)[2].contains("1,000 hand-overs are too few: 29,956"), "{:?}", said(0));
    assert!(said(2)[0].starts_with("2 of 1,000 hand-overs were later"), "{:?}", said(2));
    let mut latency = Latency { primary: primary.clone(), ..Latency::default() };
    let verdict = Verdict { exceedances: 2, ..Verdict::default() };
    latency.threads = vec![Thread { stats: stats.clone(), verdict, ..Thread::default() }];
    judge_threads(&mut latency, &hard());
    assert_eq!(latency.threads[0].verdict.because, said(2));
}

#[test]
fn a_bad_counter_forbids_a_pass() {
    let counter = |total, tells| Counter {
        name: "dropouts".to_owned(),
        meaning: "buffers that came too late".to_owned(),
        total,
        tells,
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
        (vec![counter(0, Tells::Loss), counter(3, Tells::Nothing)], Outcome::Pass, None),
        (vec![counter(0, Tells::Loss), counter(3, Tells::Loss)], Outcome::Inconclusive, Some(2)),
    ] {
        let verdict = with(30_000, 0, counters);
        assert_eq!((verdict.outcome, said(&verdict)), (outcome, at), "{verdict:?}");
    }
    let failed = with(30_000, 1, vec![counter(3, Tells::Loss)]);
    assert_eq!(failed.outcome, Outcome::Fail);
    assert!(failed.because[1].starts_with("1 of 30,000") && said(&failed) > Some(1));
    let cost = Cell {
        what: What::Cost(Cost::default()),
        counters: vec![counter(3, Tells::Loss)],
        ..cell(CellState::Complete, vec![])
    };
    let verdict = judge_cell(&cost, &hard());
    assert_eq!((verdict.outcome, said(&verdict)), (Outcome::None, Some(0)));
}

#[test]
fn what_is_never_to_happen_is_a_fail_whatever_the_deadline() {
    let judged = |total, rule: &Rule| {
        let mut cell = cell(CellState::Complete, vec![judge(30_000, 0, rule)]);
        cell.counters = vec![Counter {
            name: "inversions".to_owned(),
            meaning: "of the priority".to_owned(),
            total,
            tells: Tells::Fault,
        }];
        let verdict = judge_cell(&cell, rule);
        let of_run = judge_run(RunState::Complete, &[cell], rule);
        assert_eq!(of_run.outcome, verdict.outcome);
        let said = |because: &[String]| {
            because.iter().position(|because| because == "2 inversions (of the priority)")
        };
        assert_eq!(said(&verdict.because), said(&of_run.because));
        (verdict.outcome, said(&verdict.because))
    };
    let unlimited = Rule { deadline_ns: None, ..hard() };
    assert_eq!(judged(0, &hard()), (Outcome::Pass, None));
    assert_eq!(judged(0, &unlimited), (Outcome::None, None));
    assert_eq!(judged(2, &hard()), (Outcome::Fail, Some(0)));
    assert_eq!(judged(2, &unlimited), (Outcome::Fail, Some(0)));
}

#[test]
fn what_may_have_come_of_a_stop_is_no_fail() {
    let judged = |length_ns, deadline_ns| {
        let rule = Rule { deadline_ns, ..hard() };
        let mut cell = cell(CellState::Complete, vec![judge(30_000, 0, &rule)]);
        cell.stops = vec![Stop { length_ns, ..Stop::default() }];
        cell.counters = vec![Counter {
            name: "dropouts".to_owned(),
            meaning: "of the buffer".to_owned(),
            total: 1,
            tells: Tells::Fault,
        }];
        judge_cell(&cell, &rule)
    };
    let deadline = hard().deadline_ns;
    for deadline in [deadline, None] {
        let stopped = judged(Some(56_000_000), deadline);
        assert_eq!(stopped.outcome, Outcome::Inconclusive);
        let says =
            "1 dropouts (of the buffer), which may have come of the time in which the process";
        assert!(stopped.because.iter().any(|one| one.starts_with(says)), "{stopped:?}");
        assert_eq!(judged(None, deadline).outcome, Outcome::Fail, "nothing was late by it");
    }
}

#[test]
fn a_break_by_a_stop_is_no_break() {
    let judged = |at_ns, rule: &Rule| {
        let mut cell = cell(CellState::Interrupted, vec![judge(30_000, 0, rule)]);
        let (limit_ns, latency_ns) = (500_000_000, 2_001_000_000);
        cell.latency_mut().unwrap().broke =
            Some(Broke { limit_ns, latency_ns, thread: 0, cpu: None, at_ns: Some(at_ns) });
        let (from_ns, length_ns) = (1_665_000_000, Some(2_001_000_000));
        cell.stops = vec![Stop { from_ns, length_ns, ..Stop::default() }];
        cell.verdict = judge_cell(&cell, rule);
        judge_run(RunState::Interrupted, &[cell], rule)
    };
    for rule in [hard(), Rule { deadline_ns: None, ..hard() }] {
        let stopped = judged(3_666_000_000, &rule);
        assert_eq!(stopped.outcome, Outcome::Inconclusive);
        let says =
            "ended by a sample above the break value 500 ms at 3.666 s, which is one of the time";
        assert!(stopped.because.iter().any(|one| one.starts_with(says)), "{stopped:?}");
        assert!(!stopped.because[0].contains("break value"), "{stopped:?}");
        // One before the stop, and one after it.
        for at_ns in [1_664_000_000, 3_667_000_000] {
            assert_eq!(judged(at_ns, &rule).outcome, Outcome::Break);
        }
    }
}

proptest! {
    #[test]
    fn more_exceedances_are_never_better(n in 1_u64..200_000, k in 0_u64..50, tolerated in 1e-6_f64..0.5) {
        let rank = |k| judge(n, k, &soft(tolerated)).outcome;
        prop_assert!(rank(k + 1) >= rank(k));
        let verdict = judge(n, k, &soft(tolerated));
        prop_assert_eq!(verdict.outcome == Outcome::Inconclusive, verdict.because.iter().any(|s| s.contains("are needed")));
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
    assert_eq!(inconclusive.because[2], says);
    // A deadline that was missed was missed under whatever ran.
    let failed = judged(1, &hard(), 1);
    assert_eq!(failed.outcome, Outcome::Fail);
    assert!(failed.because[0] != says && failed.because.iter().any(|one| one == says));
    let unjudged = judged(1, &Rule { deadline_ns: None, ..hard() }, 0);
    assert_eq!(unjudged.outcome, Outcome::None);
}
