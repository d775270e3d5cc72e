//! The exception vectors of an arm64 kernel: code without names of its own, in which every interrupt,
//! exception and system call arrives (arch/arm64/kernel/entry.S).

use super::kallsyms::Symbols;

/// What the vectors of a table lead to, in their order (Arm ARM, D1.4.1.3).
pub(super) const SLOTS: [&str; 16] = [
    "el1t_64_sync",
    "el1t_64_irq",
    "el1t_64_fiq",
    "el1t_64_error",
    "el1h_64_sync",
    "el1h_64_irq",
    "el1h_64_fiq",
    "el1h_64_error",
    "el0t_64_sync",
    "el0t_64_irq",
    "el0t_64_fiq",
    "el0t_64_error",
    "el0t_32_sync",
    "el0t_32_irq",
    "el0t_32_fiq",
    "el0t_32_error",
];

/// Bytes of each vector.
const SLOT: u64 = 0x80;

/// Tables of vectors, and how many each name has. The second are for CPUs whose branch predictor is
/// cleared on the way in.
const TABLES: [(&str, u64); 2] = [("vectors", 1), ("__bp_harden_el1_vectors", 3)];

/// All vectors of a kernel.
#[derive(Clone)]
pub(super) struct Vectors {
    /// Where tables begin, and bytes of each.
    tables: Vec<(u64, u64)>,
}

impl Vectors {
    /// `None` if the kernel is of another architecture.
    pub(super) fn of(symbols: &Symbols) -> Option<Self> {
        symbols.address(SLOTS[5])?;
        let size = SLOT * SLOTS.len() as u64;
        let table = |(name, count)| Some((symbols.address(name)?, count * size));
        let tables: Vec<_> = TABLES.into_iter().filter_map(table).collect();
        (!tables.is_empty()).then_some(Self { tables })
    }

    /// Which of [`SLOTS`] the vector at an address leads to, and how far inside the vector it is.
    pub(super) fn at(&self, address: u64) -> Option<(usize, u64)> {
        let offsets = self.tables.iter().map(|(start, size)| (address.checked_sub(*start), size));
        let offset = offsets.filter_map(|(offset, size)| offset.filter(|at| at < size)).next()?;
        let slot = usize::try_from(offset / SLOT).ok()? % SLOTS.len();
        Some((slot, offset % SLOT))
    }

    /// Where each begins.
    pub(super) fn starts(&self) -> impl Iterator<Item = u64> + '_ {
        let tables = self.tables.iter();
        tables.flat_map(|(start, size)| (0..size / SLOT).map(move |slot| start + slot * SLOT))
    }
}
