//! Runs of two cells with two threads each, of which every sample is known.

use punctual_core::block::{Block, Moments, Outlier, System, coarse_bin};
use punctual_core::histogram::SignedHistogram;
use punctual_core::interval::Interval;
use punctual_core::run::{CellData, LoadedRun, SeriesData, ThreadData};
use punctual_core::schema::*;
use punctual_core::units::human_ns;

use super::{CellSpec, MS, Shape, fill, latency, run};

/// What a thread recorded of a series: values, ns, at these instants within 12 s.
pub fn recorded(thread: u32, series: u32, samples: &[(u64, i64)]) -> SeriesData {
    let mut data = SeriesData::default();
    let mut histogram = SignedHistogram::new();
    let mut moments = Moments::EMPTY;
    let mut coarse = std::collections::BTreeMap::new();
    for (at, value) in samples {
        histogram.record(*value);
        *coarse.entry(coarse_bin(*value)).or_default() += 1;
        moments.merge(&Moments {
            count: 1,
            early: u64::from(*value < 0),
            min: *value,
            max: *value,
            max_at: *at,
            sum: i128::from(*value),
            sum_sq: u128::from(value.unsigned_abs()).pow(2),
            ..Moments::EMPTY
        });
        data.outliers.push(Outlier { at: *at, latency: *value });
    }
    let coarse = coarse.into_iter().collect();
    data.blocks = vec![Block { thread, series, index: 11, moments, coarse }];
    data.outliers.sort_by_key(|one| (std::cmp::Reverse(one.latency), one.at));
    data.outliers.truncate(64);
    data.histogram = Some(histogram.sparse());
    data
}

/// Two cells with threads to be filled.
fn two_cells(probe: &'static str, noun: &str) -> LoadedRun {
    let spec = |load| CellSpec {
        probe,
        load,
        seconds: 12,
        interval: MS,
        threads: 2,
        shape: Shape { base: 9_000.0, spread: 100.0, rare: 900, tail: 100.0 },
        stall: None,
    };
    let mut run = run("6.1.0-56-rt-amd64", "rt", None, &[spec("none"), spec("hackbench")]);
    for cell in &mut run.run.cells {
        let primary = &mut latency(cell).primary;
        (primary.noun, primary.nouns) = (noun.to_owned(), format!("{noun}s"));
    }
    run
}

/// Deviations on both sides of zero; those of the second cell reach ten times as far.
pub fn signed() -> LoadedRun {
    let mut run = two_cells("deviating", "interval");
    for (number, (cell, data)) in run.run.cells.iter_mut().zip(&mut run.cells).enumerate() {
        let scale = if number == 0 { 1 } else { 10 };
        for thread in 0..2_u32 {
            // 4,096 of each thread, of which 2,047 are below zero and one is zero.
            let value = |at: i64| (at - 2_047) * scale;
            let samples: Vec<_> = (0..4_096).map(|at| (at as u64 * MS, value(at))).collect();
            data.threads[thread as usize] = ThreadData::of(recorded(thread, 0, &samples));
        }
        let latency = latency(cell);
        latency.primary.name = "deviation".to_owned();
        fill(latency, data, None);
    }
    run
}

pub const LEGS: [i64; 4] = [12_345, 2_210, 3_012_004, 4_096];
/// When the latest traced activation began its work, ns.
pub const AT: u64 = 4_218_000_123;
/// The latest of the second cell, which has no legs.
pub const UNTRACED: i64 = 6_123_000;

