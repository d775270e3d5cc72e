//! Judgements by late episodes.

use super::*;
use crate::block::Spell;
use crate::stats::tell_episodes;
use crate::verdict::observation_needed_ns;

/// Of a plan with these keys, and a deadline of 200 us.
fn rule(keys: &str) -> Rule {
    let text = format!("name = \"p\"\ndeadline = \"200us\"\n{keys}\n[[cell]]\nprobe = \"clock\"");
    Rule::of(&Plan::from_toml(&text).unwrap(), &board(None))
}

/// A cell of two threads that measured for so many seconds, with spells of `size` late activations
/// at these milliseconds, in turn of both threads.
fn cell_of(seconds: u64, at_ms: &[u64], size: u64, rule: &Rule) -> Cell {
    let late = |thread: usize| at_ms.iter().skip(thread).step_by(2);
    let verdict =
        |thread| Verdict { exceedances: late(thread).count() as u64 * size, ..Verdict::default() };
    let mut cell = cell(CellState::Complete, vec![verdict(0), verdict(1)]);
    let scheduled = seconds * 1_000;
    let latency = cell.latency_mut().unwrap();
    for thread in &mut latency.threads {
        thread.stats.scheduled = scheduled;
        thread.stats.samples = scheduled;
    }
    latency.stats.scheduled = 2 * scheduled;
    latency.stats.samples = 2 * scheduled;
    let spells = (0..2_u32).map(|thread| {
        let spell = |ms: &u64| Spell { thread, from: ms * MS, to: (ms + 5) * MS, late: size };
        late(thread as usize).map(spell).collect()
    });
    tell_episodes(&mut cell, spells.collect(), false);
    judge_threads(cell.latency_mut().unwrap(), rule);
    cell.verdict = judge_cell(&cell, rule);
    cell
}

fn judged_by(seconds: u64, at_ms: &[u64], size: u64, keys: &str) -> Verdict {
    cell_of(seconds, at_ms, size, &rule(keys)).verdict
}

#[test]
fn thirty_seconds_without_lateness_show_six_a_minute() {
    let verdict = judged_by(30, &[], 0, "");
    assert_eq!((verdict.outcome, verdict.upper_bound), (Outcome::Pass, None));
    assert!((verdict.episode_rate_upper.unwrap() - 0.099_857_742).abs() < 1e-9);
    assert_eq!(
        verdict.because[0],
        "never later than 200 us in 30.0 s (max 104.1 us, CPU 0, at 10.033 s); this shows: lateness \
         begins at most once in 10.0 s on average, 360 times an hour (95 % confidence), under this load"
    );
    let short = judged_by(29, &[], 0, "");
    assert_eq!(short.outcome, Outcome::Inconclusive);
    assert_eq!(
        short.because[0],
        "29.0 s are too short: 30.0 s without lateness are needed to show at most 6/min; run with \
         -D 30s"
    );
    assert_eq!(short.because[1], "max 104.1 us <= deadline 200 us (CPU 0, at 10.033 s)");
}

#[test]
fn what_a_pass_needs_is_asked_for_as_a_rate() {
    for (rate, seconds, needed) in [("1/min", 60, "180s"), ("1/h", 180, "3h"), ("1/s", 5, "10s")] {
        let verdict = judged_by(seconds, &[], 0, &format!("at_most = \"{rate}\""));
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{rate}");
        let first = &verdict.because[0];
        assert!(first.ends_with(&format!("run with -D {needed}")), "{first}");
    }
    assert_eq!(judged_by(180, &[], 0, "at_most = \"1/min\"").outcome, Outcome::Pass);
    assert_eq!(judged_by(9, &[], 0, "at_most = \"1/s\"").episode_rate_upper, None);
}

#[test]
fn what_ended_by_its_samples_is_advised_to_have_more_of_them() {
    let mut cell = cell_of(1, &[], 0, &rule(""));
    let first = |cell: &Cell, keys: &str| judge_cell(cell, &rule(keys)).because[0].clone();
    cell.key = "wakeup @ none @ 10s @ 1000 samples".to_owned();
    let said = first(&cell, "");
    assert!(said.starts_with("1.0 s are too short") && said.ends_with("with -l 30000"), "{said}");
    // A thread that has fewer of them ended with the time.
    cell.key = "wakeup @ none @ 1s @ 2000 samples".to_owned();
    let said = first(&cell, "");
    assert!(said.ends_with("run with -D 30s"), "{said}");
    // One by one too.
    cell.key = "wakeup @ none @ 10s @ 1000 samples".to_owned();
    let singly = Rule { ended_after: Some(1_000), ..rule("singly = true") };
    judge_threads(cell.latency_mut().unwrap(), &singly);
    let said = first(&cell, "singly = true");
    assert!(said.starts_with("1,000 activations are too few: 29,956 are needed"), "{said}");
    assert!(said.ends_with("run with -l 29956"), "{said}");
}

