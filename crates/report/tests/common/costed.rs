//! Runs with every column of the table of costs.

use super::*;

/// Column, metric with its parameters, section, unit, which way is better, and a value.
type Column = (&'static str, &'static str, CostSection, Unit, Better, f64);

const LESS: Better = Better::Less;
const MORE: Better = Better::More;
const MB: Unit = Unit::MegabytesPerSecond;
const PROC: CostSection = CostSection::Processor;
const SWITCH: CostSection = CostSection::ContextSwitching;
const LOCAL: CostSection = CostSection::Communication;
const FILES: CostSection = CostSection::FilesAndMemory;
const BW: CostSection = CostSection::Bandwidths;

/// The keys of the metrics, and values of the order of a small board's.
pub const COLUMNS: [Column; 53] = [
    ("clock", "sys.clock", CostSection::Basics, Unit::Megahertz, MORE, 494.0),
    ("cache line", "sys.cacheline", CostSection::Basics, Unit::Bytes, MORE, 32.0),
    ("tlb", "sys.tlb", CostSection::Basics, Unit::Pages, MORE, 64.0),
    ("mem par", "sys.parallelism", CostSection::Basics, Unit::Ratio, MORE, 1.9),
    ("null call", "lat.syscall", PROC, Unit::Us, LESS, 0.74),
    ("null I/O", "lat.io", PROC, Unit::Us, LESS, 1.27),
    ("stat", "lat.stat", PROC, Unit::Us, LESS, 7.67),
    ("open/close", "lat.open", PROC, Unit::Us, LESS, 11.0),
    ("slct TCP", "lat.select:of=tcp", PROC, Unit::Us, LESS, 32.0),
    ("sig inst", "lat.signal:op=install", PROC, Unit::Us, LESS, 2.13),
    ("sig hdl", "lat.signal:op=handle", PROC, Unit::Us, LESS, 5.82),
    ("fork proc", "lat.fork", PROC, Unit::Us, LESS, 383.0),
    ("exec proc", "lat.exec", PROC, Unit::Us, LESS, 4156.0),
    ("sh proc", "lat.sh", PROC, Unit::Us, LESS, 18_000.0),
    ("2p/0K", "ctx:procs=2,kb=0", SWITCH, Unit::Us, LESS, 65.9),
    ("2p/16K", "ctx:procs=2,kb=16", SWITCH, Unit::Us, LESS, 221.5),
    ("2p/64K", "ctx:procs=2,kb=64", SWITCH, Unit::Us, LESS, 723.0),
    ("8p/16K", "ctx:procs=8,kb=16", SWITCH, Unit::Us, LESS, 240.0),
    ("8p/64K", "ctx:procs=8,kb=64", SWITCH, Unit::Us, LESS, 760.0),
    ("16p/16K", "ctx:procs=16,kb=16", SWITCH, Unit::Us, LESS, 250.0),
    ("16p/64K", "ctx:procs=16,kb=64", SWITCH, Unit::Us, LESS, 790.0),
    ("pipe", "lat.pipe", LOCAL, Unit::Us, LESS, 49.2),
    ("AF_UNIX", "lat.unix", LOCAL, Unit::Us, LESS, 107.0),
    ("UDP", "lat.udp", LOCAL, Unit::Us, LESS, 133.3),
    ("RPC/UDP", "lat.rpc:over=udp", LOCAL, Unit::Us, LESS, 345.8),
    ("TCP", "lat.tcp", LOCAL, Unit::Us, LESS, 160.0),
    ("RPC/TCP", "lat.rpc:over=tcp", LOCAL, Unit::Us, LESS, 367.1),
    ("TCP conn", "lat.connect", LOCAL, Unit::Us, LESS, 998.0),
    ("file 0K create", "lat.create:kb=0", FILES, Unit::Us, LESS, 88.0),
    ("file 0K delete", "lat.delete:kb=0", FILES, Unit::Us, LESS, 40.0),
    ("file 10K create", "lat.create:kb=10", FILES, Unit::Us, LESS, 310.0),
    ("file 10K delete", "lat.delete:kb=10", FILES, Unit::Us, LESS, 95.0),
    ("mmap", "lat.mmap", FILES, Unit::Us, LESS, 20_700.0),
    ("prot fault", "lat.protfault", FILES, Unit::Us, LESS, 0.765),
    ("page fault", "lat.pagefault", FILES, Unit::Us, LESS, 4.2762),
    ("100fd select", "lat.select:of=file", FILES, Unit::Us, LESS, 17.9),
    ("bw pipe", "bw.pipe", BW, MB, MORE, 15.9),
    ("bw AF_UNIX", "bw.unix", BW, MB, MORE, 16.8),
    ("bw TCP", "bw.tcp", BW, MB, MORE, 11.9),
    ("bw file reread", "bw.file", BW, MB, MORE, 12.4),
    ("bw mmap reread", "bw.mmap", BW, MB, MORE, 24.4),
    ("bw bcopy libc", "bw.copy:how=libc", BW, MB, MORE, 19.8),
    ("bw bcopy hand", "bw.copy:how=hand", BW, MB, MORE, 19.1),
    ("bw mem read", "bw.mem:op=read", BW, MB, MORE, 24.2),
    ("bw mem write", "bw.mem:op=write", BW, MB, MORE, 83.9),
    ("", "lat.mem:size=4KiB,stride=64", CostSection::MemoryLatencies, Unit::Ns, LESS, 6.1),
    ("", "disk.write", CostSection::Disk, MB, MORE, 21.0),
    ("", "disk.rewrite", CostSection::Disk, MB, MORE, 11.0),
    ("", "disk.create", CostSection::Disk, Unit::PerSecond, MORE, 2_400.0),
    ("futex", "lat.futex", CostSection::Others, Unit::Us, LESS, 31.0),
    ("hackbench", "time.hackbench", CostSection::Others, Unit::Us, LESS, 9_800_000.0),
    ("processes", "rate.process", CostSection::Others, Unit::PerSecond, MORE, 410.0),
    ("", "lat.select:of=tcp,fds=500", PROC, Unit::Us, LESS, 150.0),
];

