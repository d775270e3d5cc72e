//! What a guest may do to its host. A guest may run any kernel, so all that it sends is
//! untrusted.

use std::collections::HashSet;
use std::time::Duration;

use punctual_core::channel::Order;
use punctual_core::layout::{CELL_FILES, CELLS};

/// Bytes that a guest may send in addition to those for each second of its plan.
const BYTES: u64 = 256 << 20;

/// Bytes that a guest may send for each second of its plan: 4,096 threads send half of it.
const BYTES_PER_SECOND: u64 = 1 << 20;

/// Longest text of a console, and of the complaints of QEMU, bytes.
pub(crate) const LOG: u64 = 64 << 20;

/// Time of the board for the boot, and for init to say that the plan took too long, ns.
const SPARE_NS: u64 = 240_000_000_000;

/// How many times slower than the board's time a host may be.
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
    /// Longest time of the host.
    pub wall: Duration,
}

impl Bounds {
    /// The bounds of a guest with this order, and with this patience for one that says nothing.
    #[must_use]
    pub fn of(order: &Order, patience: Duration) -> Self {
        let cells = order.plan.cells.iter().enumerate();
        let files = cells.flat_map(|(number, cell)| {
            let dir = cell.dir(number);
            CELL_FILES.map(|file| format!("{CELLS}/{dir}/{file}"))
        });
        let board_ns = order.limit_ns.saturating_add(SPARE_NS);
        let planned_s = order.plan.cells.iter().fold(0_u64, |sum, cell| {
            sum.saturating_add(cell.duration_ns.saturating_add(order.plan.warmup_ns) / SECOND_NS)
        });
        Self {
            files: files.collect(),
            bytes: planned_s.saturating_mul(BYTES_PER_SECOND).saturating_add(BYTES),
            board_ns,
            wall: Duration::from_nanos(board_ns).saturating_mul(SLOWEST).saturating_add(patience),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::plan::Plan;

    #[test]
    fn they_follow_from_the_order() {
        let text = "name = \"x\"\nwarmup = \"2s\"\n[[cell]]\nprobe = \"wakeup\"\nduration = \"9s\"";
        let order = Order {
            plan: Plan::from_toml(text).unwrap(),
            board: String::new(),
            virtual_board: None,
            group: None,
            replicate: None,
            phase_ns: 0,
            limit_ns: 153 * SECOND_NS,
            tool_sha256: None,
        };
        let bounds = Bounds::of(&order, Duration::from_secs(5));
        assert!(bounds.files.contains("cells/00-wakeup_none_9s/blocks"), "{bounds:?}");
        assert_eq!(bounds.files.len(), 2);
        assert_eq!(bounds.bytes, (256 + 11) << 20);
        assert_eq!(bounds.board_ns, 393 * SECOND_NS);
        assert_eq!(bounds.wall, Duration::from_secs(3_935));
        let patient = Bounds::of(&order, Duration::MAX);
        assert_eq!(patient.wall, Duration::MAX);
    }
}
