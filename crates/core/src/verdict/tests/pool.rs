//! Several runs judged as one.

use super::*;
use crate::block::Spell;
use crate::schema::{Condition, Origin, Run, RunState};
use crate::stats::tell_episodes;
use crate::verdict::{PoolError, pool};

/// A run of one cell that measured for so many seconds with late activations at these milliseconds.
fn run(id: &str, seconds: u64, at_ms: &[u64], keys: &str) -> Run {
    let text = format!("name = \"p\"\ndeadline = \"200us\"\n{keys}\n[[cell]]\nprobe = \"clock\"");
    let plan = Plan::from_toml(&text).unwrap();
    let rule = Rule::of(&plan, &board(None));
    let verdict = Verdict { exceedances: at_ms.len() as u64, ..Verdict::default() };
    let mut cell = cell(CellState::Complete, vec![verdict]);
    let latency = cell.latency_mut().unwrap();
    latency.stats.scheduled = seconds * 1_000;
    latency.stats.samples = seconds * 1_000;
    latency.threads[0].stats = latency.stats.clone();
    let spell = |ms: &u64| Spell { thread: 0, from: ms * MS, to: ms * MS, late: 1 };
    tell_episodes(&mut cell, vec![at_ms.iter().map(spell).collect()], false);
    judge_threads(cell.latency_mut().unwrap(), &rule);
    cell.verdict = judge_cell(&cell, &rule);
    let run = include_str!("../../../../../fuzz/seeds/run_json/simulated");
    let mut run: Run = serde_json::from_str(run).unwrap();
    (run.run_id, run.plan, run.cells, run.board) = (id.to_owned(), plan, vec![cell], board(None));
    run
}

fn pooled(runs: &[Run]) -> Result<crate::verdict::Pooled, PoolError> {
    pool(&runs.iter().collect::<Vec<_>>())
}

fn of_runs(number: u32, late: u32, seconds: u64, at: &[u64], keys: &str) -> Vec<Run> {
    (0..number)
        .map(|n| run(&n.to_string(), seconds, if n < late { at } else { &[] }, keys))
        .collect()
}

#[test]
fn each_run_passes_by_itself_and_the_share_of_late_ones_is_bounded() {
    let two = pooled(&of_runs(2, 0, 30, &[], "")).unwrap();
    assert_eq!((two.verdict.outcome, two.verdict.episode_rate_upper), (Outcome::Pass, None));
    let said = &two.verdict.because;
    assert!(said[1].ends_with("none of 60,000 activations was later than 200 us"), "{said:?}");
    assert_eq!(
        said[0],
        "2 runs, none late in 30.0 s; up to 78 % of runs like these may still be late (95 % \
         confidence)"
    );
    assert!(
        said[2].contains("by itself: lateness begins at most once in 10.0 s on average, 360"),
        "{said:?}"
    );
    // 1 - 0.05^(1/20)
    let twenty = pooled(&of_runs(20, 0, 30, &[], "")).unwrap();
    assert!((twenty.cells[0].late_share_upper - 0.139_108).abs() < 1e-6);
    let one_late = pooled(&of_runs(8, 1, 30, &[7], "")).unwrap();
    let verdict = one_late.verdict;
    assert_eq!((verdict.outcome, verdict.exceedances, verdict.episodes), (Outcome::Fail, 1, 1));
    // beta.ppf(0.95, 2, 7)
    assert!((one_late.cells[0].late_share_upper - 0.470_680).abs() < 1e-5, "{verdict:?}");
    assert_eq!(
        verdict.because[..2],
        [
            "1 of 8 runs late in 30.0 s or more; up to 48 % of runs like these may be late (95 % \
             confidence)",
            "wakeup @ idle @ 30s: max 250.0 us; 1 of 240,000 activations was later than 200 us, in 1 \
             of 8 runs"
        ]
    );
    let all_late = pooled(&of_runs(2, 2, 30, &[7], "")).unwrap().verdict.because;
    assert_eq!(
        all_late[0],
        "2 of 2 runs late in 30.0 s or more: no upper bound on the share of runs that are late"
    );
}

#[test]
fn runs_do_not_lengthen_each_other() {
    for number in [2, 6, 60] {
        let verdict = pooled(&of_runs(number, 0, 30, &[], "episodes = \"1/min\"")).unwrap().verdict;
        assert_eq!(verdict.outcome, Outcome::Inconclusive, "{number}");
        let last = verdict.because.last().unwrap();
        assert!(last.contains("run with -D 180s"), "{last}");
    }
    let mut runs = of_runs(3, 0, 180, &[], "episodes = \"1/min\"");
    assert_eq!(pooled(&runs).unwrap().verdict.outcome, Outcome::Pass);
    runs.push(run("short", 30, &[], "episodes = \"1/min\""));
    let one_short = pooled(&runs).unwrap();
    assert_eq!(one_short.verdict.outcome, Outcome::Inconclusive);
    assert_eq!(one_short.cells[0].observed_ns, 30 * SECOND_NS);
    let said = one_short.verdict.because.join("; ");
    assert!(said.contains("each run to pass, and short does not"), "{said}");
}

