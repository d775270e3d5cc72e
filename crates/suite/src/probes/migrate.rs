//! `migrate`: whether the highest priorities run, whatever CPU they have slept on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::schema::Tells;
use punctual_core::units::BareNumber;
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use super::counts::Counts;
use super::serve::Serve;
use crate::compute::compute;
use crate::recorder::Recorder;
use crate::registry::need::TWO_CPUS;
use crate::registry::probe::{
    By, Closed, Companion, CounterEntry, HelperThread, Pace, Primary, ProbeEntry, ProbeThread,
    Session, Stage, State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};
use crate::schedule::Schedule;

const HOUR_NS: u64 = 3_600_000_000_000;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "migrate",
    summary: "whether the highest priorities always run (as rt-migrate-test)",
    help: "One thread more than CPUs, each with a priority of its own, that of thread 0 the highest. \
All are released at once, and each computes for work=TIME; the lowest has to wait until another is \
done. Recorded is, of all but the lowest, now - release. A thread that is woken on a CPU where a \
higher one runs must be moved (pushed, or pulled) to one where only a lower one does, so no latency is \
to come near work; give a deadline below it for a verdict. overtaken counts activations more than \
limit=TIME late that began after the lowest thread did. push=forbidden binds the two highest threads to \
one CPU, which shows how a failure looks. Follows rt-migrate-test of rt-tests.",
    params: &[
        Param {
            name: "work",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 1_000, high: HOUR_NS },
            default: Default::Value("2ms"),
            help: "CPU time that every thread takes after each release",
        },
        Param {
            name: "limit",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: HOUR_NS },
            default: Default::Value("500us"),
            help: "how late an activation that is not overtaken may be",
        },
        Param {
            name: "push",
            kind: Kind::Choice(&[
                Choice::of("allowed", "threads run on every CPU"),
                Choice::of("forbidden", "the two highest share one"),
            ]),
            default: Default::Value("allowed"),
            help: "whether threads can be moved to another CPU",
        },
    ],
    overrides: &[("interval", "10ms"), ("aligned", "0s")],
    without: &["threads", "affinity"],
    check,
    needs: &[TWO_CPUS],
    device: None,
    pace: Pace::Periodic,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "start of the work minus its release, of all threads but the lowest",
        nouns: ("activation", "activations"),
        by: By::Thread,
    },
    series: &[],
    counters: &[CounterEntry {
        name: "overtaken",
        meaning: "activations later than the limit that began after the lowest thread did",
        tells: Tells::Nothing,
    }],
    state: State::There(open),
};

fn check(values: &Values) -> Result<(), String> {
    if values.text("policy") == "other" {
        return Err(values.wrong("policy", "the probe needs priorities; use fifo or rr"));
    }
    if values.number("work").saturating_mul(2) > values.number("interval") {
        return Err(values.wrong("work", "the probe needs an interval at least twice as long"));
    }
    Ok(())
}

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let (policy, priority) = stage.scheduling;
    if priority <= stage.threads {
        return Err(format!(
            "{} threads below real-time priority {priority} are needed; {} has no room for them",
            stage.threads,
            policy.name()
        ));
    }
    let cpus = affinity::get().map_err(|error| format!("sched_getaffinity: {error}"))?;
    let first = cpus.iter().next().ok_or("no CPU")?;
    Ok(Box::new(Migrations {
        threads: stage.threads,
        interval_ns: stage.interval_ns,
        work_ns: values.number("work"),
        limit_ns: values.number("limit"),
        shared: (values.text("push") == "forbidden").then(|| CpuSet::of(first)),
        break_ns: stage.break_ns,
        lowest: Arc::default(),
        counts: Vec::new(),
    }))
}

struct Migrations {
    threads: u32,
    interval_ns: u64,
    work_ns: u64,
    limit_ns: u64,
    /// The CPU that the two highest threads share.
    shared: Option<CpuSet>,
    break_ns: i64,
    /// The last release that the lowest thread has begun to work on, CLOCK_MONOTONIC, ns.
    lowest: Arc<AtomicU64>,
    /// Of each thread, how many were overtaken.
    counts: Vec<Arc<Counts<1>>>,
}

impl Session for Migrations {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let counts = Arc::new(Counts::default());
        self.counts.push(Arc::clone(&counts));
        Ok(Box::new(Ranked {
            interval_ns: self.interval_ns,
            work_ns: self.work_ns,
            limit_ns: self.limit_ns,
            bound: self.shared.clone().filter(|_| number < 2),
            break_ns: self.break_ns,
            lowest: Arc::clone(&self.lowest),
            counts,
        }))
    }

    fn below(&self, number: u32) -> u32 {
        number
    }

    fn helpers(&mut self) -> Vec<Companion> {
        vec![Companion {
            of: 0,
            below: self.threads,
            cpu: None,
            name: "the lowest, which has to wait".to_owned(),
            helper: Box::new(Lowest {
                interval_ns: self.interval_ns,
                work_ns: self.work_ns,
                begun: Arc::clone(&self.lowest),
            }),
        }]
    }

    fn close(self: Box<Self>) -> Closed {
        let counts = Counts::totals(self.counts.iter().map(|counts| &**counts));
        Closed { counts, notes: Vec::new() }
    }
}

/// One of the threads that are to run at once.
struct Ranked {
    interval_ns: u64,
    work_ns: u64,
    limit_ns: u64,
    bound: Option<CpuSet>,
    break_ns: i64,
    lowest: Arc<AtomicU64>,
    counts: Arc<Counts<1>>,
}

impl ProbeThread for Ranked {
    fn prepare(&mut self) -> io::Result<()> {
        self.bound.as_ref().map_or(Ok(()), affinity::set)
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        self.counts.begin();
        let schedule = Schedule::new(window.first, self.interval_ns, window.end);
        let serve = Serve::new(schedule, &mut tracks[0], window.samples, stop, self.break_ns);
        let job = |release, latency| {
            let is_behind = self.lowest.load(Ordering::Acquire) == release;
            let is_late = latency > self.limit_ns.cast_signed();
            self.counts.add(0, u64::from(is_late && is_behind));
            compute(self.work_ns);
        };
        serve.run(&mut AbsoluteSleep, job).map(drop)
    }
}

/// The one thread for which there is no CPU.
struct Lowest {
    interval_ns: u64,
    work_ns: u64,
    begun: Arc<AtomicU64>,
}

impl HelperThread for Lowest {
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let mut schedule = Schedule::new(window.first, self.interval_ns, window.end);
        while let Some(release) = schedule.next().filter(|_| !stop.is_set()) {
            if AbsoluteSleep.until(release)? == Waited::Interrupted {
                if stop.is_over(window) {
                    break;
                }
                continue;
            }
            self.begun.store(release, Ordering::Release);
            compute(self.work_ns);
            schedule.serve(monotonic_ns());
        }
        Ok(())
    }
}
