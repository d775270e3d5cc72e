//! Whole runs of made-up cells.

use punctual_core::interval::Interval;

use super::*;

/// The usual probes and loads; `worse` stretches the tails, as a kernel without
/// real-time preemption does.
pub fn standard(kernel: &str, preemption: &str, worse: f64) -> LoadedRun {
    let shape =
        |base: f64, spread: f64, rare, tail: f64| Shape { base, spread, rare, tail: tail * worse };
    let spec = |load, seconds, shape, stall| CellSpec {
        probe: "wakeup",
        load,
        seconds,
        interval: MS,
        threads: 2,
        shape,
        stall,
    };
    let mut run = run(
        kernel,
        preemption,
        Some(200_000),
        &[
            spec("none", 15, shape(14_000.0, 900.0, 400, 2_000.0), None),
            spec("hackbench", 15, shape(16_000.0, 2_600.0, 60, 8_000.0), None),
            spec(
                "paper+flood",
                30,
                shape(17_000.0, 3_000.0, 40, 11_000.0),
                (worse > 2.0).then_some(12 * MS),
            ),
            CellSpec {
                probe: "clock",
                load: "none",
                seconds: 5,
                interval: MS / 10,
                threads: 1,
                shape: shape(21.0, 1.8, 900, 900.0),
                stall: None,
            },
        ],
    );
    run.run.cells.push(skipped());
    run.cells.push(CellData::default());
    run
}

/// An experiment on virtual boards: four kernels, `replicates` runs of each, in
/// turn, of two cells, no two of the same seed and phase.
pub fn experiment(replicates: u32, seconds: u64) -> Vec<LoadedRun> {
    let kernels = [
        ("6.1.0-56-amd64", "none", 31_000.0, 90_000.0),
        ("6.1.0-56-amd64", "voluntary", 22_000.0, 60_000.0),
        ("6.1.0-56-amd64", "full", 17_000.0, 75_000.0),
        ("6.1.0-56-rt-amd64", "rt", 16_000.0, 900.0),
    ];
    let mut runs = Vec::new();
    for replicate in 0..replicates {
        for (number, (release, preemption, loaded, tail)) in (0..).zip(kernels) {
            let seed = u64::from(replicate) * 4 + number;
            let cell = |load, base: f64, tail: f64| CellSpec {
                probe: "wakeup",
                load,
                seconds,
                interval: MS,
                threads: 1,
                // The seed of the samples follows from this too.
                shape: Shape { base, spread: base / 20.0, rare: 90 + seed, tail },
                stall: None,
            };
            let mut one = run(
                release,
                preemption,
                Some(200_000),
                &[cell("none", 14_000.0, 700.0), cell("hackbench", loaded, tail)],
            );
            one.run.run_id = format!("20261120T170003Z-lab-{preemption}-r{replicate}");
            one.run.group = Some("four-models".to_owned());
            one.run.replicate = Some(replicate);
            one.run.phase_ns = u64::from(replicate) * 137_000;
            one.run.kernel.command_line = format!("preempt={preemption} nokaslr");
            one.run.is_virtual = true;
            one.run.board.name = "lab".to_owned();
            one.run.board.kind = BoardKind::Virtual;
            one.run.board.lab = Some(Lab { counted: true, seed, ..Lab::default() });
            runs.push(one);
        }
    }
    runs
}

/// A cell that could not be measured.
pub fn skipped() -> Cell {
    let (mut cell, _) = cell(
        &CellSpec {
            probe: "clock:clock=tsc",
            load: "none",
            seconds: 0,
            interval: MS,
            threads: 0,
            shape: Shape { base: 0.0, spread: 0.0, rare: 1, tail: 0.0 },
            stall: None,
        },
        9,
        None,
    );
    cell.state = CellState::Skipped;
    cell.duration_ns = 5_000 * MS;
    cell.reason = Some("needs an invariant TSC (x86): this CPU has none".to_owned());
    cell.verdict.outcome = Outcome::Skipped;
    cell
}

/// A day of one thread at 1 ms: 86,400 blocks and 86.4 million samples, of which
/// only one in `times` is drawn, and counted so many times.
pub fn day(times: u32) -> LoadedRun {
    let spec = CellSpec {
        probe: "wakeup",
        load: "paper",
        seconds: 86_400,
        interval: u64::from(times) * MS,
        threads: 1,
        shape: Shape { base: 17_000.0, spread: 3_000.0, rare: 40, tail: 11_000.0 },
        stall: None,
    };
    let mut run = run("6.1.0-56-rt-amd64", "rt", Some(500_000), &[spec]);
    for series in primaries(&mut run.cells) {
        for block in &mut series.blocks {
            block.moments.count *= u64::from(times);
            block.moments.sum *= i128::from(times);
            block.moments.sum_sq *= u128::from(times);
            block.coarse.iter_mut().for_each(|(_, n)| *n *= times);
        }
        let drawn = series.histogram.take().unwrap();
        let mut all = SignedHistogram::new();
        (0..times).for_each(|_| all.merge(&drawn));
        series.histogram = Some(all.sparse());
    }
    let latency = latency(&mut run.run.cells[0]);
    latency.interval_ns = Some(MS);
    fill(latency, &run.cells[0], Some(500_000));
    run
}

