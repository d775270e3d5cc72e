//! Parameters that every probe has: its threads and, with a period, its releases.

use punctual_core::units::BareNumber;

use super::param::{Choice, Default, Kind, Param};

/// The most threads that one probe may have.
pub use punctual_core::run::limits::MAX_THREADS;

const HOUR_NS: u64 = 3_600_000_000_000;

/// Word of `threads`: one thread bound to each CPU of the inherited mask and each isolated one, or of the
/// CPUs named.
pub const PER_CPU: &str = "per-cpu";

const POLICY: Param = Param {
    name: "policy",
    kind: Kind::Choice(&[Choice::of("fifo", ""), Choice::of("rr", ""), Choice::of("other", "")]),
    default: Default::Value("fifo"),
    help: "scheduling policy",
};

/// The same for a probe whose threads can have a reservation.
pub const POLICY_OR_DEADLINE: Param = Param {
    kind: Kind::Choice(&[
        Choice::of("fifo", ""),
        Choice::of("rr", ""),
        Choice::of("other", ""),
        Choice::of("deadline", "SCHED_DEADLINE with a runtime in each interval"),
    ]),
    ..POLICY
};

/// Parameters of every probe.
pub const THREAD_PARAMS: &[Param] = &[
    Param {
        name: "threads",
        kind: Kind::Or(
            &[Choice::of(PER_CPU, "one bound to each CPU")],
            &Kind::Count { low: 1, high: MAX_THREADS },
        ),
        default: Default::Value("1"),
        help: "number of threads",
    },
    POLICY,
    Param {
        name: "priority",
        kind: Kind::Or(
            &[Choice::of("99", "the kernel's own threads use it; needs --force")],
            &Kind::Count { low: 1, high: 98 },
        ),
        default: Default::Value("80"),
        help: "real-time priority",
    },
    Param {
        name: "affinity",
        kind: Kind::Or(
            &[
                Choice::of("inherited", "the CPUs that punctual was started on"),
                Choice::of("auto", "threads pinned round-robin"),
            ],
            &Kind::Cpus,
        ),
        default: Default::Value("inherited"),
        help: "CPU list such as 0-3,8 (0-3+8 inside PROBE:affinity=)",
    },
];

/// Parameters of every probe with a period.
pub const PERIOD_PARAMS: &[Param] = &[
    Param {
        name: "interval",
        kind: Kind::Time { bare: BareNumber::Microseconds, low: 1, high: HOUR_NS },
        default: Default::Value("1ms"),
        help: "time between releases of a thread, longer than one read of the clock",
    },
    Param {
        name: "aligned",
        kind: Kind::Or(
            &[Choice::of("spread", "evenly over the interval")],
            &Kind::Time { bare: BareNumber::Microseconds, low: 0, high: HOUR_NS },
        ),
        default: Default::Value("spread"),
        help: "releases of all threads at once, each thread TIME (may be 0us) after the one before",
    },
];
