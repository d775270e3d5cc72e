//! `deadline`: jobs of a `SCHED_DEADLINE` thread: how late they start and end (as cyclicdeadline).

use std::io;
use std::sync::Arc;

use punctual_core::schema::{Role, Tells, Unit};
use punctual_core::units::BareNumber;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::error::text;
use punctual_sys::sched::{self, Refused, Reservation};
use punctual_sys::timer::AbsoluteSleep;

use super::counts::Counts;
use super::serve::Serve;
use crate::compute::compute;
use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, CounterEntry, Pace, Primary, ProbeEntry, ProbeThread, SeriesEntry, Session, Stage,
    State, Stop, Window,
};
use crate::registry::{Choice, Default, Kind, Param, Values};
use crate::schedule::Schedule;

const HOUR_NS: u64 = 3_600_000_000_000;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "deadline",
    summary: "SCHED_DEADLINE: wake-ups, overruns, missed deadlines (as cyclicdeadline)",
    help: "Each thread reserves runtime=TIME of a CPU in every interval, to be had within \
deadline=TIME of the release, and does one job in each: it waits for the release on CLOCK_MONOTONIC, \
reads the clock and records now - release, computes for work=TIME of its own CPU time, and records \
how long after the release that was done (response). A job that takes more CPU time than is reserved \
is an overrun: the kernel stops the thread until its next period. The kernel refuses reservations \
that could not all be kept (sysctl kernel.sched_rt_runtime_us is the share of all of them), and \
threads that may not run on every CPU of their root domain, so the threads cannot be bound. Follows \
cyclicdeadline of rt-tests; sched(7), Documentation/scheduler/sched-deadline.rst.",
    params: &[
        Param {
            name: "runtime",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 1_024, high: HOUR_NS },
            default: Default::Value("200us"),
            help: "CPU time reserved in every interval",
        },
        Param {
            name: "deadline",
            kind: Kind::Or(
                &[Choice::of(IMPLICIT, "the next release")],
                &Kind::Time { bare: BareNumber::Microseconds, low: 1_024, high: HOUR_NS },
            ),
            default: Default::Value(IMPLICIT),
            help: "from a release until the runtime has been had",
        },
        Param {
            name: "work",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: HOUR_NS },
            default: Default::Value("100us"),
            help: "CPU time that a job takes",
        },
    ],
    overrides: &[],
    without: &["policy", "priority"],
    check,
    needs: &[],
    device: None,
    pace: Pace::Periodic,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "start of the job minus its release",
        nouns: ("job", "jobs"),
        by: By::Thread,
    },
    series: &[SeriesEntry {
        name: "response",
        meaning: "end of the job minus its release",
        role: Role::Aside,
        unit: Unit::Ns,
        by: By::Thread,
    }],
    counters: &[
        CounterEntry {
            name: "late",
            meaning: "jobs that ended after their deadline",
            tells: Tells::Nothing,
        },
        CounterEntry {
            name: "overruns",
            meaning: "jobs that took more CPU time than is reserved",
            tells: Tells::Nothing,
        },
    ],
    state: State::There(open),
};

const IMPLICIT: &str = "interval";

fn check(values: &Values) -> Result<(), String> {
    let reserved = reservation(values, values.number("interval"));
    if reserved.deadline_ns > reserved.period_ns {
        return Err(values.wrong("deadline", "needs an interval that is not shorter"));
    }
    if reserved.runtime_ns > reserved.deadline_ns {
        return Err(values.wrong("runtime", "needs a deadline that is not shorter"));
    }
    Ok(())
}

fn reservation(values: &Values, interval_ns: u64) -> Reservation {
    Reservation {
        runtime_ns: values.number("runtime"),
        deadline_ns: values.known_number("deadline").unwrap_or(interval_ns),
        period_ns: interval_ns,
    }
}

#[allow(clippy::unnecessary_wraps, reason = "sessions can fail to open; this one does not")]
fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    Ok(Box::new(Deadlines {
        reserved: reservation(values, stage.interval_ns),
        work_ns: values.number("work"),
        break_ns: stage.break_ns,
        counts: Vec::new(),
    }))
}

struct Deadlines {
    reserved: Reservation,
    work_ns: u64,
    break_ns: i64,
    counts: Vec<Arc<Counts<2>>>,
}

/// The entry's counters.
const LATE: usize = 0;
const OVERRUNS: usize = 1;

impl Session for Deadlines {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let Self { reserved, work_ns, break_ns, .. } = *self;
        let counts = Arc::new(Counts::default());
        self.counts.push(Arc::clone(&counts));
        Ok(Box::new(Jobs { reserved, work_ns, break_ns, counts }))
    }

    fn close(self: Box<Self>) -> Closed {
        let counts = Counts::totals(self.counts.iter().map(|counts| &**counts));
        Closed { counts, notes: Vec::new() }
    }
}

struct Jobs {
    reserved: Reservation,
    work_ns: u64,
    break_ns: i64,
    counts: Arc<Counts<2>>,
}

/// Makes the calling thread `SCHED_DEADLINE`.
///
/// # Errors
/// The kernel's, with what would help.
pub(super) fn reserve(reserved: Reservation) -> io::Result<()> {
    sched::reserve(reserved).map_err(|error| {
        let why = match Refused::of(&error) {
            Some(Refused::NoRoom) => {
                "; take a shorter runtime or fewer threads, or raise \
                     kernel.sched_rt_runtime_us, the share of all reservations"
            }
            Some(Refused::NotAllowed) => {
                "; it takes CAP_SYS_NICE, and a thread that may run on all CPUs of its root \
                     domain: leave out affinity and threads=per-cpu"
            }
            None => "",
        };
        io::Error::other(format!("SCHED_DEADLINE is refused: {}{why}", text(&error)))
    })
}

impl ProbeThread for Jobs {
    fn prepare(&mut self) -> io::Result<()> {
        reserve(self.reserved)
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let [latencies, responses] = tracks else {
            return Err(io::Error::other("two series come from a thread"));
        };
        self.counts.begin();
        let schedule = Schedule::new(window.first, self.reserved.period_ns, window.end);
        let serve = Serve::new(schedule, latencies, window.samples, stop, self.break_ns);
        serve.run(&mut AbsoluteSleep, |release, _| self.job(release, responses)).map(drop)
    }
}

impl Jobs {
    fn job(&self, release: u64, responses: &mut Recorder) {
        let used = compute(self.work_ns);
        let ended = monotonic_ns();
        let response = ended.saturating_sub(release);
        responses.record(ended, response.cast_signed(), 0);
        self.counts.add(LATE, u64::from(response > self.reserved.deadline_ns));
        self.counts.add(OVERRUNS, u64::from(used > self.reserved.runtime_ns));
    }
}
