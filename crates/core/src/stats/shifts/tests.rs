use super::*;
use crate::random::Random;
use proptest::prelude::*;
use std::f64::consts::TAU;
use std::fmt::Write;

const BASE: [f64; 5] = [100.0, 104.0, 98.0, 110.0, 102.0];
const OTHER: [f64; 5] = [150.0, 170.0, 140.0, 165.0, 155.0];

fn shifts(a: &[f64], b: &[f64]) -> Shifts {
    Shifts::of(a, b, &ShiftTest::of(a.len(), b.len())).unwrap()
}

fn close(ours: f64, reference: f64) -> bool {
    (ours / reference - 1.0).abs() < 1e-12
}

#[test]
fn five_values_give_the_interval_of_the_tables() {
    // scipy.stats.mannwhitneyu(method="exact"): P(U <= 2) = 4/252, P(U <= 4) = 12/252; so the third and
    // the fifth of the sorted differences.
    let found = shifts(&BASE, &OTHER);
    assert_eq!((found.estimate(), found.interval(0.05)), (53.0, Some([38.0, 68.0])));
    assert_eq!(found.interval(0.1), Some([40.0, 66.0]));
    assert!(close(found.p(0.0), 2.0 / 252.0) && close(found.p_above(0.0), 1.0 / 252.0));
    assert!(found.p_above(53.0) >= 0.5 && found.p_above(60.0) > 0.5);
    assert_eq!(shifts(&BASE[..3], &OTHER[..3]).interval(0.05), None, "3 against 3 are too few");
    assert!(shifts(&BASE[..3], &OTHER[..3]).interval(0.1).is_some());
    assert_eq!(Shifts::of(&[], &OTHER, &ShiftTest::of(0, 5)), None);
    assert_eq!(Shifts::of(&BASE, &[f64::NAN; 5], &ShiftTest::of(5, 5)), None);
}

#[test]
fn a_constant_sample_leaves_the_interval_of_a_median() {
    let values: Vec<f64> = [3, 1, 8, 2, 5, 7, 6, 4].map(f64::from).to_vec();
    // 8 values: the lowest to the highest, since 18 in 256 is more than 5 %.
    let found = shifts(&values, &[10.0; 8]);
    assert_eq!((found.estimate(), found.interval(0.05)), (5.5, Some([2.0, 9.0])));
    let alike = shifts(&[2.0; 8], &[5.0; 8]);
    assert_eq!((alike.estimate(), alike.interval(0.05)), (3.0, Some([3.0, 3.0])));
    assert!(close(alike.p(3.0), 1.0) && close(alike.p(0.0), 2.0 / 12_870.0));
}

/// One number of a case.
type Draw = fn(&mut Random) -> f64;