/// Activations with legs. The latest of the first cell has all of them among the worst samples, by
/// thread 1; that of the second cell has none, and of the latest traced one two are known by the
/// note only.
pub fn traced() -> LoadedRun {
    let mut run = two_cells("timed", "activation");
    let names = ["interrupt", "wakeup", "switch", "user", "thread"];
    let meanings = [
        "the timer's interrupt handler is entered minus the release",
        "the thread is woken minus the handler is entered",
        "the CPU is switched to the thread minus the thread is woken",
        "start of the work minus the CPU is switched to the thread",
        "of timerlat: its thread runs minus its timer's function runs",
    ];
    let total: i64 = LEGS.iter().sum();
    for (number, (cell, data)) in run.run.cells.iter_mut().zip(&mut run.cells).enumerate() {
        let leg = |(name, meaning): (&str, &str)| Series {
            name: name.to_owned(),
            meaning: meaning.to_owned(),
            role: Role::Leg,
            unit: Unit::Ns,
            stats: Stats::default(),
        };
        latency(cell).series = names.into_iter().zip(meanings).map(leg).collect();
        for thread in 0..2_u32 {
            let usual = |at: u64| (at * MS, 12_000 + at as i64);
            let mut all: Vec<_> = (1..100).map(usual).collect();
            let part = |value: i64| (1..100).map(move |at| (at * MS, value + at as i64));
            let mut legs: Vec<Vec<_>> =
                [3_000, 2_000, 5_000, 2_000].map(|value| part(value).collect()).into();
            if thread == 1 {
                all.push((AT, total));
                for (leg, (samples, ns)) in legs.iter_mut().zip(LEGS).enumerate() {
                    if number == 0 || leg % 2 == 1 {
                        samples.push((AT, ns));
                    }
                }
            } else if number == 1 {
                all.push((AT + 7 * MS, UNTRACED));
            }
            let mut thread_data = ThreadData::of(recorded(thread, 0, &all));
            for (series, samples) in (1..).zip(&legs) {
                *thread_data.series_mut(series) = recorded(thread, series as u32, samples);
            }
            data.threads[thread as usize] = thread_data;
        }
        let [interrupt, wakeup, switch, user] = LEGS.map(human_ns);
        cell.conditions.push(Condition {
            id: "latest".to_owned(),
            text: format!(
                "the latest activation with legs, {} of thread 1: interrupt {interrupt}, wakeup \
                 {wakeup}, switch {switch}, user {user}; in the longest leg spin (PID 12) had the \
                 CPU",
                human_ns(total)
            ),
        });
        fill(latency(cell), data, None);
    }
    run
}

/// A CPU, from when to when, us, and the actor that had it.
type Piece = (u32, u64, u64, u32);

/// The pieces of a map, and when the longest sample of each thread ended and its length, us.
type Map<'a> = (&'a [Piece], [(u64, i64); 2]);

/// Maps of two CPUs. The longest gap of the first cell is of thread 0, by a thread that spins; that
/// of the second one is of thread 1, which had moved to the other CPU, by nobody known, and the
/// hypervisor gave time to others.
pub fn gapped() -> LoadedRun {
    let mut run = two_cells("mapping", "gap");
    let names = ["thread 0", "thread 1", "spin", "other"].map(str::to_owned);
    let cells: [Map<'_>; 2] = [
        (
            &[
                (0, 0, 10_000, 0),
                (0, 10_000, 12_995, 2),
                (0, 12_995, 13_000, 3),
                (0, 13_000, 30_000, 0),
                (1, 0, 20_000, 1),
                (1, 20_000, 20_004, 3),
                (1, 20_004, 30_000, 1),
            ],
            [(13_000, 3_000), (20_004, 4)],
        ),
        (
            &[
                (0, 0, 8_000, 1),
                (0, 8_000, 8_500, 2),
                (0, 8_500, 10_000, 3),
                (0, 10_000, 10_004, 0),
                (1, 0, 9_000, 0),
                (1, 9_000, 9_004, 3),
                (1, 10_000, 30_000, 1),
            ],
            [(9_004, 4), (10_000, 2_000)],
        ),
    ];
    for (number, (intervals, gaps)) in cells.into_iter().enumerate() {
        let (cell, data) = (&mut run.run.cells[number], &mut run.cells[number]);
        let us = |(cpu, from, to, actor): &Piece| Interval {
            cpu: *cpu,
            from: from * 1_000,
            to: to * 1_000,
            actor: *actor,
        };
        data.intervals = intervals.iter().map(us).collect();
        data.actors = (0..).zip(names.clone()).collect();
        for (thread, (at, length)) in (0_u32..).zip(gaps) {
            let samples = [(at * 1_000, length * 1_000), (25 * MS, 900)];
            data.threads[thread as usize] = ThreadData::of(recorded(thread, 0, &samples));
        }
        latency(cell).primary.name = "gap".to_owned();
        fill(latency(cell), data, None);
        let steal = if number == 1 { 124 } else { 0 };
        data.system = vec![
            System { second: 0, busy: 700, steal, ..System::default() },
            System { second: 1, busy: 700, steal: 300, ..System::default() },
        ];
        cell.steal = Some(if number == 1 { 0.034 } else { 0.0 });
    }
    run
}
