//! Many high-resolution timers that expire in bursts.

use std::convert::Infallible;
use std::fs;

use punctual_core::units::BareNumber;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::limits;
use punctual_sys::timer::TimerFd;

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, jobs};
use crate::registry::{Default, Kind, Param, Value, Values};

const EXPIRED: usize = 0;
const MERGED: usize = 1;
/// Kernel memory of a timer, its file and its directory entry on 64-bit machines, bytes.
const TIMER_MEMORY: u64 = 768;
/// Time between expiries on average, if that makes no more than [`MOST`] timers, ns.
const APART_NS: u64 = 10_000;
/// The most timers of a job by default.
const MOST: u64 = 32_000;
/// Time to make the timers before the first burst, for each of them, ns.
const MAKE_NS: u64 = 5_000;
/// Descriptors that a process has for other things.
const OTHER_FILES: u64 = 64;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "timers",
    summary: "thousands of high-resolution timers that expire in bursts",
    help: "Each job has many timers (timerfd), all of the same period, which expire one after the \
           other within the time that spread says: the kernel handles a burst in few interrupts, \
           however long these take. The job reads every timer, which arms it again. expirations \
           counts reads: each stands for an expiry in an interrupt. merged counts periods that went \
           by before a timer was read, for which nothing expired.",
    main_param: "timers",
    params: &[
        jobs("number of processes"),
        Param {
            name: "timers",
            kind: Kind::Count { low: 1, high: 1_000_000 },
            default: Default::OfMachine(
                "one for each 10 us of the period, at most 32000; less if all exceed an eighth of the \
                 memory or half of fs.file-max, or the limit of open files is lower",
            ),
            help: "timers of each job",
        },
        Param {
            name: "period",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 100_000, high: 60_000_000_000 },
            default: Default::Value("10ms"),
            help: "time between bursts",
        },
        Param {
            name: "spread",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: 60_000_000_000 },
            default: Default::Value("100us"),
            help: "time within which the timers of a burst expire",
        },
    ],
    counters: &["expirations", "merged"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::Nothing, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    let jobs = machine.resolve_jobs(values);
    let limit = limits::open_file_limit().unwrap_or(1024).saturating_sub(OTHER_FILES).max(1);
    let wanted = (values.number("period") / APART_NS).clamp(1, MOST);
    let fitting = (machine.memory / 8 / TIMER_MEMORY / jobs).max(1);
    // The rest is for the machine's other processes.
    let of_machine = fs::read_to_string("/proc/sys/fs/file-max").ok();
    let of_machine = of_machine.and_then(|text| text.trim().parse().ok()).unwrap_or(u64::MAX);
    let most = limit.min(fitting).min((of_machine / 2 / jobs).max(1));
    let timers = values.known_number("timers").unwrap_or(most.min(wanted));
    if timers > limit {
        return Err(format!(
            "timers={timers}: the limit of open files leaves {limit} (ulimit -Hn)"
        ));
    }
    values.set("timers", Value::Number(timers));
    Ok(())
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    limits::raise_open_file_limit().map_err(|error| LoadError::io("file limit", &error))?;
    let values = worker.values();
    let (timers, period_ns) = (values.number("timers"), values.number("period"));
    let step_ns = values.number("spread") / timers;
    for _ in 0..values.number("jobs") {
        worker.fork(|worker| {
            let failed = |error| LoadError::io("timer", &error);
            let first_ns = monotonic_ns() + timers * MAKE_NS;
            let timer = |number| TimerFd::new(first_ns + number * step_ns, period_ns);
            let made: Result<Vec<_>, _> = (0..timers).map(timer).collect();
            let mut made = made.map_err(failed)?;
            loop {
                for timer in &mut made {
                    let expired = timer.wait().map_err(failed)?;
                    worker.add(EXPIRED, u64::from(expired > 0));
                    worker.add(MERGED, expired.saturating_sub(1));
                }
            }
        })?;
    }
    worker.wait_endless()
}