#[test]
fn what_speaks_against_a_cell_comes_before_that_it_is_too_short() {
    let mut cell = cell_of(5, &[], 0, &rule(""));
    cell.state = CellState::Interrupted;
    let because = judge_cell(&cell, &rule("")).because;
    assert!(because[0].starts_with("max 104.1 us <= deadline"), "{because:?}");
    assert!(because.iter().any(|said| said.contains(" are too short: ")), "{because:?}");
}

#[test]
fn the_first_line_of_several_cells_says_how_long_each_was_seen() {
    let rule = &rule("");
    let of = |seconds: [u64; 2], at: &[u64]| {
        let [one, mut other] = seconds.map(|seconds| cell_of(seconds, at, 1, rule));
        other.key = "handoff @ none @ 30s".to_owned();
        judge_run(RunState::Complete, &[one, other], rule).because[0].clone()
    };
    let said = of([30, 30], &[]);
    assert!(
        said.starts_with("never later than 200 us in 30.0 s of each of 2 cells (max"),
        "{said}"
    );
    let said = of([30, 60], &[]);
    assert!(said.contains("in 30.0 s or more of each of 2 cells (max 104.1 us, "), "{said}");
    let said = of([30, 5], &[]);
    assert!(said.starts_with("handoff, idle: 5.0 s are too short"), "{said}");
}

#[test]
fn a_soft_pass_says_what_is_allowed_and_what_was_seen() {
    let at: Vec<u64> = (0..12).map(|n| n * 47_000).collect();
    let verdict = judged_by(600, &at, 100, "allow = \"2.1/min\"");
    let first = &verdict.because[0];
    assert!(
        first.starts_with(
            "late 12 times in 10.0 min, 2.1/min allowed (max 250.6 us > deadline 200 us, CPU 0, "
        ),
        "{first}"
    );
    assert!(first.contains("; this shows: lateness begins at most once in "), "{first}");
    let many: Vec<u64> = (0..25).map(|n| n * 23_000).collect();
    let first = judged_by(600, &many, 40, "allow = \"2%\"").because.remove(0);
    assert!(first.contains(", 2 % of activations allowed (max "), "{first}");
    let never = judged_by(600, &[], 0, "allow = \"2.1/min\"").because.remove(0);
    assert!(never.starts_with("never later than 200 us in 10.0 min"), "{never}");
}

#[test]
fn a_probability_is_a_rate_of_episodes_at_the_interval() {
    // 1e-5 of activations at 1 ms: one in 100 s.
    assert_eq!(judged_by(299, &[], 0, "probability = 1e-5").outcome, Outcome::Inconclusive);
    assert_eq!(judged_by(300, &[], 0, "probability = 1e-5").outcome, Outcome::Pass);
    let singly = judged_by(300, &[], 0, "probability = 1e-5\nsingly = true");
    assert_eq!((singly.outcome, singly.episode_rate_upper), (Outcome::Pass, None));
    assert!(singly.upper_bound.unwrap() <= 1e-5, "{singly:?}");
}

#[test]
fn one_episode_fails_a_hard_deadline_and_is_counted_once() {
    // Both threads are late within a second: one episode of the cell.
    let cell = cell_of(60, &[5_000, 5_400], 7, &rule(""));
    let verdict = &cell.verdict;
    assert_eq!((verdict.outcome, verdict.exceedances, verdict.episodes), (Outcome::Fail, 14, 1));
    let of_threads = cell.threads().iter().map(|t| t.episodes.as_ref().unwrap().count);
    assert_eq!(of_threads.collect::<Vec<_>>(), [1, 1]);
    assert!(
        verdict.because.contains(&"14 of 120,000 activations were later than 200 us".to_owned()),
        "{verdict:?}"
    );
    let said = "late once, spanning 405.000 ms (late ones at most 1 s apart are one time)";
    assert!(verdict.because.iter().any(|because| because == said), "{verdict:?}");
    let run = judge_run(RunState::Complete, &[cell.clone(), cell], &rule(""));
    assert_eq!((run.exceedances, run.episodes), (28, 2));
}