/// Above 0 and below 1.
fn uniform(random: &mut Random) -> f64 {
    ((random.word() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// By G. E. P. Box, M. E. Muller.
fn normal(random: &mut Random, deviation: f64) -> f64 {
    deviation * (-2.0 * uniform(random).ln()).sqrt() * (TAU * uniform(random)).cos()
}

fn gumbel(random: &mut Random, scale: f64) -> f64 {
    -scale * (-uniform(random).ln()).ln()
}

/// What the logarithms of the runs' values are drawn from, and the median of their differences.
const CASES: [(&str, Draw, Draw, f64); 5] = [
    ("alike: sd 0.3", |r| normal(r, 0.3), |r| normal(r, 0.3), 0.0),
    ("sd 0.6 against 0.2", |r| normal(r, 0.6), |r| normal(r, 0.2), 0.0),
    ("sd 0.6 against 0.05", |r| normal(r, 0.6), |r| normal(r, 0.05), 0.0),
    ("sd 0.6 against a constant", |r| normal(r, 0.6), |_| 0.0, 0.0),
    // The median by numerical integration (SciPy 1.17.1).
    ("Gumbel, scale 0.4 against 0.1", |r| gumbel(r, 0.4), |r| gumbel(r, 0.1), GUMBEL),
];

#[allow(clippy::excessive_precision)]
const GUMBEL: f64 = -0.09585126511621024;

/// The share of 95 % intervals that have the true shift, in percent.
fn coverage((_, a, b, truth): (&str, Draw, Draw, f64), [m, n]: [usize; 2], times: u32) -> f64 {
    let (test, mut random) = (ShiftTest::of(m, n), Random::new(7));
    let mut draw =
        |from: Draw, count| -> Vec<f64> { (0..count).map(|_| from(&mut random)).collect() };
    let mut held = 0;
    for _ in 0..times {
        let (a, b) = (draw(a, m), draw(b, n));
        let found = Shifts::of(&a, &b, &test).unwrap().interval(0.05);
        held += u32::from(found.is_none_or(|[low, high]| low <= truth && truth <= high));
    }
    100.0 * f64::from(held) / f64::from(times)
}

#[test]
fn intervals_have_the_shift_as_often_as_they_say() {
    // The standard error is 0.5: a rank sum interval had 85 and 90 % in the first two.
    for (case, sizes) in [(3, [12, 12]), (2, [12, 12]), (3, [8, 8]), (0, [8, 8]), (4, [6, 6])] {
        let held = coverage(CASES[case], sizes, 2_000);
        assert!(held > 93.5 - 1.0, "{}, {sizes:?}: {held}", CASES[case].0);
        assert!(case != 0 || held < 97.0, "{}, {sizes:?}: {held}", CASES[case].0);
    }
}

/// About a minute.
#[test]
#[ignore = "a minute: make calibrate"]
fn the_coverage_in_the_document_is_what_comes_out() {
    const SIZES: [[usize; 2]; 9] =
        [[4, 4], [5, 5], [6, 6], [7, 7], [8, 8], [12, 12], [16, 16], [6, 12], [12, 6]];
    let document = include_str!("../../../../../METHODOLOGY.md");
    let mut table = String::new();
    for case in CASES {
        write!(table, "| {} |", case.0).unwrap();
        for sizes in SIZES {
            let held = coverage(case, sizes, 40_000);
            assert!(
                sizes[0].min(sizes[1]) < SPREADS_MAY_DIFFER || held >= 93.5,
                "{}: {held}",
                case.0
            );
            write!(table, " {held:.1} |").unwrap();
        }
        table.push('\n');
    }
    println!("{table}");
    for row in table.lines() {
        assert!(document.contains(row), "not in METHODOLOGY.md: {row}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn intervals_agree_with_p_and_turn_round(
        a in prop::collection::vec(1_i32..300, 4..9), b in prop::collection::vec(1_i32..300, 4..9),
        at in -40_i32..40,
    ) {
        let values = |of: &[i32]| of.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
        let (a, b) = (values(&a), values(&b));
        let (forward, backward) = (shifts(&a, &b), shifts(&b, &a));
        let at = f64::from(at);
        for alpha in [0.05, 0.1] {
            let [low, high] = forward.interval(alpha).unwrap();
            prop_assert!(low <= forward.estimate() && forward.estimate() <= high);
            prop_assert_eq!(backward.interval(alpha), Some([-high, -low]));
            prop_assert_eq!(forward.p(at) > alpha, low <= at && at <= high, "{} {}", forward.p(at), at);
        }
        prop_assert!(close(forward.p(at), backward.p(-at)));
        // The brute way: the test itself, between the differences.
        let moved: Vec<f64> = a.iter().map(|value| value + at + 0.5).collect();
        let p = ShiftTest::of(a.len(), b.len()).p(&Placements::of(&moved, &b));
        prop_assert!(forward.p(at + 0.5) >= p * (1.0 - 1e-12));
        let place = 2 * forward.differences.partition_point(|d| *d < at + 0.5);
        prop_assert!(close(forward.p[place], p));
    }
}
