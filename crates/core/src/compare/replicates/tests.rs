use super::super::result::Comparison;
use super::super::tests::{cell, compared as compared_runs, run, virtual_board};
use super::*;
use crate::preemption::Model;
use proptest::prelude::*;

const BASE: [i64; 5] = [100, 104, 98, 110, 102];
const OTHER: [i64; 5] = [150, 170, 140, 165, 155];

/// Runs of two kernels in turn, each with one cell of these 99.9 % quantiles.
fn compared(base: &[i64], other: &[i64], change: impl Fn(&mut Run)) -> Comparison {
    let side = |preemption: &'static str, values: &[i64]| -> Vec<Run> {
        let runs = values.iter().enumerate().map(|(number, us)| {
            run(
                &format!("{preemption}{number}"),
                preemption,
                vec![cell("x", *us, 2 * us), cell("y", 10, 20)],
            )
        });
        runs.collect()
    };
    let runs = side("none", base).into_iter().chain(side("rt", other));
    let changed = runs.map(|mut run| {
        change(&mut run);
        run
    });
    compared_runs(changed.collect())
}

fn close(ours: f64, reference: f64) -> bool {
    (ours / reference - 1.0).abs() < 1e-12
}

#[test]
fn five_runs_of_each_give_the_interval_of_the_tables() {
    let replicates = compared(&BASE, &OTHER, |_| {}).replicates.unwrap();
    assert_eq!(replicates.base.runs, [0, 1, 2, 3, 4]);
    assert_eq!(
        (replicates.base.preemption, replicates.other.unwrap().preemption),
        (Model::None, Model::Rt)
    );
    let p999 = &replicates.estimates[0];
    assert_eq!((p999.quantity, p999.runs), (Measure::P999Ns, [5, 5]));
    // scipy.stats.mannwhitneyu(method="exact") and the sorted pairs.
    assert!(close(p999.ratio.unwrap(), 155.0 / 102.0));
    assert!(close(p999.interval.unwrap()[0], 150.0 / 110.0));
    assert!(close(p999.interval.unwrap()[1], 165.0 / 98.0));
    assert!(close(p999.upper.unwrap(), 165.0 / 100.0));
    assert!(close(p999.p.unwrap(), 2.0 / 252.0));
    // The other cell has p = 1: Holm doubles this one alone.
    assert!(close(p999.p_adjusted.unwrap(), 4.0 / 252.0));
    assert_eq!(replicates.estimates[2].p, Some(1.0));
    let [low, high] = p999.bootstrap.unwrap();
    assert!(1.4 < low && low < high && high < 1.65, "{low} {high}");
    assert_eq!(p999.method, Method::RankSum);
}

#[test]
fn few_runs_give_no_interval() {
    let comparison = compared(&BASE[..3], &OTHER[..3], |_| {});
    let estimate = &comparison.replicates.as_ref().unwrap().estimates[0];
    assert!(estimate.ratio.is_some() && estimate.interval.is_none());
    assert!(estimate.upper.is_some(), "3 and 3 carry a one-sided bound: 1 in 20");
    assert!(comparison.caveats[0].contains("too few runs"));
    let four = compared(&BASE[..4], &OTHER[..4], |_| {});
    assert!(four.replicates.unwrap().estimates[0].interval.is_some());
}

#[test]
fn deterministic_runs_of_one_seed_and_phase_are_one_run() {
    let number = |run: &Run| run.run_id.bytes().map(u64::from).sum::<u64>();
    let comparison = compared(&BASE, &OTHER, |run| virtual_board(run, 1, 7));
    assert!(comparison.replicates.is_none());
    assert!(comparison.caveats[0].contains("vary the phase"));
    assert!(
        comparison.caveats[1].starts_with("none1 repeats none0: the same plan, seed and phase")
    );
    assert_eq!(comparison.groups[0].runs, [0]);
    let phases = compared(&BASE, &OTHER, |run| virtual_board(run, 1, number(run)));
    let seeds = compared(&BASE, &OTHER, |run| virtual_board(run, number(run), 7));
    for varied in [phases, seeds] {
        assert_eq!(varied.replicates.unwrap().estimates[0].runs, [5, 5]);
        assert_eq!(varied.caveats, [""; 0]);
    }
    // Where time is not counted, a second run is another one.
    let free = compared(&BASE, &OTHER, |run| {
        virtual_board(run, 1, 7);
        run.board.lab.as_mut().unwrap().counted = false;
    });
    assert!(free.replicates.is_some());
}