#[test]
fn how_long_lateness_lasted_is_said_only_if_it_is_known() {
    let rule = rule("");
    let cell = cell_of(60, &[5_000, 5_400, 9_000], 7, &rule);
    let said = |change: &dyn Fn(&mut crate::schema::Episodes)| {
        let mut cell = cell.clone();
        change(cell.latency_mut().unwrap().episodes.as_mut().unwrap());
        let because = judge_cell(&cell, &rule).because;
        because.into_iter().find(|said| said.starts_with("late "))
    };
    assert_eq!(
        said(&|_| ()).unwrap(),
        "late 2 times, the longest spanning 405.000 ms (late ones at most 1 s apart are one time)"
    );
    assert_eq!(
        said(&|found| found.in_seconds = true).unwrap(),
        "late 2 times (seconds with late ones that follow each other are one time)"
    );
    // That one was late is told already.
    assert_eq!(said(&|found| (found.count, found.size_sum) = (1, 1)), None);
}

#[test]
fn a_soft_deadline_weighs_the_rate_of_episodes() {
    let at: Vec<u64> = (0..12).map(|n| n * 47_000).collect();
    let outcome =
        |rate: &str| judged_by(600, &at, 100, &format!("tolerate_episodes = \"{rate}\"")).outcome;
    // 12 in 600 s: between 0.0115 and 0.033 a second at 95 %.
    assert_eq!(outcome("0.5/min"), Outcome::Fail);
    assert_eq!(outcome("1.2/min"), Outcome::Inconclusive);
    assert_eq!(outcome("2.1/min"), Outcome::Pass);
    let open = judged_by(600, &at, 100, "tolerate_episodes = \"1.2/min\"");
    assert!(open.because.iter().any(|said| said.contains("without more lateness")), "{open:?}");
    let clustered: Vec<u64> =
        (0..10).flat_map(|n| [0, 3_000, 6_000].map(|after| n * 60_000 + after)).collect();
    for rate in ["0.1/min", "30/min"] {
        let verdict = judged_by(600, &clustered, 1, &format!("tolerate_episodes = \"{rate}\""));
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{rate}");
        assert!(
            verdict
                .because
                .iter()
                .any(|said| said.starts_with("lateness comes in clusters (30 times"))
        );
    }
}

#[test]
fn a_tolerated_share_needs_batches_a_longest_spell_or_independence() {
    let few: Vec<u64> = (0..19).map(|n| n * 30_000).collect();
    let verdict = judged_by(600, &few, 10, "tolerate = 0.01");
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(
        verdict.because.iter().any(|said| said.contains("19 such seconds were seen")),
        "{verdict:?}"
    );
    // 30 of them at this rate.
    assert!(
        verdict.because.last().unwrap().contains("about 15.8 min may do: run with -D 16min"),
        "{verdict:?}"
    );
    assert_eq!(judged_by(600, &few, 10, "tolerate = 0.01\nsingly = true").outcome, Outcome::Pass);
    // 60 of 600 seconds with 40 late ones, of 2,000 each: 0.2 %.
    let at: Vec<u64> = (0..60).map(|n| n * 9_700).collect();
    for (tolerated, outcome) in
        [("1e-3", Outcome::Fail), ("2e-3", Outcome::Inconclusive), ("4e-3", Outcome::Pass)]
    {
        let verdict = judged_by(600, &at, 40, &format!("tolerate = {tolerated}"));
        assert_eq!(verdict.outcome, outcome, "{tolerated} {:?}", verdict.because);
        assert!(verdict.upper_bound.is_some_and(|upper| (2.1e-3..3e-3).contains(&upper)));
    }
}

#[test]
fn a_share_that_is_left_open_says_about_how_long_to_run() {
    let at: Vec<u64> = (0..60).map(|n| n * 9_700).collect();
    // 0.2 % were late, and the upper bound is 0.243 %: 4.7 times as long for half the distance.
    let open = judged_by(600, &at, 40, "tolerate = 2.2e-3");
    assert_eq!(open.outcome, Outcome::Inconclusive);
    assert!(open.because.last().unwrap().contains("may do: run with -D 47min"), "{open:?}");
    // As many as are allowed: no run is long enough.
    let never = judged_by(600, &at, 40, "tolerate = 2e-3");
    assert!(never.because.last().unwrap().contains("a longer run bounds it closer"), "{never:?}");
}

