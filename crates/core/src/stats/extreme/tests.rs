use super::gates::{
    Tail, fitting, kolmogorov_smirnov, mann_kendall, predicted, stable, stationary,
};
use super::reference::{PORT_PIRIE, RAIN};
use super::*;
use crate::random::Random;
use proptest::prelude::*;

/// Equal to four digits, which is what is printed in the literature.
fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 5e-5 * expected.abs(), "{value} {expected}");
}

/// Values with the resolution of a float, nearly: cells of `step`, each around its value.
fn exact(values: &[f64], threshold: f64, step: f64) -> Excesses {
    let cells = values.iter().map(|value| {
        let low = value - threshold - step / 2.0;
        Excess { low, high: low + step, count: 1.0 }
    });
    Excesses::new(cells.collect(), 0.0).unwrap()
}

#[test]
fn block_maxima_have_the_fit_of_the_literature() {
    let maxima = Maxima::new(PORT_PIRIE.to_vec()).unwrap();
    let fit = maxima.fit();
    // Coles 2001, 3.4.1, and to these digits scipy 1.17: genextreme, minimised by Nelder-Mead.
    close(fit.location, 3.874_750);
    close(fit.scale, 0.198_044);
    close(fit.shape, -0.050_110);
    close(fit.nll, -4.339_058);
    close(fit.level(100.0), 4.688_403);
    let (low, high) = maxima.level_interval(&fit, 100.0, TWO_SIDED_95);
    close(low, 4.490_437);
    close(high, 5.260_705);
}

#[test]
fn excesses_have_the_fit_of_the_literature() {
    let step = 1e-4;
    let rain = exact(&RAIN, 30.0, step);
    let fit = rain.fit();
    // Coles 2001, 4.4.1, and to these digits scipy 1.17, as above. The likelihood of cells is that
    // of densities times their width.
    close(fit.scale, 7.440_269);
    close(fit.shape, 0.184_499);
    close(fit.nll + 152.0 * f64::ln(step), 485.093_721);
    // Once in 100 years of 365 days.
    let one_in = 36_500.0 * 152.0 / 17_531.0;
    close(30.0 + fit.level(one_in), 106.328_03);
    let (low, high) = rain.level_interval(&fit, one_in, TWO_SIDED_95);
    close(30.0 + low, 80.857_46);
    close(30.0 + high, 184.987_75);
    close(30.0 + rain.level_interval(&fit, one_in, ONE_SIDED_95).1, 164.678_51);
    let (low, high) = rain.shape_interval(&fit, TWO_SIDED_95);
    assert!((low - 0.013_562).abs() < 1e-5 && (high - 0.415_440).abs() < 1e-5, "{low} {high}");
    assert_eq!(rain.endpoint_interval(&fit, TWO_SIDED_95), None);
    // The sum over scipy's genpareto.cdf.
    assert!((anderson_darling(&rain, &fit) - 0.391_37).abs() < 1e-3);
}