pub fn shape(base: f64, tail: f64) -> Shape {
    Shape { base, spread: base / 10.0, rare: 60, tail }
}

/// A run of one cell.
pub fn one(
    probe: &'static str,
    load: &'static str,
    threads: u32,
    deadline: Option<u64>,
) -> LoadedRun {
    let spec = CellSpec {
        probe,
        load,
        seconds: 12,
        interval: MS,
        threads,
        shape: shape(16_000.0, 9_000.0),
        stall: None,
    };
    run("6.1.0-56-rt-amd64", "rt", deadline, &[spec])
}

/// The same run with samples that have an ideal, and another series that has the same samples.
pub fn with_ideal(mut run: LoadedRun, ideal: &Ideal, name: &str) -> LoadedRun {
    for (cell, data) in run.run.cells.iter_mut().zip(&mut run.cells) {
        let Some(latency) = cell.latency_mut() else { continue };
        latency.ideal = Some(ideal.clone());
        latency.series = vec![Series {
            name: name.to_owned(),
            meaning: "what was measured besides".to_owned(),
            role: Role::Aside,
            unit: Unit::Ns,
            stats: latency.stats.clone(),
        }];
        for (thread, recorded) in latency.threads.iter_mut().zip(&mut data.threads) {
            thread.series = vec![thread.stats.clone()];
            *recorded.series_mut(1) = recorded.primary().clone();
        }
    }
    run
}

/// The same run with a map of so many CPUs, on which so many actors take turns of 100 us.
pub fn mapped(cpus: u32, actors: u32) -> LoadedRun {
    let mut run = one("cpumap", "none", cpus, None);
    let data = &mut run.cells[0];
    let name = |number: u32| match number {
        1 => "irq/24-an interface with a \"name\" that is\tlonger than there is room for it"
            .to_owned(),
        _ => format!("thread {number}"),
    };
    data.actors = (0..actors).map(|number| (number, name(number))).collect();
    for cpu in 0..cpus {
        let turns = (0..12_000_u64).filter(|turn| turn % 50 != 7);
        data.intervals.extend(turns.map(|turn| {
            let from = turn * MS + u64::from(cpu);
            let actor = (turn as u32 + cpu) % actors;
            Interval { cpu, from, to: from + MS / 10 + turn, actor }
        }));
    }
    run
}

/// The same run with legs, each with its mean and its maximum, ns, of all but seven samples of every
/// cell; the last of the series is none.
pub fn with_parts(mut run: LoadedRun, legs: &[(&str, f64, i64)]) -> LoadedRun {
    let all: Vec<_> = legs.iter().chain(&[("aside", 9e6, 9_000_000)]).collect();
    for (cell, data) in run.run.cells.iter_mut().zip(&mut run.cells) {
        let Some(latency) = cell.latency_mut() else { continue };
        let samples = latency.stats.samples.saturating_sub(7);
        let leg = |(name, avg, max): &&(&str, f64, i64)| Series {
            name: (*name).to_owned(),
            meaning: String::new(),
            role: Role::Leg,
            unit: Unit::Ns,
            stats: Stats {
                samples,
                avg: Some(*avg),
                p999: Some(max / 2),
                max: Some(*max),
                ..Stats::default()
            },
        };
        latency.series = all.iter().map(leg).collect();
        latency.series.last_mut().unwrap().role = Role::Aside;
        // What replicates are pooled from.
        for thread in &mut data.threads {
            for (number, (_, avg, max)) in (1..).zip(&all) {
                let sum = (avg * samples as f64) as i128;
                let moments = Moments { count: samples, max: *max, sum, ..Moments::EMPTY };
                let block = Block { thread: 0, series: 0, index: 0, moments, coarse: Vec::new() };
                thread.series_mut(number).blocks = vec![block];
            }
        }
    }
    run
}

/// The same run with latencies that are made up.
pub fn made_up(mut run: LoadedRun) -> LoadedRun {
    run.run.origin = Origin::Simulated;
    for cell in &mut run.run.cells {
        if let Some(latency) = cell.latency_mut() {
            latency.simulated = true;
        }
    }
    run
}