#[test]
fn a_run_given_twice_is_one_replicate() {
    let comparison = compared(&BASE, &OTHER, |run| {
        if run.kernel.preemption == Model::Rt {
            run.run_id = "same".to_owned();
        }
    });
    assert!(comparison.replicates.is_none());
    assert!(comparison.caveats[0].contains("one run of a kernel"));
}

#[test]
fn runs_with_costs_only_get_no_estimate_of_latencies() {
    let of =
        |id: &str, model| run(id, model, vec![crate::compare::tests::cost("x", 1.0, 2.0, 3.0)]);
    let runs = [of("a", "none"), of("b", "none"), of("c", "rt"), of("d", "rt"), of("e", "full")];
    let comparison = compared_runs(runs.to_vec());
    assert!(comparison.replicates.is_none());
    let [said] = &comparison.caveats[..] else { panic!("{:?}", comparison.caveats) };
    assert!(said.starts_with("only one run of Linux"), "{said}");
}

#[test]
fn runs_of_one_kernel_get_no_estimate() {
    let one = compared(&BASE, &[], |_| {});
    assert!(one.replicates.is_none());
    assert!(one.caveats[0].contains("runs are of the same kernel"));
}

#[test]
fn every_kernel_is_estimated_against_the_first() {
    let kernels = [("none", 100), ("voluntary", 90), ("full", 50), ("rt", 10)];
    let mut runs = Vec::new();
    for replicate in 0..4 {
        for (preemption, us) in kernels {
            let us = us + replicate;
            runs.push(run(
                &format!("{preemption}{replicate}"),
                preemption,
                vec![cell("x", us, us)],
            ));
        }
    }
    runs.push(run("lazy0", "lazy", vec![cell("x", 1, 1)]));
    let comparison = compared_runs(runs);
    let replicates = comparison.replicates.unwrap();
    assert_eq!((replicates.base.runs, replicates.other), (vec![0, 4, 8, 12], None));
    let of: Vec<_> = replicates.estimates.iter().map(|e| (e.group, e.quantity)).collect();
    let (p999, max) = (Measure::P999Ns, Measure::MaxNs);
    assert_eq!(of, [(1, p999), (1, max), (2, p999), (2, max), (3, p999), (3, max)]);
    for estimate in &replicates.estimates {
        // The two samples never overlap: p is the least that 4 and 4 runs can give,
        // 2 of 70 arrangements, and Holm multiplies it by the three kernels.
        assert!(close(estimate.p.unwrap(), 2.0 / 70.0));
        assert!(close(estimate.p_adjusted.unwrap(), 6.0 / 70.0));
    }
    assert!(comparison.caveats[0].contains("none of 3 comparisons can reach p < 0.05"));
    assert!(comparison.caveats[0].ends_with("5 runs of each kernel are enough"));
    assert!(comparison.caveats[1].starts_with("only one run of Linux 6.1.0-lazy (lazy)"));
}

proptest! {
    #[test]
    fn intervals_enclose_the_estimate_and_turn_round(
        base in prop::collection::vec(1_i64..1_000, 4..9), other in prop::collection::vec(1_i64..1_000, 4..9),
    ) {
        let forward = compared(&base, &other, |_| {}).replicates.unwrap().estimates.remove(0);
        let backward = compared(&other, &base, |_| {}).replicates.unwrap().estimates.remove(0);
        let [low, high] = forward.interval.unwrap();
        let ratio = forward.ratio.unwrap();
        prop_assert!(low <= ratio && ratio <= high && high >= forward.upper.unwrap());
        prop_assert!(close(backward.ratio.unwrap() * ratio, 1.0));
        prop_assert!(close(backward.interval.unwrap()[0] * high, 1.0));
        prop_assert!(close(forward.p.unwrap(), backward.p.unwrap()));
        prop_assert!(forward.p_adjusted >= forward.p);
    }
}
