//! How often courses that do not drift are said to, and bursts are found.

use super::*;

/// A stationary course with the correlation `r` of neighbours: normal, or what `shape` makes of that.
/// The highest twentieth is late.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    r: f64,
    shape: fn(f64) -> f64,
}

const KINDS: [Kind; 7] = [
    Kind { name: "independent, normal", r: 0.0, shape: |z| 20_000.0 + 2_000.0 * z },
    Kind { name: "independent, log-normal", r: 0.0, shape: |z| 20_000.0 * z.exp() },
    Kind { name: "independent, in steps", r: 0.0, shape: |z| 20_000.0 + 2_000.0 * z.round() },
    Kind { name: "AR(0.5)", r: 0.5, shape: |z| 20_000.0 + 2_000.0 * z },
    Kind { name: "AR(0.9)", r: 0.9, shape: |z| 20_000.0 + 2_000.0 * z },
    Kind { name: "AR(0.9), in steps", r: 0.9, shape: |z| 20_000.0 + 1_000.0 * (2.0 * z).round() },
    // Whole parts of the cell are equal then, which looks like a step: it is in the table only.
    Kind { name: "AR(0.9), in coarse steps", r: 0.9, shape: |z| 20_000.0 + 2_000.0 * z.round() },
];

/// The kinds that keep to 5 %.
const KEPT: usize = 6;

const LENGTHS: [u64; 4] = [60, 300, 600, 3_600];

fn normal(random: &mut Random) -> f64 {
    (-2.0 * unit(random).ln()).sqrt() * (2.0 * std::f64::consts::PI * unit(random)).cos()
}

fn stationary(kind: Kind, seconds: u64, random: &mut Random) -> BySecond {
    let mut course = BySecond::default();
    let (mut max, mut mean) = (normal(random), normal(random));
    let fresh = (1.0 - kind.r * kind.r).sqrt();
    for second in 0..seconds {
        let of_second = moments((kind.shape)(max), (kind.shape)(mean) / 4.0);
        course.add(second, &of_second, max > 1.645);
        max = kind.r * max + fresh * normal(random);
        mean = kind.r * mean + fresh * normal(random);
    }
    course
}

/// With maxima that are `factor` times as large for so many seconds.
fn with_a_burst(length: u64, factor: f64, random: &mut Random) -> BySecond {
    let mut course = BySecond::default();
    let from = random.below(SECONDS - length);
    for second in 0..SECONDS {
        let Moments { max, .. } = quiet(random);
        let by = if (from..from + length).contains(&second) { factor } else { 1.0 };
        course.add(second, &moments(by * max as f64, 5_000.0), false);
    }
    course
}

#[test]
fn courses_whose_seconds_resemble_their_neighbours_seldom_drift() {
    for kind in KINDS.into_iter().take(KEPT) {
        for (seconds, cells) in LENGTHS.into_iter().zip([200, 200, 200, 20]) {
            let share = share_found(cells, |random| stationary(kind, seconds, random));
            assert!(share <= 0.05, "{}, {seconds} s: {share}", kind.name);
        }
    }
}

#[test]
fn a_burst_of_ten_seconds_in_ten_minutes_is_found() {
    let share = share_found(100, |random| with_a_burst(10, 1.5, random));
    assert!(share >= 0.8, "{share}");
    let course = with_a_burst(10, 1.5, &mut Random::new(1));
    let found = changes(&course);
    let text = &found[0].text;
    assert!(text.contains(" in the median of 10 in a row from "), "{text}");
}

/// `make calibrate`.
pub(super) fn tables() {
    const CELLS: u64 = 2_000;
    println!("| seconds | {} |", LENGTHS.map(|seconds| format!("{seconds} s")).join(" | "));
    println!("|---|---|---|---|---|");
    for kind in KINDS {
        let shares = LENGTHS.map(|seconds| {
            let share = share_found(CELLS, |random| stationary(kind, seconds, random));
            format!("{:.2} %", 100.0 * share)
        });
        println!("| {} | {} |", kind.name, shares.join(" | "));
    }
    println!("\n| maxima of a burst in 600 s | 5 s | 10 s | 20 s | 40 s |\n|---|---|---|---|---|");
    for factor in [1.1, 1.2, 1.5, 2.0] {
        let shares = [5, 10, 20, 40].map(|length| {
            let share = share_found(CELLS, |random| with_a_burst(length, factor, random));
            format!("{:.0} %", 100.0 * share)
        });
        println!("| {factor} times as large | {} |", shares.join(" | "));
    }
    println!();
}