fn uniform(random: &mut Random) -> f64 {
    ((random.word() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

fn made_up(shape: f64, count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random::new(seed);
    let tail = Pareto { shape, scale: 3_000.0, nll: 0.0 };
    (0..count).map(|_| tail.level(uniform(&mut random).recip())).collect()
}

#[test]
fn steps_of_a_clock_do_not_look_like_a_heavy_tail() {
    let values = made_up(0.05, 20_000, 1);
    let steps = |x: f64| Excess {
        low: (x / 1e3).floor() * 1e3,
        high: (x / 1e3).floor() * 1e3 + 1e3,
        count: 1.0,
    };
    let grouped = Excesses::new(values.iter().map(|x| steps(*x)).collect(), 0.0).unwrap();
    let fit = grouped.fit();
    // Three standard errors, which are (1 + xi) / sqrt(n) for the shape.
    assert!((fit.shape - 0.05).abs() < 3.0 * 1.05 / 20_000_f64.sqrt(), "{}", fit.shape);
    assert!((fit.scale - 3_000.0).abs() < 3.0 * 3_000.0 * (2.0 * 1.05 / 20_000_f64).sqrt());
    // What the same does that takes each step for an exact value.
    let naive = values.iter().map(|x| (x / 1e3).floor() * 1e3 + 0.5);
    let naive = exact(&naive.collect::<Vec<_>>(), 0.0, 1.0).fit();
    assert!(naive.shape > 0.3, "{}", naive.shape);
}

#[test]
fn clusters_that_met_by_chance_do_not_change_the_shape() {
    let values = made_up(0.05, 60_000, 2);
    let mut random = Random::new(3);
    // Each is the largest of a geometric number of which 0.8 are one.
    let mut maxima: Vec<f64> = Vec::new();
    let mut meets = false;
    for value in values {
        match maxima.last_mut() {
            Some(last) if meets => *last = last.max(value),
            _ => maxima.push(value),
        }
        meets = uniform(&mut random) < 0.2;
    }
    let cells = |met| {
        let cells = maxima.iter().map(|low| Excess { low: *low, high: low + 1.0, count: 1.0 });
        Excesses::new(cells.collect(), met).unwrap().fit()
    };
    let error = 3.0 * 1.05 / 48_000_f64.sqrt();
    assert!((cells(0.2).shape - 0.05).abs() < error, "{}", cells(0.2).shape);
    assert!(cells(0.0).shape < 0.05 - 2.0 * error, "{}", cells(0.0).shape);
}

#[test]
fn seconds_that_follow_one_another_are_one_cluster() {
    let seconds = Seconds::new(vec![1, 9, 8, 1, 1, 7, 1, 1, 6, 9, 5, 1]);
    let peaks = seconds.peaks(5);
    assert_eq!(peaks.values, [9, 7, 9]);
    // Three begin behind six seconds below: ln 2 a second.
    close(peaks.begun, 12.0 * 2_f64.ln());
    // So five of eight are hidden by a larger one.
    let met = 1.0 - 3.0 / peaks.begun;
    let half = Pareto { shape: 0.0, scale: 2_f64.ln().recip(), nll: 0.0 };
    let observed = peaks.excesses().unwrap().observed_above(&half, 1.0);
    close(observed, 0.5 / (1.0 - met + met * 0.5));
    assert_eq!(seconds.peaks_within(5, 2, 6).values, [8, 7]);
    assert!(seconds.peaks(10).is_empty());
    assert!(Seconds::new(Vec::new()).peaks(0).is_empty());
}

#[test]
fn the_step_of_a_coarse_clock_is_seen() {
    let step = |values: &[i64]| Seconds::new(values.to_vec()).step();
    assert_eq!(step(&[7_000, 3_000, 3_000, 4_000]), 1_000);
    // 32,768 Hz, rounded to nanoseconds.
    assert_eq!(step(&[30_517, 61_035, 61_036, 91_553]), 30_517);
    assert_eq!(step(&[5, 5, 5]), 1);
    assert_eq!(step(&[i64::MIN, i64::MAX]), u64::MAX);
}

#[test]
fn forward_stop_is_the_last_mean_below_the_rate() {
    assert_eq!(forward_stop(&[0.5, 0.5], 0.1), 0);
    assert_eq!(forward_stop(&[0.001, 0.01, 0.9, 0.9], 0.1), 2);
    // -ln(1 - p): 0.223, 0.001, 0.001; means 0.223, 0.112, 0.075.
    assert_eq!(forward_stop(&[0.2, 0.001, 0.001], 0.1), 3);
    assert_eq!(forward_stop(&[], 0.1), 0);
}

#[test]
fn p_values_are_those_of_the_table_and_between() {
    // 5 % and 1 % points of 20,000 samples of 500, drawn, fitted (without cells) and summed with
    // numpy 2 and scipy 1.17, seed 7.
    for (shape, five, one) in [(0.0, 0.971, 1.460), (0.2, 0.903, 1.283)] {
        assert!((p_value(five, shape) - 0.05).abs() < 0.004, "{}", p_value(five, shape));
        assert!((p_value(one, shape) - 0.01).abs() < 0.0015, "{}", p_value(one, shape));
    }
    assert!(p_value(0.0, 0.1) > 0.999 && p_value(20.0, 0.1) < 1e-6);
    assert!(p_value(1.0, -3.0) > p_value(1.0, 0.0) && p_value(1.0, 7.0) < p_value(1.0, 0.9));
}

#[test]
fn trends_and_halves_are_told() {
    // scipy.stats.kendalltau of 1, 2, 4, 3, 3 against 0 to 4: S = 5; the variance with one tie of two
    // is (5 * 4 * 15 - 2 * 1 * 9) / 18 = 15.67; with the correction of continuity 4 / 3.958.
    close(mann_kendall(&[1, 2, 4, 3, 3]), 4.0 / (282.0_f64 / 18.0).sqrt());
    close(mann_kendall(&[3, 3, 4, 2, 1]), -4.0 / (282.0_f64 / 18.0).sqrt());
    assert_eq!(mann_kendall(&[2; 30]), 0.0);
    assert_eq!(kolmogorov_smirnov(&[1, 2, 3, 4], &[3, 4, 5, 6]), 0.5);
    assert_eq!(kolmogorov_smirnov(&[1, 2], &[1, 2]), 0.0);
}

#[test]
fn halves_that_differ_without_a_trend_are_told() {
    let steady: Vec<i64> = (0..2_000).map(|i| 1_000 + i * 7_919 % 1_009).collect();
    assert!(stationary(&steady).is_ok());
    // As high on average, once every other ten seconds higher and else lower.
    let other = |(i, x): (usize, &i64)| match (i < 1_000, i / 10 % 2) {
        (true, _) => *x,
        (false, 0) => x + 1_000,
        (false, _) => x - 1_000,
    };
    let refusal =
        stationary(&steady.iter().enumerate().map(other).collect::<Vec<_>>()).unwrap_err();
    assert!(refusal.sentence.contains("Kolmogorov-Smirnov"), "{refusal:?}");
}

#[test]
fn steps_of_a_clock_are_no_misfit() {
    let step = |x: &f64| (x / 1e3).floor() * 1e3;
    let cells = made_up(0.05, 2_000, 4)
        .iter()
        .map(|x| Excess { low: step(x), high: step(x) + 1e3, count: 1.0 })
        .collect();
    let excesses = Excesses::new(cells, 0.0).unwrap();
    let fit = excesses.fit();
    let p = p_value(anderson_darling(&excesses, &fit), fit.shape);
    assert!(p > 0.01, "{p}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_is_more_likely_than_the_fit(
        shape in -0.6_f64..1.5, seed in 0_u64..1_000, step in 1.0_f64..2_000.0,
        other in -0.5_f64..0.5, scale in 0.5_f64..2.0, met in 0.0_f64..0.2,
    ) {
        let cells = made_up(shape, 300, seed).into_iter().map(|x| {
            let low = (x / step).floor() * step;
            Excess { low, high: low + step, count: 1.0 }
        });
        let excesses = Excesses::new(cells.collect(), met).unwrap();
        let fit = excesses.fit();
        let test = Pareto { shape: (fit.shape + other).max(-1.0), scale: fit.scale * scale, nll: 0.0 };
        let share = |x: f64| excesses.observed_above(&test, x);
        let nll: f64 = excesses.cells().iter().map(|cell| -(share(cell.low) - share(cell.high)).ln()).sum();
        prop_assert!(nll.is_nan() || nll >= fit.nll - 1e-6, "{nll} {fit:?}");
        // The interval holds the estimate, and its ends lose what they say.
        let (low, high) = excesses.level_interval(&fit, 3_000.0, TWO_SIDED_95);
        prop_assert!(low < fit.level(3_000.0) && fit.level(3_000.0) < high);
        for end in [low, high] {
            let lost = excesses.level_deviance(&fit, end, 3_000.0);
            prop_assert!((lost - TWO_SIDED_95).abs() < 0.01, "{lost}");
        }
        let (low, high) = excesses.shape_interval(&fit, TWO_SIDED_95);
        prop_assert!(low <= fit.shape && fit.shape <= high);
        if let Some((from, to)) = excesses.endpoint_interval(&fit, TWO_SIDED_95) {
            prop_assert!(from <= fit.endpoint().unwrap() * (1.0 + 1e-6) && fit.endpoint().unwrap() <= to);
            prop_assert_eq!(to.is_finite(), high < 0.0, "{} {}", to, high);
        }
    }

    #[test]
    fn no_record_makes_it_panic(
        maxima in prop::collection::vec(prop_oneof![any::<i64>(), 0_i64..100], 0..6_000),
    ) {
        let _ = answer(&Seconds::new(maxima)).sentences();
    }
}

#[test]
fn a_third_of_the_thresholds_may_be_rejected() {
    assert_eq!(fitting(&[0.001, 0.5, 0.5, 0.5]).unwrap(), 1);
    let refusal = fitting(&[0.001, 0.5, 0.5]).unwrap_err();
    assert_eq!(refusal.gate, Gate::Fit);
    assert!(fitting(&[0.001]).is_err());
}

/// An hour and a half of seconds of which a quarter has an event.
#[allow(clippy::cast_possible_truncation, reason = "latencies of microseconds")]
fn hour(shape: f64, scale: impl Fn(usize) -> f64, seed: u64) -> Vec<i64> {
    let mut random = Random::new(seed);
    let second = |i: usize| {
        let tail = Pareto { shape, scale: scale(i), nll: 0.0 };
        let event = uniform(&mut random) < 0.22;
        let excess = tail.level(uniform(&mut random).recip());
        if event { 50_000 + excess as i64 } else { 40_000 + (uniform(&mut random) * 1e4) as i64 }
    };
    (0..5_400).map(second).collect()
}

fn refused(maxima: Vec<i64>) -> Refusal {
    match answer(&Seconds::new(maxima)) {
        Answer::Refused(refusal) => refusal,
        Answer::Estimate(estimate) => panic!("{estimate:?}"),
    }
}

#[test]
fn each_gate_says_why_it_is_closed() {
    let steady = |_| 3_000.0;
    let short = hour(0.05, steady, 1)[..1_500].to_vec();
    let all = [
        refused(short),
        refused(hour(0.05, steady, 1).iter().map(|x| x / 5_000 * 5_000).collect()),
        refused(hour(0.05, |i| if i < 2_700 { 3_000.0 } else { 4_500.0 }, 1)),
        refused(
            hour(0.05, steady, 1)
                .iter()
                .map(|x| if x % 10 == 0 { x + 20_000 } else { *x })
                .collect(),
        ),
    ];
    let gates: Vec<_> = all.iter().map(|refusal| refusal.gate).collect();
    assert_eq!(gates, [Gate::Peaks, Gate::Resolution, Gate::Stationarity, Gate::Fit], "{all:#?}");
    assert!(all.iter().all(|refusal| !refusal.sentence.ends_with('.')));
}

#[test]
fn the_second_half_is_predicted_from_the_first() {
    let steady = Seconds::new(hour(0.05, |_| 3_000.0, 1));
    assert!(predicted(&steady, 52_000).is_ok());
    let grown = Seconds::new(hour(0.05, |i| if i < 2_700 { 3_000.0 } else { 4_500.0 }, 1));
    let refusal = predicted(&grown, 52_000).unwrap_err();
    assert!(refusal.sentence.contains("peaks of the second half were to exceed"), "{refusal:?}");
    let mut one = hour(0.05, |_| 3_000.0, 1);
    one[5_000] = 200_000;
    let refusal = predicted(&Seconds::new(one), 52_000).unwrap_err();
    assert!(refusal.sentence.ends_with("the largest of the second half, 200.0 us"), "{refusal:?}");
    assert!(predicted(&steady, 90_000).is_err());
}

#[test]
fn a_tail_that_changes_its_form_is_not_stable() {
    let tail =
        |maxima: Vec<i64>, threshold| Tail::of(Seconds::new(maxima).peaks(threshold)).unwrap();
    let steady = hour(0.05, |_| 3_000.0, 1);
    assert!(stable(&tail(steady.clone(), 52_000), &tail(steady.clone(), 56_000)).is_ok());
    // From 58 us on it is six times as wide.
    let bent: Vec<_> =
        steady.iter().map(|x| if *x > 58_000 { 58_000 + 6 * (x - 58_000) } else { *x }).collect();
    let refusal = stable(&tail(bent.clone(), 52_000), &tail(bent, 58_000)).unwrap_err();
    assert_eq!(refusal.gate, Gate::Stability);
}

/// The answer for the first made-up run whose gates are open, as most are.
fn open(shape: f64) -> Extrapolation {
    let of = |seed| match answer(&Seconds::new(hour(shape, |_| 3_000.0, seed))) {
        Answer::Estimate(estimate) => Some(estimate),
        Answer::Refused(_) => None,
    };
    (0..10).find_map(of).unwrap()
}

#[test]
fn an_answer_says_what_it_is() {
    let heavy = open(0.5);
    let text = Answer::Estimate(heavy).sentences().join("\n");
    assert!(text.starts_with(LABEL) && text.contains("heavy tail, no finite bound"), "{text}");
    assert_eq!(heavy.endpoint_ns, None);
    let bounded = open(-0.4);
    let text = Answer::Estimate(bounded).sentences().join("\n");
    let (end, (low, high)) = bounded.endpoint_ns.unwrap();
    // The true one is 50 us + 3 us / 0.4.
    assert!(low < 57_500.0 && 57_500.0 < high && low < end && end < high, "{bounded:?}");
    assert!(text.contains("the model ends at") && text.contains("54,000 s"), "{text}");
}

#[test]
fn a_cell_is_answered_thread_by_thread() {
    use crate::block::{Block, Moments};
    use crate::run::{CellData, SeriesData, ThreadData};
    let block = |(index, max): (usize, i64)| Block {
        thread: 0,
        series: 0,
        index: index as u64,
        moments: Moments { count: 1, max, ..Moments::EMPTY },
        coarse: Vec::new(),
    };
    let maxima = hour(0.05, |_| 3_000.0, 5);
    let blocks = maxima.iter().copied().enumerate().map(block).collect();
    let long = ThreadData::of(SeriesData { blocks, ..SeriesData::default() });
    let cell = CellData { threads: vec![long, ThreadData::default()], ..CellData::default() };
    let answers = from_cell(&cell, 0);
    assert_eq!(answers[0], answer(&Seconds::new(maxima)));
    assert!(matches!(&answers[1], Answer::Refused(refusal) if refusal.gate == Gate::Peaks));
}

#[test]
fn no_shape_is_below_that_of_a_uniform_distribution() {
    let excesses = exact(&made_up(-1.6, 300, 1), 0.0, 1e-3);
    let fit = excesses.fit();
    close(fit.shape, -1.0);
    assert_eq!(excesses.shape_interval(&fit, TWO_SIDED_95).0, -1.0);
}