#[test]
fn no_share_is_claimed_that_what_was_seen_contradicts() {
    let at: Vec<u64> = (0..60).map(|n| n * 9_700).collect();
    let outcome = |factor: f64, keys: &str| {
        let mut cell = cell_of(600, &at, 40, &rule(keys));
        let latency = cell.latency_mut().unwrap();
        let batches = latency.episodes.as_mut().unwrap().batches.as_mut().unwrap();
        batches.mean *= factor;
        batches.deviation *= factor;
        judge_cell(&cell, &rule(keys)).outcome
    };
    // 0.2 % were late, whatever the batches of an edited record say.
    assert_ne!(outcome(0.01, "tolerate = 1e-3"), Outcome::Pass);
    assert_ne!(outcome(100.0, "tolerate = 3e-3"), Outcome::Fail);
}

#[test]
fn samples_in_the_bin_of_another_deadline_fail_no_share() {
    let at: Vec<u64> = (0..60).map(|n| n * 9_700).collect();
    let mut cell = cell_of(600, &at, 40, &rule("tolerate = 1e-3"));
    assert_eq!(cell.verdict.outcome, Outcome::Fail);
    let latency = cell.latency_mut().unwrap();
    latency.episodes.as_mut().unwrap().in_seconds = true;
    // Most of the 2,400 are in the coarse bin of the deadline, and below it in the histogram.
    latency.threads.iter_mut().for_each(|thread| thread.verdict.exceedances = 30);
    let verdict = judge_cell(&cell, &rule("tolerate = 1e-3"));
    assert_ne!(verdict.outcome, Outcome::Fail, "{verdict:?}");
}

#[test]
fn a_share_that_nothing_was_late_of_needs_time_for_a_long_spell() {
    // -ln(0.05) * 10 s / 0.05.
    assert_eq!(judged_by(600, &[], 0, "tolerate = 0.05").outcome, Outcome::Pass);
    let short = judged_by(300, &[], 0, "tolerate = 0.05");
    assert_eq!(short.outcome, Outcome::Inconclusive);
    let last = short.because.last().unwrap();
    assert!(last.contains("longer than 10.0 s at a time") && last.contains("-D 10min"), "{last}");
}

#[test]
fn a_thread_without_a_sample_forbids_a_pass() {
    let mut cell = cell_of(60, &[], 0, &rule(""));
    assert_eq!(judge_cell(&cell, &rule("")).outcome, Outcome::Pass);
    cell.latency_mut().unwrap().threads[1].stats = Stats::default();
    let silent = judge_cell(&cell, &rule(""));
    assert_eq!(silent.outcome, Outcome::Inconclusive);
    assert!(silent.because.iter().any(|said| said.contains("thread 1 on CPU 1 has no sample")));
    // A CPU on which nothing makes a gap has none.
    cell.latency_mut().unwrap().params.insert("margin".to_owned(), "10%".to_owned());
    assert_eq!(judge_cell(&cell, &rule("")).outcome, Outcome::Pass);
}

#[test]
fn a_probability_needs_an_interval_or_single_activations() {
    let mut cell = cell_of(60, &[], 0, &rule(""));
    cell.latency_mut().unwrap().interval_ns = None;
    let asked = rule("probability = 1e-9");
    let verdict = judge_cell(&cell, &asked);
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.because.iter().any(|said| said.contains("has no interval")), "{verdict:?}");
    assert_eq!(judge_cell(&cell, &rule("")).outcome, Outcome::Pass);
}

#[test]
fn a_margin_makes_the_run_longer() {
    let mut cell = cell(CellState::Complete, vec![Verdict::default()]);
    let latency = cell.latency_mut().unwrap();
    latency.interval_ns = None;
    latency.params.insert("margin".to_owned(), "10%".to_owned());
    latency.stats = stats(1_000, 9);
    latency.threads[0].stats = stats(1_000, 9);
    cell.duration_ns = 30 * SECOND_NS;
    tell_episodes(&mut cell, vec![Vec::new()], false);
    let verdict = judge_cell(&cell, &rule(""));
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    let first = &verdict.because[0];
    assert!(first.starts_with("27.0 s are too short") && first.ends_with("with -D 34s"), "{first}");
}

