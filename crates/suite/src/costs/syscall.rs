//! System calls that do next to nothing: the cost of entering and leaving the kernel.

use std::hint::black_box;
use std::io;

use punctual_core::schema::{Better, Unit};
use punctual_sys::calls::getppid;

use crate::registry::cost::{CostEntry, Operation};

pub(super) const GETPPID: CostEntry = CostEntry {
    name: "lat.syscall",
    summary: "a system call that does next to nothing: getppid (null call)",
    help: "Calls getppid(2) by its number, so no library can answer instead of the kernel. Comparable to \
the null call in LMbench's summary.",
    meaning: "one getppid, the empty loop subtracted",
    params: &[],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    open: |_| Ok(Box::new(NullCall)),
};

struct NullCall;

impl Operation for NullCall {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            black_box(getppid());
        }
        Ok(())
    }

    fn empty(&mut self, iterations: u64) {
        for iteration in 0..iterations {
            black_box(iteration);
        }
    }

    fn value(&self, ns: f64) -> f64 {
        ns / 1e3
    }
}
