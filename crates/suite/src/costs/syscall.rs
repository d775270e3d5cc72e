//! System calls that do next to nothing: the cost of entering and leaving the kernel.

use std::hint::black_box;
use std::io;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::calls::getppid;

use crate::registry::cost::{Column, CostEntry, Method, Operation};

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
    section: CostSection::Processor,
    columns: &[Column { name: "null call", params: &[] }],
    open: |_| Ok(Method::Timed(Box::new(NullCall))),
};

struct NullCall;

impl Operation for NullCall {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            black_box(getppid());
        }
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        ns / 1e3
    }
}
