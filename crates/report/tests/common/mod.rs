//! Runs made up from known distributions, as a board would have recorded them.
#![allow(
    dead_code,
    unused_imports,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "made-up values fit, and each test uses its part"
)]

pub mod aims;
pub mod costed;
pub mod culprits;
pub mod evident;
pub mod explained;
mod kinds;
mod legged;
mod outputs;
pub mod phased;
mod runs;
pub mod sectioned;

use std::collections::BTreeMap;

use punctual_core::block::{Block, Late, Moments, Outlier, coarse_bin};
use punctual_core::histogram::{SignedHistogram, missed_behind};
use punctual_core::plan::{CellPlan, Plan, Subject};
use punctual_core::run::{CellData, LoadedRun, SeriesData, ThreadData};
use punctual_core::schema::*;
use punctual_core::stats::{Behind, Limits, Measured, Recorded, assemble};
use punctual_report::figure::{Figure, WIDTH};

pub use kinds::all_kinds;
pub use legged::legs_of_all;
pub use outputs::*;
pub use runs::*;

pub const MS: u64 = 1_000_000;

/// No two texts of a figure collide, and none is cut off.
pub fn check_texts(what: &str, figure: &Figure) {
    let (name, texts) = (&figure.name, figure.texts());
    assert!(texts.len() > 3, "{what}, {name}");
    for (number, one) in texts.iter().enumerate() {
        let [left, top, right, bottom] = one.area;
        let inside = left >= -0.5 && right <= WIDTH + 0.5 && top >= -0.5;
        assert!(inside && bottom <= figure.height() + 0.5, "{what}, {name}: {one:?}");
        for other in &texts[..number] {
            let [l, t, r, b] = other.area;
            let apart = right <= l || r <= left || bottom <= t || b <= top;
            assert!(apart, "{what}, {name}: {one:?} on {other:?}");
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same run on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Evenly from above 0 to 1.
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
}

/// How a cell's latencies are made: a base, an exponential spread, a rare tail.
#[derive(Clone, Copy)]
pub struct Shape {
    pub base: f64,
    pub spread: f64,
    /// One in so many samples is in the tail.
    pub rare: u64,
    pub tail: f64,
}

pub struct CellSpec {
    pub probe: &'static str,
    pub load: &'static str,
    pub seconds: u64,
    pub interval: u64,
    pub threads: u32,
    pub shape: Shape,
    /// A stall of this many ns once, in the middle.
    pub stall: Option<u64>,
}

fn sample(random: &mut Random, shape: Shape) -> i64 {
    let mut value = shape.base - shape.spread * random.unit().ln();
    if random.next().is_multiple_of(shape.rare) {
        value += -shape.tail * random.unit().ln();
    }
    value as i64
}

fn close(block: &mut Block, data: &mut SeriesData, next: u64) {
    if block.moments.count > 0 {
        let fresh = Block {
            thread: block.thread,
            series: 0,
            index: next,
            moments: Moments::EMPTY,
            coarse: Vec::new(),
        };
        data.blocks.push(std::mem::replace(block, fresh));
    }
    block.index = next;
}

/// One thread, sample by sample.
pub fn thread(spec: &CellSpec, number: u32, deadline: Option<u64>) -> ThreadData {
    let mut random = Random::new(u64::from(number) * 77 + spec.seconds + spec.shape.rare);
    let mut data = SeriesData::default();
    let mut histogram = SignedHistogram::new();
    let mut behind = Behind::default();
    let limits = Limits { interval: spec.interval, ..Limits::NONE };
    let mut block =
        Block { thread: number, series: 0, index: 0, moments: Moments::EMPTY, coarse: Vec::new() };
    let mut coarse: BTreeMap<i16, u32> = BTreeMap::new();
    let releases = spec.seconds * 1_000 * MS / spec.interval;
    let mut release = 0;
    while release < releases {
        let at_release = release * spec.interval;
        let stall = spec.stall.filter(|_| number == 0 && release == releases / 2);
        let latency = stall.map_or_else(|| sample(&mut random, spec.shape), |ns| ns as i64);
        let at = at_release.saturating_add_signed(latency);
        let missed = missed_behind(latency.max(0) as u64, spec.interval);
        let second = at / (1_000 * MS);
        if second != block.index {
            block.coarse = std::mem::take(&mut coarse).into_iter().collect();
            close(&mut block, &mut data, second);
        }
        histogram.record(latency);
        *coarse.entry(coarse_bin(latency)).or_default() += 1;
        block.moments.merge(&Moments {
            count: 1,
            missed,
            early: u64::from(latency < 0),
            exceeded: u64::from(deadline.is_some_and(|d| latency > d as i64)),
            min: latency,
            max: latency,
            max_at: at,
            sum: i128::from(latency),
            sum_sq: u128::from(latency.unsigned_abs()).pow(2),
        });
        data.outliers.push(Outlier { at, latency });
        if data.outliers.len() > 4_096 {
            keep_worst(&mut data.outliers);
        }
        if missed > 0 {
            behind.add(latency as u64, missed, &limits);
            data.late.push(Late { thread: number, series: 0, at, latency: latency as u64, missed });
        }
        release += 1 + missed;
    }
    block.coarse = coarse.into_iter().collect();
    close(&mut block, &mut data, spec.seconds);
    keep_worst(&mut data.outliers);
    data.histogram = Some(histogram.sparse());
    data.behind = Some(behind.counts.sparse());
    ThreadData::of(data)
}

fn keep_worst(outliers: &mut Vec<Outlier>) {
    outliers.sort_by_key(|o| std::cmp::Reverse(o.latency));
    outliers.truncate(64);
}

fn judged(max: Option<i64>, deadline: Option<u64>, scheduled: u64) -> Verdict {
    let Some(d) = deadline else {
        return Verdict::default();
    };
    let missed = max.is_some_and(|max| max > d as i64);
    let bound = 1.0 - 0.05_f64.powf(1.0 / scheduled.max(1) as f64);
    let because = if missed {
        vec!["at least one activation was later than the deadline".to_owned()]
    } else {
        vec![format!(
            "no activation was later than {}; at most 1 in {} is, at 95 % confidence (one-sided), under these loads",
            punctual_core::units::exact_duration(d),
            punctual_core::units::grouped((1.0 / bound) as u64)
        )]
    };
    Verdict {
        outcome: if missed { Outcome::Fail } else { Outcome::Pass },
        deadline_ns: Some(d),
        exceedances: u64::from(missed),
        episodes: u64::from(missed),
        episode_rate_upper: None,
        upper_bound: Some(bound),
        confidence: 0.95,
        because,
    }
}

pub fn cell(spec: &CellSpec, number: usize, deadline: Option<u64>) -> (Cell, CellData) {
    let mut data = CellData {
        threads: (0..spec.threads).map(|t| thread(spec, t, deadline)).collect(),
        ..CellData::default()
    };
    let plan = CellPlan {
        subject: Subject::Probe(spec.probe.to_owned()),
        params: BTreeMap::new(),
        load: spec.load.to_owned(),
        duration_ns: spec.seconds * 1_000 * MS,
        samples: None,
        available: false,
    };
    let mut latency = Latency {
        probe: spec.probe.to_owned(),
        params: BTreeMap::from([("interval".to_owned(), "1ms".to_owned())]),
        primary: Quantity {
            name: "latency".to_owned(),
            meaning: "start of the thread's work minus its release".to_owned(),
            noun: "activation".to_owned(),
            nouns: "activations".to_owned(),
        },
        interval_ns: Some(spec.interval),
        ..Latency::default()
    };
    fill(&mut latency, &data, deadline);
    latency.warmup_max_ns = latency.stats.max.map(|max| max / 2);
    let verdict = judged(latency.stats.max, deadline, latency.stats.scheduled);
    let (key, dir) = (plan.key(), plan.dir(number));
    let cell = Cell {
        state: CellState::Complete,
        load_work: work(spec, &mut data),
        cpu_utilisation: Some(if spec.load == "none" { 0.012 } else { 0.973 }),
        steal: Some(0.0),
        strain: Some(CellStrain {
            interrupts_per_second: Some(1_234.0),
            switches_per_second: Some(45_678.9),
            pressure: Pressure { cpu: Some(0.973), memory: Some(0.0), io: None },
        }),
        verdict,
        ..Cell::new(key, dir, plan.load, plan.duration_ns, What::Latency(latency))
    };
    (cell, data)
}

/// Statistics of what the threads recorded.
pub fn fill(latency: &mut Latency, data: &CellData, deadline: Option<u64>) {
    let measured = data.threads.iter().zip(0..).map(|(recorded, number)| Measured {
        thread: Thread { thread: number, placement: placement(number), ..Thread::default() },
        series: recorded.series.iter().map(Recorded::of).collect(),
        exceedances: 0,
    });
    assemble(latency, measured.collect());
    for thread in &mut latency.threads {
        thread.verdict = judged(thread.stats.max, deadline, thread.stats.scheduled);
    }
}

pub fn placement(cpu: u32) -> Placement {
    Placement {
        cpu: Some(cpu),
        affinity: cpu.to_string(),
        policy: Policy::Fifo,
        priority: 80,
        timer_slack_ns: Some(1),
        ..Placement::default()
    }
}

/// The latencies of a cell that has some.
pub fn latency(cell: &mut Cell) -> &mut Latency {
    cell.latency_mut().expect("a cell of latencies")
}

/// What all threads of cells recorded of the primary series.
pub fn primaries(cells: &mut [CellData]) -> impl Iterator<Item = &mut SeriesData> {
    cells.iter_mut().flat_map(|cell| &mut cell.threads).map(|thread| thread.series_mut(0))
}

/// Work of every part of the load, with one hole of three seconds in the last part.
fn work(spec: &CellSpec, data: &mut CellData) -> Vec<LoadWork> {
    let names: Vec<&str> = spec.load.split('+').filter(|name| *name != "none").collect();
    let mut random = Random::new(5);
    let mut list = Vec::new();
    if names.is_empty() {
        list.push(LoadWork { load: "none".to_owned(), ..LoadWork::default() });
    }
    for (part, name) in (0..).zip(&names) {
        let last = part as usize + 1 == names.len() && names.len() > 1;
        let mut total = 0;
        let mut idle = 0;
        for second in 0..spec.seconds {
            let hole = last && (spec.seconds / 3..spec.seconds / 3 + 3).contains(&second);
            idle += u64::from(hole);
            total += if hole { 0 } else { 40_000_000 + random.next() % 9_000_000 };
            data.work.push((second, part, vec![total]));
        }
        list.push(LoadWork {
            load: (*name).to_owned(),
            counters: vec![WorkCounter {
                name: "bytes".to_owned(),
                total,
                per_second: total as f64 / spec.seconds as f64,
            }],
            idle_seconds: idle,
            containment: "pid-namespace".to_owned(),
            ..LoadWork::default()
        });
    }
    list
}

/// A run of these cells.
pub fn run(kernel: &str, preemption: &str, deadline: Option<u64>, specs: &[CellSpec]) -> LoadedRun {
    let (cells, data): (Vec<_>, Vec<_>) =
        specs.iter().enumerate().map(|(i, spec)| cell(spec, i, deadline)).unzip();
    let mut plan = Plan::new("standard");
    plan.deadline_ns = deadline;
    let worst = cells.iter().map(|c| c.verdict.clone()).max_by_key(|v| v.outcome);
    LoadedRun {
        legs: None,
        run: Run {
            schema: SCHEMA.to_owned(),
            run_id: format!("20261120T170003Z-ebx11-{kernel}-5f3a"),
            state: RunState::Complete,
            origin: Origin::Native,
            group: None,
            replicate: None,
            phase_ns: 0,
            dither: None,
            aim: None,
            plan_hash: "4bf5122f344554c53bde2ebb8cd2b7e3".to_owned(),
            plan,
            tool: tool(),
            board: Board {
                name: "ebx11".to_owned(),
                kind: BoardKind::Local,
                fingerprint: "9f86d081884c7d65".to_owned(),
                identity: Vec::new(),
                cpu_model: "AMD Geode LX".to_owned(),
                cpus: 2,
                hypervisor: None,
                turn_wait_ns: None,
                marks: None,
                modules: Vec::new(),
                lab: None,
            },
            kernel: Kernel {
                release: kernel.to_owned(),
                version: "#1 SMP Debian 6.1.174-1".to_owned(),
                machine: "x86_64".to_owned(),
                preemption: preemption.parse().unwrap_or_default(),
                command_line: "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet".to_owned(),
                config_sha256: None,
            },
            privileged: true,
            is_virtual: false,
            started: TimeBase { realtime_ns: 1_795_194_003_000_000_000, ..TimeBase::default() },
            ended: Some(TimeBase { realtime_ns: 1_795_194_063_000_000_000, ..TimeBase::default() }),
            continued: Vec::new(),
            conditions: conditions(),
            facts: facts(),
            cells,
            verdict: worst.unwrap_or_default(),
            judged: true,
        },
        cells: data,
        damage: Vec::new(),
        label: None,
        side: None,
    }
}

fn tool() -> Tool {
    let command = "punctual run wakeup --load none,paper --deadline 200us";
    Tool {
        name: "punctual".to_owned(),
        version: "0.1.0".to_owned(),
        target: "x86_64-unknown-linux-musl".to_owned(),
        sha256: String::new(),
        command: command.split(' ').map(str::to_owned).collect(),
    }
}

fn conditions() -> Vec<Condition> {
    let condition = |id: &str, text: &str| Condition { id: id.to_owned(), text: text.to_owned() };
    vec![
        condition(
            "frequency-scaling",
            "governor \"ondemand\": wake-ups after idle will be late (use \"performance\")",
        ),
        condition(
            "rt-throttling",
            "sched_rt_runtime_us 950000 of 1000000: real-time threads that spin can be stopped for 50 ms a second",
        ),
    ]
}

fn facts() -> BTreeMap<String, serde_json::Value> {
    let facts = [
        ("clock", r#"{"source":"tsc","available":["tsc","hpet","acpi_pm"]}"#),
        (
            "cpu",
            r#"{"online":"0-1","smt":{"active":false},"policies":[{"governor":"ondemand","driver":"acpi-cpufreq"}]}"#,
        ),
        ("memory", r#"{"total_kib":2048000,"swap_kib":0}"#),
    ];
    facts.map(|(k, v)| (k.to_owned(), serde_json::from_str(v).unwrap())).into()
}