#[test]
fn a_margin_makes_no_share_smaller() {
    let mut cell = cell(CellState::Complete, vec![Verdict::default()]);
    let latency = cell.latency_mut().unwrap();
    latency.interval_ns = None;
    latency.params.insert("margin".to_owned(), "10%".to_owned());
    // 9 of 900 samples a second, in 600 s of which 540 s were observed.
    latency.stats = stats(540_000, 250_000);
    latency.threads[0].stats = stats(540_000, 250_000);
    cell.duration_ns = 600 * SECOND_NS;
    let spell = |n: u64| Spell { thread: 0, from: n * SECOND_NS, to: n * SECOND_NS + MS, late: 9 };
    tell_episodes(&mut cell, vec![(0..600).map(spell).collect()], false);
    let found = cell.latency().unwrap().episodes.clone().unwrap();
    assert_eq!((found.seconds_late, found.observed_ns), (600, 540 * SECOND_NS));
    let (lower, upper) = found.share_bounds(540_000, 0.95).unwrap();
    assert!((lower - 0.01).abs() < 1e-9 && (upper - 0.01).abs() < 1e-9, "{lower} {upper}");
}

#[test]
fn a_thread_that_ended_early_makes_no_rate_higher() {
    // Three episodes in 600 s: 0.3 a minute.
    let mut cell = cell_of(600, &[1_000, 200_000, 400_000], 1, &rule(""));
    cell.latency_mut().unwrap().threads[1].stats.scheduled = 10_000;
    let spells = |thread: u32, at_ms: &[u64]| -> Vec<Spell> {
        let spell = |ms: &u64| Spell { thread, from: ms * MS, to: ms * MS, late: 1 };
        at_ms.iter().map(spell).collect()
    };
    tell_episodes(&mut cell, vec![spells(0, &[1_000, 400_000]), spells(1, &[2_500])], false);
    let verdict = judge_cell(&cell, &rule("tolerate_episodes = \"1/min\""));
    assert_ne!(verdict.outcome, Outcome::Fail, "{verdict:?}");
}

#[test]
fn numbers_from_elsewhere_cost_no_time_and_claim_nothing() {
    let hostile = crate::schema::Episodes {
        count: u64::MAX,
        size_sum: u64::MAX,
        observed_ns: u64::MAX,
        seconds_late: u64::MAX,
        ..crate::schema::Episodes::default()
    };
    assert_eq!(hostile.share_bounds(1, 0.95), None);
    assert_eq!(hostile.rate_upper(0.95), None);
    assert!(hostile.rate_lower(0.95).is_finite());
    let few = crate::schema::Episodes { count: 30, size_sum_sq: 1, ..hostile };
    assert_eq!(few.share_bounds(1, 0.95), None);
}

#[test]
fn lateness_without_its_times_is_no_bound() {
    let mut cell = cell_of(60, &[5_000], 1, &rule(""));
    cell.latency_mut().unwrap().episodes = None;
    let hard = judge_cell(&cell, &rule(""));
    assert_eq!((hard.outcome, hard.episode_rate_upper), (Outcome::Fail, None));
    let soft = judge_cell(&cell, &rule("tolerate_episodes = \"5/s\""));
    assert_eq!(soft.outcome, Outcome::Inconclusive);
}

#[test]
fn nothing_is_said_of_the_length_of_spells_that_were_merged() {
    let mut cell = cell_of(60, &[5_000, 20_000], 1, &rule(""));
    cell.latency_mut().unwrap().episodes.as_mut().unwrap().joined = true;
    let because = judge_cell(&cell, &rule("")).because.join("; ");
    assert!(because.contains("late 2 times or more ("), "{because}");
    assert!(!because.contains("longest"), "{because}");
}

#[test]
fn how_long_to_observe() {
    let seconds = |rate, late| observation_needed_ns(rate, late, 0.95).unwrap() / SECOND_NS;
    assert_eq!(seconds(0.1, 0), 29);
    assert_eq!(seconds(1.0 / 3_600.0, 0), 10_784);
    assert_eq!(seconds(100.0, 0), 10, "never less than ten seconds");
    // As many that the bound is met, and one fewer does not meet it.
    let needed = seconds(0.1, 3);
    let upper = |n| -(-crate::stats::clopper_pearson_upper(3, n, 0.95)).ln_1p();
    assert!(upper(needed) <= 0.1 && upper(needed - 1) > 0.1, "{needed}");
    assert_eq!(observation_needed_ns(1e-300, 0, 0.95), None);
}