#[test]
fn of_a_soft_deadline_more_runs_fail_than_chance_explains() {
    let verdict = |late: u32, all: u32| {
        let at: Vec<u64> = (1..30).map(|n| n * 2_000).collect();
        pooled(&of_runs(all, late, 60, &at, "tolerate_episodes = \"12/min\"")).unwrap().verdict
    };
    assert_eq!(verdict(0, 20).outcome, Outcome::Pass);
    // 3 of 20 are expected in 7.5 % of cases, 4 in 1.6 %.
    assert_eq!(verdict(3, 20).outcome, Outcome::Inconclusive);
    assert_eq!(verdict(4, 20).outcome, Outcome::Fail);
    // beta.ppf(0.95, 1, 20) and (4, 17)
    let first = |late| verdict(late, 20).because.remove(0);
    assert_eq!(
        first(0),
        "20 runs, each passes by itself; up to 14 % of runs like these may still not (95 % confidence)"
    );
    assert_eq!(
        first(3),
        "17 of 20 runs pass by themselves; up to 35 % of runs like these may not (95 % confidence)"
    );
    assert_eq!(first(20), "none of 20 runs passes by itself");
    let said = verdict(3, 20).because.join("; ");
    assert!(said.contains("of 20 runs 17 PASS and 3 FAIL by themselves; 5 % may"), "{said}");
}

/// A cell that is in the plan twice, and what is no latency.
#[test]
fn all_of_a_run_has_its_say() {
    let twice = |id: &str, at: &[u64]| {
        let mut twice = run(id, 30, &[], "");
        twice.cells.extend(run(id, 30, at, "").cells);
        twice
    };
    let clean = pooled(&[twice("a", &[]), twice("b", &[])]).unwrap();
    assert_eq!((clean.verdict.outcome, clean.cells.len()), (Outcome::Pass, 2));
    let late = pooled(&[twice("a", &[]), twice("b", &[7])]).unwrap();
    assert_eq!(late.verdict.outcome, Outcome::Fail);
    assert_eq!(late.cells.iter().map(|cell| cell.runs_late).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((late.verdict.exceedances, late.verdict.episodes), (1, 1), "of all cells");
    let first = &late.verdict.because[0];
    assert!(first.starts_with("1 of 2 runs late in 30.0 s of each of 2 cells or more"), "{first}");
    let first = &clean.verdict.because[0];
    assert!(
        first.starts_with("2 runs, none late in 30.0 s of each of 2 cells; up to 78"),
        "{first}"
    );
    // What the other run has not measured was late all the same.
    let more = pooled(&[run("a", 30, &[], ""), twice("b", &[7])]).unwrap();
    assert_eq!((more.verdict.outcome, more.left_out.len()), (Outcome::Fail, 1));
    assert!(more.verdict.because[0].starts_with("1 of 2 runs late"), "{:?}", more.verdict);
    let mut failed = of_runs(2, 0, 30, &[], "");
    failed[1].state = RunState::Failed;
    let verdict = pooled(&failed).unwrap().verdict;
    assert_eq!(verdict.outcome, Outcome::Inconclusive);
    assert!(verdict.because.contains(&"1 does not pass by itself".to_owned()), "{verdict:?}");
    failed.iter_mut().for_each(|run| run.cells.clear());
    assert_eq!(pooled(&failed), Err(PoolError::NoLatencies));
}

#[test]
fn what_weakens_one_run_weakens_all() {
    let mut runs = of_runs(3, 0, 30, &[], "");
    for run in &mut runs {
        run.origin = Origin::Native;
        (run.privileged, run.is_virtual) = (true, true);
    }
    runs[2].privileged = false;
    runs[1].cells[0].conditions.push(Condition { id: "drift".to_owned(), text: String::new() });
    let pooled = pooled(&runs).unwrap();
    let weakened = crate::weakened::Weakened {
        not_real_time: 1,
        virtual_machine: 3,
        drift: 1,
        ..<_>::default()
    };
    assert_eq!(pooled.weakened, weakened);
    assert_eq!(pooled.conditions.get("drift"), Some(&1), "{:?}", pooled.conditions);
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let one = run("one", 30, &[], "");
    assert_eq!(pooled(std::slice::from_ref(&one)), Err(PoolError::Few));
    assert_eq!(pooled(&[one.clone(), one.clone()]), Err(PoolError::Few), "the same run twice");
    let other_rule = run("other", 30, &[], "episodes = \"1/h\"");
    assert!(matches!(pooled(&[one.clone(), other_rule]), Err(PoolError::Rules(..))));
    let mut other_kernel = run("other", 30, &[], "");
    other_kernel.kernel.version.push_str("-patched");
    assert!(matches!(pooled(&[one.clone(), other_kernel]), Err(PoolError::Kernels(..))));
    let mut boards = [one.clone(), run("other", 30, &[], "")];
    boards[1].board = virtual_board(true);
    assert!(matches!(pooled(&boards), Err(PoolError::Virtual(_))));
    let mut cut = [one, run("other", 30, &[], "")];
    cut[1].cells[0].state = CellState::Interrupted;
    assert_eq!(pooled(&cut).unwrap().verdict.outcome, Outcome::Inconclusive);
    cut[1].cells.clear();
    let pooled = pooled(&cut).unwrap();
    assert_eq!((pooled.verdict.outcome, pooled.left_out.len()), (Outcome::Inconclusive, 1));
    let first = &pooled.verdict.because[0];
    assert_eq!(first, "2 runs without a cell that all of them have; late: 0");
}
