//! Options of cyclictest and rtla that punctual does not have, and what it has instead.

/// Whether an option is followed by a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Never.
    Nothing,
    /// Always: attached, or the next word.
    Value,
    /// Attached, or the next word if that is a number.
    Number,
}

/// An option of another tool.
#[derive(Debug)]
pub struct Foreign {
    /// Its spellings, with the dashes, separated by spaces.
    pub names: &'static str,
    /// Whether it takes a value.
    pub takes: Takes,
    /// What to write instead, or why nothing is needed.
    pub answer: &'static str,
}

const fn foreign(names: &'static str, takes: Takes, answer: &'static str) -> Foreign {
    Foreign { names, takes, answer }
}

use Takes::{Nothing, Number, Value};

const HISTOGRAM: &str = "every run keeps its histogram, without an upper end; print it afterwards \
                         with: punctual export last --histogram --text";
const TRACING: &str = "-b TIME ends the run at the first later sample and stops tracing, if the \
                       kernel is being traced";

/// Every option known, those of cyclictest first.
pub static FOREIGN: &[Foreign] = &[
    foreign("-h --histogram", Number, HISTOGRAM),
    foreign(
        "-H --histofall --house-keeping",
        Number,
        "as a histogram of all threads: every run keeps it; print it afterwards with: punctual \
         export last --histogram --text --sum. As rtla's housekeeping CPUs: start punctual with \
         taskset -c CPUS, and place the threads with -a CPUS",
    ),
    foreign(
        "--histfile",
        Value,
        "every run keeps its histogram; write it afterwards with: punctual export last --histogram \
         --text >FILE",
    ),
    foreign(
        "-A",
        Number,
        "write --aligned TIME: all threads are released at once, each TIME after the one before",
    ),
    foreign(
        "--secaligned",
        Number,
        "releases cannot be aligned to the full second; --aligned TIME releases all threads at \
         once, and --phase TIME delays the first release",
    ),
    foreign(
        "-d --distance",
        Number,
        "all threads have the same interval, so there is no distance between intervals; --aligned \
         TIME sets the distance between releases of neighbouring threads. As rtla's duration: -D TIME",
    ),
    foreign(
        "-n --nanosleep --nano",
        Nothing,
        "leave it out: clock_nanosleep is the default (--timer nanosleep), and every number is \
         printed with its unit",
    ),
    foreign(
        "-N --nsecs",
        Nothing,
        "leave it out: latencies are kept in ns and printed with their unit; --json has plain ns",
    ),
    foreign("-r --relative", Nothing, "write --timer relative"),
    foreign("-x --posix_timers", Nothing, "write --timer posix"),
    foreign(
        "-s --system --stack",
        Number,
        "sys_nanosleep is --timer relative. Stack traces of rtla (-s) are not taken",
    ),
    foreign(
        "-c --clock --cpus",
        Value,
        "the clock is always CLOCK_MONOTONIC, which no step of the time of day moves. As rtla's \
         list of CPUs: -t per-cpu -a CPUS",
    ),
    foreign(
        "-M --refresh_on_max",
        Nothing,
        "leave it out: the display changes once a second at most; --quiet shows none",
    ),
    foreign(
        "-v --verbose",
        Nothing,
        "every late sample and every second is kept; print them afterwards with: punctual export \
         last --worst --csv, or --timeline --csv",
    ),
    foreign(
        "-o --oscope",
        Value,
        "print the extremes of every second afterwards with: punctual export last --timeline --csv",
    ),
    foreign("-u --unbuffered --user-threads", Nothing, "leave it out: it is always so"),
    foreign(
        "-U --numa",
        Nothing,
        "leave it out: a thread bound to a CPU touches its memory there first; -S binds one thread \
         to each CPU",
    ),
    foreign("-y", Value, "write --policy fifo, rr or other; deadline for the probe wakeup"),
    foreign("--prio", Value, "write -p PRIO"),
    foreign("--breaktrace", Value, "write -b TIME; a bare number is in microseconds"),
    foreign(
        "--latency",
        Value,
        "write --dma-latency US; it is held at 0 unless you say otherwise, as cyclictest does",
    ),
    foreign(
        "--laptop --default-system --deepest-idle-state",
        Nothing,
        "write --dma-latency none: idle states are left alone",
    ),
    foreign("--tracemark -f --ftrace -E -C -B -I -O -w -W", Nothing, TRACING),
    foreign(
        "-F --fifo",
        Value,
        "SIGUSR1 makes a run print a snapshot of every thread: kill -USR1 PID",
    ),
    foreign(
        "--spike",
        Value,
        "write --keep-above TIME: every sample above it is kept with its time stamp; print them \
         with: punctual export last --worst --csv",
    ),
    foreign(
        "--spike-nodes",
        Value,
        "leave it out: what --keep-above could not keep is counted and reported",
    ),
    foreign(
        "--smi",
        Nothing,
        "the SMI counter is not read; `turbostat --show SMI` counts them beside a run, and probe \
         clock shows gaps of every cause",
    ),
    foreign("--priospread", Nothing, "all threads have the same priority, that of -p"),
    foreign(
        "--mainaffinity",
        Value,
        "start punctual with taskset -c CPUS, and place the threads with -a CPUS",
    ),
    foreign("-R --resolution", Nothing, "write: punctual run clock, which measures the clock"),
    // rtla
    foreign("--period", Value, "write -i TIME; a bare number is in microseconds"),
    foreign(
        "-P",
        Value,
        "write -p PRIO, and --policy fifo, rr or other; deadline for the probe wakeup",
    ),
    foreign("--auto --aa-only --thread --irq", Value, TRACING),
    foreign("-T", Value, TRACING),
    foreign("--trace --event -e --filter --trigger --trace-buffer-size", Value, TRACING),
    foreign("--no-aa --dump-tasks --dump-task", Nothing, TRACING),
    foreign("--warm-up", Value, "write --warmup TIME; a bare number is in seconds"),
    foreign("-k --kernel-threads", Nothing, "only user space is measured: wake-ups of threads"),
    foreign("--user-load", Nothing, "write --load LIST; `punctual list loads` names the loads"),
    foreign(
        "--bucket-size --entries",
        Value,
        "the bins are under 0.8 % wide and have no upper end; see: punctual export last --histogram",
    ),
    foreign(
        "--no-header --no-summary --no-index --no-irq --no-thread --with-zeros",
        Nothing,
        HISTOGRAM,
    ),
    foreign("--cgroup", Value, "start punctual in that control group, with systemd-run or cgexec"),
];

/// The option spelt so, such as `-h` or `--histogram`.
pub fn find(name: &str) -> Option<&'static Foreign> {
    FOREIGN.iter().find(|foreign| foreign.names.split(' ').any(|known| known == name))
}