/// A run of every column, each so many times as costly as `worse` says of its number; half of
/// `width` to either side is the interval of each.
pub fn costed(
    kernel: &str,
    preemption: &str,
    worse: impl Fn(usize) -> f64,
    width: f64,
) -> LoadedRun {
    let mut run = run(kernel, preemption, None, &[]);
    for (number, column) in COLUMNS.iter().enumerate() {
        run.run.cells.push(cost_cell(number, *column, worse(number), width));
        run.cells.push(CellData::default());
    }
    run
}

fn cost_cell(
    number: usize,
    (column, key, section, unit, better, value): Column,
    worse: f64,
    width: f64,
) -> Cell {
    let value = if better == Better::More { value / worse } else { value * worse };
    let metric = key.split(':').next().unwrap_or(key);
    let spread = |step: f64| value * (1.0 + step * width / 2.0);
    let cost = Cost {
        metric: metric.to_owned(),
        meaning: format!("what {metric} times"),
        section,
        column: Some(column.to_owned()).filter(|column| !column.is_empty()),
        unit,
        better,
        value: Some(value),
        low: Some(spread(-1.0)),
        high: Some(spread(1.0)),
        confidence: 0.95,
        iterations: 4_096,
        repetitions: (0..11).map(|i| spread(f64::from(i) / 5.0 - 1.0)).collect(),
        spread: Some(width / 2.0),
        end: Some(CostEnd::Precise),
        placement: placement(1),
        ..Cost::default()
    };
    let cell = Cell::new(
        format!("{key} @ none @ 1s"),
        format!("{number:02}-{metric}"),
        "none".to_owned(),
        1_000 * MS,
        What::Cost(cost),
    );
    Cell { state: CellState::Complete, ..cell }
}

/// The cell of a metric could not be measured.
pub fn lacking(mut run: LoadedRun, key: &str, reason: &str) -> LoadedRun {
    let start = format!("{key} @");
    for cell in run.run.cells.iter_mut().filter(|cell| cell.key.starts_with(&start)) {
        cell.state = CellState::Skipped;
        cell.reason = Some(reason.to_owned());
        let What::Cost(cost) = &mut cell.what else { continue };
        (cost.value, cost.low, cost.high, cost.end) = (None, None, None, None);
        cost.repetitions.clear();
    }
    run
}

/// By how much a column is dearer on a made-up real-time kernel: switches and communication most,
/// some not at all, and a few are cheaper.
pub fn as_real_time(number: usize) -> f64 {
    match COLUMNS[number].2 {
        CostSection::Basics => 1.0,
        CostSection::ContextSwitching => 1.8 - 0.1 * (number % 7) as f64,
        CostSection::Communication => 1.3 + 0.07 * (number % 5) as f64,
        CostSection::Bandwidths => 1.01,
        _ => 0.97 + 0.04 * (number % 6) as f64,
    }
}

/// An experiment of four kernels with latencies and costs, and so many runs of each.
pub fn costed_experiment(replicates: u32) -> Vec<LoadedRun> {
    let mut runs = experiment(replicates, 4);
    for (number, run) in runs.iter_mut().enumerate() {
        let (kernel, replicate) = (number % 4, (number / 4) as f64);
        let factor = [0.0, 0.1, 0.35, 1.0][kernel];
        let worse = move |column: usize| {
            let noise = 1.0 + 0.004 * (replicate + column as f64 % 3.0);
            (1.0 + factor * (as_real_time(column) - 1.0)) * noise
        };
        let costs = costed("x", "rt", worse, 0.01);
        run.run.cells.extend(costs.run.cells);
        run.cells.extend(costs.cells);
    }
    runs
}
