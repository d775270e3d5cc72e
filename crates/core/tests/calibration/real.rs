//! Windows of a real run, each judged as if it were a run of its own.

use punctual_core::block::{Block, Moments, coarse_bin};
use punctual_core::run::{CellData, SeriesData, ThreadData};
use punctual_core::stats::{
    BySecond, Limits, changes, clopper_pearson_lower, clopper_pearson_upper, episodes,
    spells_of_seconds,
};
use punctual_core::units::SECOND_NS;
use punctual_core::verdict::observation_needed_ns;

/// The length of a window, s: that of the standard plan's cells.
const WINDOW: u64 = 30;

/// What such a window can show, episodes a second.
const ALLOWED: f64 = 0.1;

/// The run: the maximum of each second, by thread.
fn real() -> Vec<Vec<Option<i64>>> {
    let lines = include_str!("real.txt").lines().filter(|line| !line.starts_with('#'));
    let second = |text: &str| (text != "-").then(|| text.parse::<i64>().unwrap() * 1_000);
    lines.map(|line| line.split(' ').map(second).collect()).collect()
}

/// Those of some seconds, as a cell of its own.
fn cell(threads: &[Vec<Option<i64>>], from: usize, to: usize) -> CellData {
    let of_thread = |(thread, maxima): (u32, &Vec<Option<i64>>)| {
        let block = |(index, max): (u64, &Option<i64>)| {
            let max = (*max)?;
            let moments = Moments {
                count: 1_000,
                min: 0,
                max,
                max_at: index * SECOND_NS + SECOND_NS / 2,
                sum: i128::from(max),
                ..Moments::EMPTY
            };
            let coarse = vec![(coarse_bin(max), 1)];
            Some(Block { thread, series: 0, index, moments, coarse })
        };
        let blocks = (0..).zip(&maxima[from..to]).filter_map(block).collect();
        ThreadData::of(SeriesData { blocks, ..SeriesData::default() })
    };
    let threads = (0..).zip(threads).map(of_thread).collect();
    CellData { threads, ..CellData::default() }
}

/// Late episodes of all threads.
fn found(data: &CellData, deadline: i64, seconds: u64) -> punctual_core::schema::Episodes {
    let limits = Limits { deadline, ..Limits::NONE };
    let threads = (0..).zip(&data.threads);
    let spells = threads.flat_map(|(n, thread)| spells_of_seconds(thread.primary(), n, &limits));
    episodes(spells.collect(), seconds * SECOND_NS)
}

/// A deadline whose late episodes come more often than is allowed in the whole run, by at least
/// this factor, and how it goes with its windows; last, whether the run is said to have changed.
fn judged(threads: &[Vec<Option<i64>>], factor: f64) -> (i64, f64, u64, u64, bool) {
    let seconds = threads[0].len();
    let all = cell(threads, 0, seconds);
    let rate = |deadline| found(&all, deadline, seconds as u64).count as f64 / seconds as f64;
    // The highest on a grid of 5 %.
    let deadline = (0..400)
        .map(|step| (2e8 * 0.95_f64.powi(step)) as i64)
        .find(|deadline| rate(*deadline) >= ALLOWED * factor)
        .unwrap();
    let windows = seconds as u64 / WINDOW;
    let passed = (0..windows).filter(|window| {
        let from = (window * WINDOW) as usize;
        let data = cell(threads, from, from + WINDOW as usize);
        let found = found(&data, deadline, WINDOW);
        found.rate_upper(0.95).is_some_and(|upper| found.count == 0 && upper <= ALLOWED)
    });
    let passed = passed.count() as u64;
    let changed = !changes(&BySecond::of(&all, Some(deadline.unsigned_abs()))).is_empty();
    (deadline, rate(deadline), passed, windows, changed)
}

#[test]
fn windows_of_a_real_run_pass_as_rarely_as_is_said() {
    let threads = real();
    assert!(threads.iter().all(|maxima| maxima.len() == threads[0].len()));
    assert!(observation_needed_ns(ALLOWED, 0, 0.95).unwrap() <= WINDOW * SECOND_NS);
    println!(
        "| deadline | late episodes a minute | windows of 30 s that pass | 95 % interval | drift |"
    );
    for factor in [1.0001, 1.5, 2.0] {
        let (deadline, rate, passed, windows, changed) = judged(&threads, factor);
        println!(
            "| {:.2} ms | {:.1} | {passed} of {windows} | {:.1} to {:.1} % | {changed} |",
            deadline as f64 / 1e6,
            rate * 60.0,
            100.0 * clopper_pearson_lower(passed, windows, 0.975),
            100.0 * clopper_pearson_upper(passed, windows, 0.975),
        );
        let lower = clopper_pearson_lower(passed, windows, 0.99);
        assert!(lower <= 0.05, "{deadline} ns: {passed} of {windows}");
    }
}
