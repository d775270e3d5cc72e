use super::*;
use proptest::prelude::*;

const A: [f64; 6] = [96.0, 104.0, 99.0, 110.0, 102.0, 101.0];
const B: [f64; 6] = [103.0, 125.0, 98.0, 140.0, 107.0, 115.0];

fn close(ours: f64, reference: f64) -> bool {
    (ours / reference - 1.0).abs() < 1e-11
}

#[test]
fn the_statistic_agrees_with_scipy() {
    // scipy.stats.brunnermunzel, SciPy 1.17.1. The first is its example, of Brunner and Munzel.
    let x = [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 1, 1].map(f64::from);
    let y = [3, 3, 4, 3, 1, 2, 3, 1, 1, 5, 4].map(f64::from);
    for (a, b, t, df, p) in [
        (
            &x[..],
            &y[..],
            3.137_467_482_302_950_5,
            17.682_841_979_481_545,
            0.005_786_208_666_151_469,
        ),
        (&A[..], &B[..], 1.838_036_555_234_519_3, 7.563_535_91, 0.105_499_815_435_637_91),
    ] {
        let studentised = Placements::of(a, b).statistic().unwrap();
        assert!(close(studentised.t, t), "{studentised:?}");
        assert!((studentised.df / df - 1.0).abs() < 1e-8, "{studentised:?}");
        assert!(close(student_p(studentised.t, studentised.df), p));
    }
}

#[test]
fn the_distribution_under_permutation_agrees_with_counting() {
    // Of all arrangements, those whose statistic is as large, by scipy.stats.brunnermunzel's.
    for (m, n, all, counts) in [
        (6, 6, 924, [280, 82, 52, 30, 14]),
        (8, 8, 12_870, [4_116, 946, 500, 280, 102]),
        (6, 9, 5_005, [1_562, 392, 216, 132, 54]),
    ] {
        let test = BrunnerMunzel::of(m, n);
        assert_eq!(test.permuted.len(), all);
        for (t, count) in [1.0, 2.0, 2.5, 3.0, 4.0].into_iter().zip(counts) {
            let share = f64::from(count) / test.permuted.len() as f64;
            assert!(close(test.permutation_p(t), share), "{m} {n} {t}");
        }
        assert!(close(test.permutation_p(f64::INFINITY), test.least));
    }
    let test = BrunnerMunzel::of(6, 6);
    // 102 of 924 are as far: more than Student's t says.
    assert!(close(test.p(&Placements::of(&A, &B)), 102.0 / 924.0));
    assert!(!BrunnerMunzel::of(12, 12).is_exact() && BrunnerMunzel::of(11, 11).is_exact());
}

#[test]
fn one_constant_sample_makes_it_the_sign_test() {
    let values: Vec<f64> = (1..=8).map(f64::from).collect();
    let test = BrunnerMunzel::of(8, 8);
    // 2 * scipy.stats.binom.cdf(k, 8, 0.5)
    for (constant, p) in [(1.5, 18.0 / 256.0), (2.5, 74.0 / 256.0), (4.5, 1.0), (2.0, 74.0 / 256.0)]
    {
        let constant = [constant; 8];
        assert!(close(test.p(&Placements::of(&values, &constant)), p));
        assert!(close(test.p(&Placements::of(&constant, &values)), p));
    }
    assert!(close(test.p(&Placements::of(&values, &[9.0; 8])), 2.0 / 12_870.0));
    assert!(close(test.p(&Placements::of(&[3.0; 8], &[3.0; 8])), 1.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_turns_round_and_knows_no_scale(
        a in prop::collection::vec(0_i32..30, 6..9), b in prop::collection::vec(0_i32..30, 6..9),
    ) {
        let values = |of: &[i32], map: fn(f64) -> f64| -> Vec<f64> {
            of.iter().map(|value| map(f64::from(*value))).collect()
        };
        let p = |a: &[f64], b: &[f64]| BrunnerMunzel::of(a.len(), b.len()).p(&Placements::of(a, b));
        let plain = p(&values(&a, |x| x), &values(&b, |x| x));
        prop_assert!((0.0..=1.0).contains(&plain));
        prop_assert!(close(p(&values(&b, |x| x), &values(&a, |x| x)), plain));
        prop_assert!(close(p(&values(&a, f64::exp), &values(&b, f64::exp)), plain));
        prop_assert!(close(p(&values(&a, |x| -x), &values(&b, |x| -x)), plain));
    }
}
