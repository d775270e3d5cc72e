//! The ratio of two rates of late episodes.

use super::bounds::{
    binomial_cdf, binomial_reaches, clopper_pearson_lower, clopper_pearson_upper, real,
};
use super::special::gamma_tails;

/// How the rate of episodes of one course stands to that of another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpisodeRatio {
    /// Rate of b over rate of a; infinite if a has no episode.
    pub ratio: f64,
    /// The interval of the ratio: central, at least at the confidence. Infinite above if a has no
    /// episode, 0 below if b has none.
    pub interval: [f64; 2],
    /// Two-sided p that the rates are equal: at most 1 - confidence if and only if the interval
    /// does not have 1 inside.
    pub p: f64,
}

/// The ratio of the rate of `k_b` episodes in the time `t_b` to that of `k_a` in `t_a`, by the
/// exact conditional test: of k_a + k_b episodes, the number that b has is binomial, with the
/// probability t_b / (t_a + t_b) if rates are equal. The interval is that of Clopper and Pearson
/// for this probability. None without any episode, and unless both times (of one unit) are above 0
/// and finite, and `confidence` is between 0 and 1.
///
/// It holds if episodes come singly (as a Poisson process) at one rate in all runs of a side.
/// p is twice the smaller tail, so that it agrees with the interval; that of R's `poisson.test`,
/// which adds up the less likely outcomes, is another, though its interval is this one.
///
/// J. Przyborowski, H. Wilenski, Biometrika 31 (1940).
#[must_use]
pub fn episode_ratio(
    (k_a, t_a): (u64, f64),
    (k_b, t_b): (u64, f64),
    confidence: f64,
) -> Option<EpisodeRatio> {
    let is_time = |t: f64| t.is_finite() && t > 0.0;
    let all = k_a.checked_add(k_b).filter(|all| *all > 0)?;
    if !(is_time(t_a) && is_time(t_b) && confidence > 0.0 && confidence < 1.0) {
        return None;
    }
    // Odds of an episode to be of b, per time.
    let ratio =
        |of_b: f64, of_a: f64| if of_a > 0.0 { of_b / of_a * (t_a / t_b) } else { f64::INFINITY };
    let tail = f64::midpoint(1.0, confidence);
    // The bounds of the share of b; of its complement they are those of a, without cancelling.
    let low = [clopper_pearson_lower(k_b, all, tail), clopper_pearson_upper(k_a, all, tail)];
    let high = [clopper_pearson_upper(k_b, all, tail), clopper_pearson_lower(k_a, all, tail)];
    let share = t_b / (t_a + t_b);
    let p = 2.0 * binomial_cdf(k_b, all, share).min(binomial_reaches(k_b, all, share));
    Some(EpisodeRatio {
        ratio: ratio(real(k_b), real(k_a)),
        interval: [ratio(low[0], low[1]), ratio(high[0], high[1])],
        p: p.min(1.0),
    })
}

