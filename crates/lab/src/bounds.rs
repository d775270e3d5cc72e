//! What a guest may do to its host. A guest may run any kernel, so all that it sends is
//! untrusted.

use std::collections::HashSet;
use std::time::Duration;

use punctual_core::channel::{Order, OrderedCell};
use punctual_core::layout::{CELL_FILES, CELLS};
use punctual_core::run::limits::{MAX_RUN_JSON, MAX_THREADS};

/// Bytes that a guest may send in addition to those for each second of its plan.
const BYTES: u64 = 256 << 20;

/// Bytes that a guest may send for each second of its plan: 4,096 threads send half of it.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// Bytes of `run.json` besides its cells: facts, conditions, interrupts; twelve times those of a
/// small board.
const RUN: u64 = 256 << 10;

/// Bytes of a cell in `run.json` besides its threads, twice those of one with several loads.
const CELL: u64 = 8 << 10;

/// Bytes of a thread in `run.json`, three times those of one with a single series.
const THREAD: u64 = 4 << 10;

/// Longest text of a console, and of the complaints of QEMU, bytes.
pub(crate) const LOG: u64 = 64 << 20;

/// Time of the board for the boot, and for init to say that the plan took too long, ns.
const SPARE_NS: u64 = 240_000_000_000;

/// CPU time that QEMU may take for the board's time.
const SLOWEST: u32 = 10;

const SECOND_NS: u64 = punctual_core::units::SECOND_NS;

/// The bounds of one guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// The files that it may append to, by their path within its run directory.
    pub files: HashSet<String>,
    /// Bytes that it may send.
    pub bytes: u64,
    /// Latest time of the board, ns after its boot.
    pub board_ns: u64,
    /// Longest time of QEMU on the host's CPUs.
    pub cpu_time: Duration,
}

impl Bounds {
    /// The bounds of a guest with this order, and with this patience for one that says nothing.
    #[must_use]
    pub fn of(order: &Order, patience: Duration) -> Self {
        let plan = order.plan();
        let cells = plan.cells.iter().enumerate();
        let files = cells.flat_map(|(number, cell)| {
            let dir = cell.dir(number);
            CELL_FILES.map(|file| format!("{CELLS}/{dir}/{file}"))
        });
        let board_ns = order.limit_ns.saturating_add(SPARE_NS);
        let planned_s = order.cells.iter().fold(0_u64, |sum, cell| {
            sum.saturating_add(cell.duration_ns.saturating_add(order.warmup_ns) / SECOND_NS)
        });
        Self {
            files: files.collect(),
            bytes: planned_s
                .saturating_mul(BYTES_PER_SECOND)
                .saturating_add(records_of_run(order))
                .saturating_add(BYTES),
            board_ns,
            cpu_time: Duration::from_nanos(board_ns)
                .saturating_mul(SLOWEST)
                .saturating_add(patience),
        }
    }
}

/// Bytes of all that `run.json` is while the plan is measured: it is sent at the start of each
/// cell and at the end, and has the results of the cells before it.
fn records_of_run(order: &Order) -> u64 {
    let cells = &order.cells;
    // What the measuring side was asked for, with the defaults, before there are results.
    let planned = (cells.len() as u64).saturating_mul(CELL / 4).saturating_add(RUN);
    let mut length = planned;
    let mut sum = length.min(MAX_RUN_JSON);
    for cell in cells {
        let results = threads_of(cell, order).saturating_mul(THREAD).saturating_add(CELL);
        length = length.saturating_add(results);
        sum = sum.saturating_add(length.min(MAX_RUN_JSON));
    }
    sum
}

/// The threads that a cell has at most. Costs have one.
fn threads_of(cell: &OrderedCell, order: &Order) -> u64 {
    // `per-cpu`, and an affinity to several CPUs.
    let cpus = order.virtual_board.as_ref().map_or(1, |board| board.cpus);
    let asked = cell.params.get("threads").and_then(|threads| threads.parse().ok());
    asked.unwrap_or(1).max(cpus).min(MAX_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::plan::Plan;
    use punctual_core::schema::Run;

    fn order(plan: &str) -> Order {
        Order::of(&Plan::from_toml(plan).unwrap(), 153 * SECOND_NS)
    }

    /// As many cells of one second.
    fn repeated(probe: &str, cells: usize) -> Order {
        let mut order =
            order(&format!("name = \"x\"\n[[cell]]\nprobe = \"{probe}\"\nduration = \"1s\"\n"));
        order.cells = vec![order.cells[0].clone(); cells];
        order
    }

    #[test]
    fn they_follow_from_the_order() {
        let text = "name = \"x\"\nwarmup = \"2s\"\n[[cell]]\nprobe = \"wakeup\"\nduration = \"9s\"";
        let order = order(text);
        let bounds = Bounds::of(&order, Duration::from_secs(5));
        assert!(bounds.files.contains("cells/00-wakeup_none_9s/blocks"), "{bounds:?}");
        assert_eq!(bounds.files.len(), 2);
        assert_eq!(bounds.bytes, ((256 + 11) << 20) + 2 * (RUN + CELL / 4) + CELL + THREAD);
        assert_eq!(bounds.board_ns, 393 * SECOND_NS);
        assert_eq!(bounds.cpu_time, Duration::from_secs(3_935));
        let patient = Bounds::of(&order, Duration::MAX);
        assert_eq!(patient.cpu_time, Duration::MAX);
    }

    /// Whatever is sent again for each cell grows with the square of their number.
    #[test]
    fn a_plan_of_many_cells_can_send_its_record_for_each_of_them() {
        let order = repeated("wakeup:threads=16", 600);
        let bytes = Bounds::of(&order, Duration::from_secs(5)).bytes;

        // A run as large as the plan: each cell with sixteen threads once it is over.
        let simulated: Run =
            serde_json::from_slice(include_bytes!("../../../fuzz/seeds/run_json/simulated"))
                .unwrap();
        let length = |run: &Run| serde_json::to_vec_pretty(run).unwrap().len() as u64;
        let mut over = simulated.cells[0].clone();
        let latency = over.latency_mut().unwrap();
        latency.threads = vec![latency.threads[0].clone(); 16];
        let run = |cells: usize| Run {
            cells: vec![over.clone(); cells],
            plan: order.plan(),
            ..simulated.clone()
        };
        let (none, one) = (length(&run(0)), length(&run(1)));
        let sent = (0..=600).map(|over| none + over * (one - none)).sum::<u64>();
        assert!(sent > 1_200 * BYTES_PER_SECOND + BYTES, "{sent} is within the bound of the time");
        assert!(bytes > sent + sent / 2, "{bytes} for a run of {sent}");
        assert!(bytes < 601 * MAX_RUN_JSON, "{bytes}");
    }

    #[test]
    fn no_plan_makes_a_bound_that_is_none() {
        let order = repeated("wakeup:threads=4096", 1_000);
        let bytes = Bounds::of(&order, Duration::from_secs(5)).bytes;
        assert!(bytes <= 1_001 * MAX_RUN_JSON + (2_256 << 20), "{bytes}");
    }
}
