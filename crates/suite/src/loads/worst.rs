//! What `punctual lab search` found: the loads under which virtual boards can be latest.

use crate::registry::load::{Form, LoadEntry};

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "worst",
    summary: "memory, timers that expire together, the kernel's log and page tables",
    help: "What `punctual lab search` found on virtual boards with four preemption models \
           (docs/worst.md): the load memory, whose pages are freed in batches that only a preemptible \
           kernel interrupts, and 4000 timers that expire within 25 us every 40 ms, which any kernel \
           but a real-time one serves in one interrupt; and 1600 lines a second for the kernel's log \
           and its console, and threads that change page tables, which make a real-time kernel \
           latest. The log keeps the lines, and so may files of the machine's log daemon. A part that \
           cannot start is named in the result while the others run.",
    main_param: "",
    params: &[],
    counters: &[],
    needs: &[],
    // The search found 16M of memory, 8 % longer than the default, which a small board has too.
    form: Form::Composite(&[
        "memory",
        "timers:period=40ms,spread=25us,timers=4000",
        "console:rate=1600",
        "tlb:threads=4",
    ]),
};
