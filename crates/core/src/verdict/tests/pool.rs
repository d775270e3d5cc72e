//! Several runs judged as one.

use super::*;
use crate::block::Spell;
use crate::schema::Run;
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

#[test]
fn times_without_lateness_add_up() {
    let runs = |number: u32| -> Vec<Run> {
        (0..number).map(|n| run(&n.to_string(), 30, &[], "episodes = \"1/min\"")).collect()
    };
    let five = pooled(&runs(5)).unwrap();
    assert_eq!(five.verdict.outcome, Outcome::Inconclusive);
    let last = five.verdict.because.last().unwrap();
    assert!(last.ends_with("a PASS at 1/min needs 6 such runs, none of them late"), "{last}");
    let six = pooled(&runs(6)).unwrap();
    assert_eq!((six.verdict.outcome, six.cells[0].observed_ns), (Outcome::Pass, 180 * SECOND_NS));
    let upper = six.verdict.episode_rate_upper.unwrap();
    assert!((upper - 2.995_732_274 / 180.0).abs() < 1e-10, "{upper}");
    let mut late = runs(6);
    late.push(run("late", 30, &[7], "episodes = \"1/min\""));
    let verdict = pooled(&late).unwrap().verdict;
    assert_eq!((verdict.outcome, verdict.exceedances, verdict.episodes), (Outcome::Fail, 1, 1));
}

#[test]
fn of_a_soft_deadline_the_runs_are_counted() {
    let keys = |rate: &str| format!("tolerate_episodes = \"{rate}\"");
    let verdict = |rate: &str, late: u32, all: u32| {
        let at: &[u64] = &[5_000, 9_000, 15_000, 21_000];
        let runs =
            (0..all).map(|n| run(&n.to_string(), 60, if n < late { at } else { &[] }, &keys(rate)));
        pooled(&runs.collect::<Vec<_>>()).unwrap().verdict
    };
    // 2 of 20 runs: between 1.8 % and 28.3 % of runs at 95 %, of 60 s each. But 8 of 1,200 seconds:
    // up to 0.72 a minute.
    assert_eq!(verdict("0.8/min", 2, 20).outcome, Outcome::Pass);
    assert_eq!(verdict("0.6/min", 2, 20).outcome, Outcome::Inconclusive);
    assert_eq!(verdict("0.01/min", 2, 20).outcome, Outcome::Fail);
    assert_eq!(verdict("9/s", 20, 20).episode_rate_upper, None, "every run was late");
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
}
