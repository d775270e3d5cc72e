use super::*;
use crate::block::Moments;
use crate::random::Random;
use crate::schema::{Cell, Latency, What};

mod courses;

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

/// Two regimes: a share of each cycle, from a random phase, is noisy.
fn noisy_at(cycle: f64, noisy: f64, random: &mut Random) -> impl Fn(u64) -> bool + use<> {
    let phase = unit(random) * cycle;
    move |second| ((second as f64 + phase) / cycle).fract() < noisy
}

/// Only noisy seconds are late, with the probability `rate`, and only late ones differ.
fn late_regimes(cycle: f64, noisy: f64, rate: f64, random: &mut Random) -> BySecond {
    let is_noisy = noisy_at(cycle, noisy, random);
    course(SECONDS, random, |second| if is_noisy(second) { rate } else { 0.0 })
}

/// Whatever makes a regime noisy makes all of its maxima larger, by `factor`. Those above the
/// deadline are late: as many as 30 s need for a PASS at 6/min, 3 in the cell on average, if quiet
/// seconds were never late.
fn larger_regimes(cycle: f64, noisy: f64, factor: f64, random: &mut Random) -> BySecond {
    let gumbel = |p: f64| 20_000.0 - 2_000.0 * (-p.ln()).ln();
    let deadline = factor * gumbel(1.0 - 3.0 / (SECONDS as f64 * noisy));
    let is_noisy = noisy_at(cycle, noisy, random);
    let mut course = BySecond::default();
    for second in 0..SECONDS {
        let max = gumbel(unit(random)) * if is_noisy(second) { factor } else { 1.0 };
        course.add(second, &moments(max, 5_000.0 + 400.0 * unit(random)), max > deadline);
    }
    course
}

const SECONDS: u64 = 600;

/// Of so many cells: those with a late second, those of them that are found to drift, and the
/// number of late episodes in all of them.
fn with_and_found(cells: u64, make: impl Fn(&mut Random) -> BySecond) -> (u32, u32, u64) {
    let (mut with, mut found, mut episodes) = (0, 0, 0);
    for seed in 0..cells {
        let course = make(&mut Random::new(seed));
        let late = course.episodes(1).map_or(0, |late| late.count());
        if late > 0 {
            with += 1;
            episodes += late as u64;
            found += u32::from(!changes(&course).is_empty());
        }
    }
    (with, found, episodes)
}

/// With some 15 late seconds or more, if only they differ.
#[test]
fn a_third_of_the_run_as_cycle_is_found_in_most_runs() {
    for (noisy, rate) in [(0.1, 0.5), (0.5, 0.1)] {
        let (with, found, _) =
            with_and_found(60, |random| late_regimes(200.0, noisy, rate, random));
        assert!(with >= 50 && 2 * found >= with, "{noisy}: {found} of {with}");
    }
}

/// With 3 late seconds, since the others differ too.
#[test]
fn a_noisy_third_of_the_run_as_cycle_is_found_in_most_runs_with_few_late_seconds() {
    for (noisy, factor) in [(0.1, 1.5), (0.5, 1.15)] {
        let (with, found, episodes) =
            with_and_found(60, |random| larger_regimes(200.0, noisy, factor, random));
        assert!(with >= 40 && 2 * found >= with, "{noisy}: {found} of {with}");
        assert!(episodes < 6 * u64::from(with), "{episodes} in {with}");
    }
}

/// `make calibrate`.
#[test]
#[ignore = "a minute: make calibrate"]
fn tables() {
    const CYCLES: [(f64, &str); 4] =
        [(0.01, "T/100"), (1.0 / 3.0, "T/3"), (3.0, "3T"), (30.0, "30T")];
    let row = |make: &dyn Fn(f64, &mut Random) -> BySecond| {
        CYCLES.map(|(cycle, _)| {
            let cycle = cycle * SECONDS as f64;
            let (with, found, late) = with_and_found(100, |random| make(cycle, random));
            format!("{found} of {with} ({:.0})", late as f64 / f64::from(with))
        })
    };
    let cycles = CYCLES.map(|(_, name)| name).join(" | ");
    courses::tables();
    println!("\n| noisy | late seconds of a noisy stretch | {cycles} |\n|---|---|---|---|---|---|");
    for (noisy, rate) in
        [(0.1, 0.05), (0.1, 0.1), (0.1, 0.2), (0.1, 0.5), (0.5, 0.05), (0.5, 0.1), (0.5, 0.2)]
    {
        let found = row(&|cycle, random| late_regimes(cycle, noisy, rate, random)).join(" | ");
        println!("| {:.0} % | {:.0} % | {found} |", 100.0 * noisy, 100.0 * rate);
    }
    println!("\n| noisy | maxima of a noisy stretch | {cycles} |\n|---|---|---|---|---|---|");
    for noisy in [0.1, 0.5] {
        for factor in [1.05, 1.1, 1.2, 1.5, 2.0] {
            let found =
                row(&|cycle, random| larger_regimes(cycle, noisy, factor, random)).join(" | ");
            println!("| {:.0} % | {factor} times as large | {found} |", 100.0 * noisy);
        }
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
        assert_eq!(course.episodes(1).map(|late| late.count()), Some(1));
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
