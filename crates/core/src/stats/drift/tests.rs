use super::*;
use crate::block::Moments;
use crate::random::Random;
use crate::schema::{Cell, Latency, What};

/// From above 0 to below 1.
fn unit(random: &mut Random) -> f64 {
    (random.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// A second with this maximum and mean, in ns.
#[allow(clippy::cast_possible_truncation, reason = "made-up values fit")]
fn moments(max: f64, mean: f64) -> Moments {
    let sum = i128::from((mean * 1e3) as i64);
    Moments { count: 1_000, max: max as i64, min: 0, sum, ..Moments::EMPTY }
}

/// A quiet second: the maximum of a Gumbel distribution, the mean of several values.
fn quiet(random: &mut Random) -> Moments {
    let max = 20_000.0 - 2_000.0 * (-unit(random).ln()).ln();
    moments(max, 5_000.0 + (0..4).map(|_| 100.0 * unit(random)).sum::<f64>())
}

/// A late one.
fn late(random: &mut Random) -> Moments {
    moments(60_000.0 - 10_000.0 * unit(random).ln(), 5_000.0 + 400.0 * unit(random))
}

/// Seconds that are late with these probabilities.
fn course(seconds: u64, random: &mut Random, probability: impl Fn(u64) -> f64) -> BySecond {
    let mut course = BySecond::default();
    for second in 0..seconds {
        let is_late = unit(random) < probability(second);
        let moments = if is_late { late(random) } else { quiet(random) };
        course.add(second, &moments, is_late);
    }
    course
}

fn share_found(runs: u64, make: impl Fn(&mut Random) -> BySecond) -> f64 {
    let found = (0..runs).filter(|seed| !changes(&make(&mut Random::new(*seed))).is_empty());
    found.count() as f64 / runs as f64
}

#[test]
fn one_clean_run_in_a_hundred_is_said_to_drift_at_most() {
    for (seconds, probability) in [(20, 0.0), (60, 0.2), (300, 0.1), (900, 0.02)] {
        let share = share_found(500, |random| course(seconds, random, |_| probability));
        // Three standard deviations above 1 %: 2.3 %.
        assert!(share <= 0.023, "{seconds} s, {probability}: {share}");
    }
}

/// Late for 4 s in a row, 1.2 % of the time: no order of single seconds, and an order of episodes.
#[test]
fn episodes_of_some_seconds_are_no_drift() {
    let share = share_found(300, |random| {
        let mut course = BySecond::default();
        let mut left = 0_u64;
        for second in 0..600 {
            left = if left == 0 && random.below(300) == 0 { 4 } else { left };
            let moments = if left > 0 { late(random) } else { quiet(random) };
            course.add(second, &moments, left > 0);
            left = left.saturating_sub(1);
        }
        course
    });
    assert!(share <= 0.024, "{share}");
}

/// Neighbouring seconds resemble each other: an autoregression with 0.5.
#[test]
fn short_correlation_is_no_drift() {
    let share = share_found(300, |random| {
        let mut course = BySecond::default();
        let (mut max, mut mean) = (0.0, 0.0);
        for second in 0..600 {
            max = 0.5 * max + unit(random);
            mean = 0.5 * mean + unit(random);
            course.add(second, &moments(20_000.0 + 9e3 * max, 5_000.0 + 2e3 * mean), false);
        }
        course
    });
    assert!(share <= 0.03, "{share}");
}

/// Two regimes: a share of each cycle, from a random phase, has late seconds.
fn regimes(seconds: u64, cycle: f64, noisy: f64, rate: f64, random: &mut Random) -> BySecond {
    let phase = unit(random) * cycle;
    course(seconds, random, |second| {
        let at = (second as f64 + phase) / cycle;
        if at.fract() < noisy { rate } else { 0.0 }
    })
}

/// With some 15 late seconds or more, that is; 6 of them show no cycle by any test.
#[test]
fn a_third_of_the_run_as_cycle_is_found_in_most_runs() {
    for (noisy, rate) in [(0.1, 0.5), (0.5, 0.1)] {
        let (mut with, mut found) = (0, 0);
        for seed in 0..60 {
            let course = regimes(600, 200.0, noisy, rate, &mut Random::new(seed));
            with += u32::from(course.episodes().is_some_and(|late| late.count() > 0));
            found += u32::from(!changes(&course).is_empty());
        }
        assert!(with >= 50 && 2 * found >= with, "{noisy}: {found} of {with}");
    }
}

#[test]
fn a_step_has_its_time_and_both_levels() {
    let mut random = Random::new(5);
    let mut course = BySecond::default();
    for second in 0..100 {
        let moments = quiet(&mut random);
        let by = if second < 40 { 0 } else { 9_000 };
        course.add(second, &Moments { max: moments.max + by, ..moments }, false);
    }
    let found = changes(&course);
    assert_eq!(found.len(), 1, "{found:?}");
    let text = &found[0].text;
    assert!(text.starts_with("the maximum of a second is 29.6"), "{text}");
    assert!(text.contains(" us in the median after 40.0 s, 20.6"), "{text}");
    assert!(text.ends_with(" us before (Pettitt, p < 0.0001)"), "{text}");
}

#[test]
fn a_cell_is_noted_to_drift_once_and_not_if_nothing_is_chance() {
    let mut random = Random::new(5);
    let step = course(200, &mut random, |second| if second < 100 { 0.0 } else { 0.3 });
    let what = What::Latency(Latency::default());
    let mut cell = Cell::new(String::new(), String::new(), String::new(), 0, what);
    note_drift(&mut cell, &step, true);
    note_drift(&mut cell, &step, true);
    assert!(cell.drifted() && cell.conditions.len() == 1);
    let text = &cell.conditions[0].text;
    assert!(text.starts_with("it was not the same from its start to its end: "), "{text}");
    note_drift(&mut cell, &BySecond::default(), true);
    assert!(cell.drifted(), "of a cell without blocks nothing new is known");
    note_drift(&mut cell, &step, false);
    assert!(!cell.drifted());
    note_drift(&mut cell, &course(200, &mut random, |_| 0.1), true);
    assert!(!cell.drifted());
}

#[test]
fn a_change_that_does_not_matter_is_none() {
    let mut random = Random::new(6);
    let mut course = BySecond::default();
    for second in 0..200 {
        let by = if second < 100 { 0.0 } else { 100.0 };
        course.add(second, &moments(20_000.0 + by, 5_000.0 + by + unit(&mut random)), false);
    }
    assert_eq!(changes(&course), []);
}

#[test]
fn late_seconds_in_one_half_are_told() {
    let mut random = Random::new(7);
    let course = course(600, &mut random, |second| if second < 300 { 0.05 } else { 0.0 });
    let found = changes(&course);
    let text = found.iter().map(|change| change.text.as_str()).collect::<Vec<_>>().join("; ");
    assert!(text.contains("late episodes are in"), "{text}");
    assert!(text.contains("permutation, p = 0.000"), "{text}");
}

#[test]
fn nothing_is_said_of_a_few_seconds() {
    let mut random = Random::new(8);
    let step = |seconds, random: &mut Random| {
        course(seconds, random, |second| if second < seconds / 2 { 0.0 } else { 1.0 })
    };
    assert_eq!(changes(&step(19, &mut random)), []);
    assert!(!changes(&step(40, &mut random)).is_empty());
}

#[test]
fn a_long_cell_has_longer_blocks_in_whatever_order_its_threads_come() {
    let second = |second: u64| moments(second as f64, 1_000.0);
    let (mut by_time, mut by_thread) = (BySecond::default(), BySecond::default());
    let all = [0_u64, 1, 2, 10_000, 10_001];
    for at in all {
        by_time.add(at, &second(at), at == 2);
        by_time.add(at, &second(at + 5), false);
    }
    all.iter().rev().for_each(|at| by_thread.add(*at, &second(*at), *at == 2));
    all.iter().for_each(|at| by_thread.add(*at, &second(at + 5), false));
    for course in [&by_time, &by_thread] {
        assert_eq!(course.block_seconds(), 4);
        let blocks: Vec<_> = course.blocks().iter().map(|b| (b.second, b.max)).collect();
        assert_eq!(blocks, [(0, 7), (10_000, 10_006)]);
        assert_eq!(course.episodes().map(|late| late.count()), Some(1));
    }
    // A damaged file can have any number.
    by_time.add(u64::MAX, &second(1), true);
    assert_eq!(changes(&by_time), []);
}

#[test]
fn the_last_second_counts_if_it_is_long_enough() {
    let mut course = BySecond::default();
    for second in 0..30 {
        course.add(second, &moments(9.0, 1.0), false);
    }
    course.add(30, &Moments { count: 499, ..moments(1.0, 1.0) }, false);
    assert_eq!(course.blocks().len(), 30);
    course.add(30, &Moments { count: 1, ..moments(1.0, 1.0) }, false);
    assert_eq!(course.blocks().len(), 31);
}
