//! What `punctual lab search` found: the loads under which virtual boards can be latest.

use crate::registry::load::{Form, LoadEntry};

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "worst",
    summary: "memory, timers that expire together, OOM kills, the kernel's log and page tables",
    help: "What `punctual lab search` found on virtual boards with four preemption models \
           (docs/worst.md): the load oom, whose processes the kernel kills and reports with \
           interrupts off, on PREEMPT_RT too; up to 32000 timers that expire within 25 us every \
           2 s, which any kernel but a real-time one serves in one interrupt; the load memory, whose pages are \
           freed in batches that only a preemptible kernel interrupts; and 1600 lines a second for the \
           kernel's log and its console, and threads that change page tables, which make a real-time \
           kernel latest if nothing is killed. The log keeps the lines, and so may files of the \
           machine's log daemon. A part that cannot start is named in the result while the others run.",
    main_param: "",
    params: &[],
    counters: &[],
    needs: &[],
    // Sizes that a small board has room for. 2 s are enough for the timers to be armed again while
    // the others use the CPU too: a burst is of all of them.
    form: Form::Composite(&[
        "memory",
        "timers:period=2s,spread=25us",
        "console:rate=1600",
        "tlb:threads=4",
        "oom",
    ]),
};
