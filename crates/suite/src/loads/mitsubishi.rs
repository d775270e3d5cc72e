//! The scenarios of Mitsubishi's evaluation, of which only the names are published.

use crate::registry::load::{Form, LoadEntry};

const fn scenario(
    name: &'static str,
    summary: &'static str,
    help: &'static str,
    parts: &'static [&'static str],
) -> LoadEntry {
    LoadEntry {
        name,
        summary,
        help,
        main_param: "",
        params: &[],
        counters: &[],
        needs: &[],
        form: Form::Composite(parts),
    }
}

pub(super) const STABLE: LoadEntry = scenario(
    "stable",
    "work without change: cache and copy together",
    "Follows the name of the scenario \"stable\" of Mitsubishi's evaluation: a fixed number of \
     processes does the same all the time, in user space (cache) and in the kernel (copy). Once it \
     runs, no process and no memory comes or goes. The publication does not say what its processes \
     did.",
    &["cache", "copy"],
);

pub(super) const DYNAMIC_PROCESS: LoadEntry = scenario(
    "dynamic-process",
    "processes come and go (the load process)",
    "Follows the name of the scenario \"dynamic process\" of Mitsubishi's evaluation: the load \
     process with its defaults.",
    &["process"],
);

pub(super) const DYNAMIC_MEMORY: LoadEntry = scenario(
    "dynamic-memory",
    "memory comes and goes (the load memory)",
    "Follows the name of the scenario \"dynamic memory\" of Mitsubishi's evaluation: the load \
     memory with its defaults.",
    &["memory"],
);

pub(super) const BLOCK_IO: LoadEntry = scenario(
    "block-io",
    "programmed input and output on a slow disk (the load blockio)",
    "Follows the name of the scenario \"CF PIO\" of Mitsubishi's evaluation, programmed I/O on a \
     CompactFlash card: the load blockio with its defaults, in the folder for temporary files. Set \
     TMPDIR to a folder on the slowest disk, or use blockio:DIR.",
    &["blockio"],
);