/// Whether the episodes of some runs, each with the time that it observed, s, are spread more than
/// those of one rate (p < 0.01): the index of dispersion, by the chi-square distribution (R. A.
/// Fisher, Statistical Methods for Research Workers (1925), section 16). Nothing is said of fewer
/// than three runs.
#[must_use]
pub fn are_overdispersed(runs: &[(u64, f64)]) -> bool {
    let time: f64 = runs.iter().map(|(_, seconds)| seconds).sum();
    let rate = runs.iter().map(|(count, _)| real(*count)).sum::<f64>() / time;
    if runs.len() < 3 || !(rate.is_finite() && rate > 0.0) {
        return false;
    }
    let index: f64 = runs
        .iter()
        .filter(|(_, seconds)| *seconds > 0.0)
        .map(|(count, seconds)| (real(*count) - rate * seconds).powi(2) / (rate * seconds))
        .sum();
    let freedom = real(runs.len() as u64 - 1);
    index.is_finite() && gamma_tails(freedom / 2.0, index / 2.0).1 < 0.01
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(ours: f64, reference: f64) -> bool {
        (ours - reference).abs() <= 1e-9 * reference.abs() || ours.to_bits() == reference.to_bits()
    }

    #[test]
    fn ratios_agree_with_poisson_test() {
        // The first is the example of R's poisson.test, with its ratio and interval; all intervals
        // by scipy.stats.beta.ppf, p as twice the smaller binomial tail with mpmath.
        let inf = f64::INFINITY;
        for (a, b, ratio, interval, p) in [
            (
                (11, 800.0),
                (21, 3_011.0),
                0.507_231_061_864_074_1,
                [0.233_794_207_134_499_22, 1.164_922_229_848_712_7],
                0.112_017_319_575_399_32,
            ),
            (
                (21, 3_011.0),
                (11, 800.0),
                1.971_488_095_238_095_3,
                [0.858_426_403_391_639_9, 4.277_265_943_654_075],
                0.112_017_319_575_399_3,
            ),
            ((0, 100.0), (5, 100.0), inf, [0.916_355_857_315_46, inf], 0.0625),
            ((5, 100.0), (0, 100.0), 0.0, [0.0, 1.091_279_105_182_546], 0.0625),
            (
                (3, 3_600.0),
                (30, 7_200.0),
                5.0,
                [1.554_937_937_545_025_4, 25.602_922_902_394_845],
                0.002_569_689_798_387_503,
            ),
            (
                (1_000, 1e5),
                (1_100, 1e5),
                1.1,
                [1.008_798_832_314_548, 1.199_554_226_269_603_3],
                0.030_720_707_864_242_29,
            ),
        ] {
            let found = episode_ratio(a, b, 0.95).unwrap();
            assert!(near(found.ratio, ratio), "{found:?}");
            assert!(near(found.interval[0], interval[0]), "{found:?}");
            assert!(near(found.interval[1], interval[1]), "{found:?}");
            assert!(near(found.p, p), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_said_without_episodes_or_time() {
        assert_eq!(episode_ratio((0, 1.0), (0, 1.0), 0.95), None);
        for t in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(episode_ratio((1, t), (1, 1.0), 0.95), None);
            assert_eq!(episode_ratio((1, 1.0), (1, t), 0.95), None);
        }
        assert_eq!(episode_ratio((1, 1.0), (1, 1.0), 1.0), None);
        assert_eq!(episode_ratio((u64::MAX, 1.0), (1, 1.0), 0.95), None);
    }

    proptest! {
        #[test]
        fn ratios_turn_round_and_p_agrees_with_the_interval(
            k_a in 0_u64..40, k_b in 1_u64..40, t_a in 1.0_f64..1e4, t_b in 1.0_f64..1e4,
        ) {
            let forward = episode_ratio((k_a, t_a), (k_b, t_b), 0.95).unwrap();
            let backward = episode_ratio((k_b, t_b), (k_a, t_a), 0.95).unwrap();
            let [low, high] = forward.interval;
            prop_assert!(low <= forward.ratio && forward.ratio <= high);
            prop_assert!(near(backward.interval[1], 1.0 / low) && near(backward.interval[0], 1.0 / high));
            prop_assert!(near(forward.p, backward.p));
            prop_assume!((forward.p - 0.05).abs() > 1e-9);
            prop_assert_eq!(forward.p < 0.05, !(low..=high).contains(&1.0));
        }
    }

    #[test]
    fn runs_of_one_rate_are_told_from_one_that_had_them_all() {
        let of = |counts: &[u64]| counts.iter().map(|count| (*count, 60.0)).collect::<Vec<_>>();
        assert!(are_overdispersed(&of(&[0, 0, 0, 40])));
        assert!(!are_overdispersed(&of(&[9, 12, 7, 10])));
        assert!(!are_overdispersed(&of(&[0, 40])), "two runs say nothing");
        assert!(!are_overdispersed(&of(&[0, 0, 0, 0])));
    }
}
