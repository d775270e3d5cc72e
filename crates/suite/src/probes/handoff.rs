//! `handoff`: how long a token takes from the thread that posts it to the thread that waits.

mod partner;

use std::io;
use std::sync::Arc;

use punctual_core::schema::Tells;
use punctual_core::units::BareNumber;
use punctual_sys::event::Event;
use punctual_sys::token::{
    Between, FutexWord, Handled, MessageQueue, PiCondition, Pipe, PosixSemaphore, SigWait, Token,
};

use super::pair::{Pair, Posts, Waits};
use crate::registry::need::{MESSAGE_QUEUES, PI_FUTEXES, SYSTEM_V};
use crate::registry::probe::{
    By, Closed, Companion, CounterEntry, HelperThread, Pace, Primary, ProbeEntry, ProbeThread,
    Session, Stage, State,
};
use crate::registry::{Choice, Default, Kind, Param, Values};

use partner::Relays;

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "handoff",
    summary: "from the post of a token to the start of the thread that waits for it",
    help: "Pairs of threads. One reads the clock and posts a token; the other, which waits for it, \
reads the clock when it runs again and records now - post, both in user space: the start is just \
before the call that posts, the end just after the one that waits (by=signal: in the handler; \
by=condvar: with the mutex). It then answers through an eventfd, and after a pause the next \
hand-over follows. Both sides of a pair have the same policy, priority and CPUs, unless \
poster-affinity says otherwise. threads=N makes N pairs; with threads=per-cpu both sides of a \
pair share a CPU. Modelled on ptsematest, svsematest, pmqtest, signaltest and sigwaittest of \
rt-tests and on perf bench sched pipe; docs/probes/handoff.md compares them.",
    params: &[
        Param {
            name: "by",
            kind: Kind::Choice(&[
                Choice::of("eventfd", "write to read"),
                Choice::of("pipe", "write to read, as perf bench sched pipe"),
                Choice::of("futex", "FUTEX_WAKE to FUTEX_WAIT"),
                Choice::of("sem", "sem_post to sem_wait, as ptsematest with its mutex"),
                Choice {
                    value: "svsem",
                    help: "semop to semop, as svsematest",
                    needs: &[SYSTEM_V],
                },
                Choice {
                    value: "mqueue",
                    help: "mq_send to mq_receive, as pmqtest",
                    needs: &[MESSAGE_QUEUES],
                },
                Choice::of("signal", "tgkill to a handler, in a thread in sigsuspend"),
                Choice::of("sigwait", "tgkill to sigwait, as signaltest and sigwaittest"),
                Choice {
                    value: "condvar",
                    help: "lock, FUTEX_CMP_REQUEUE_PI and unlock to FUTEX_WAIT_REQUEUE_PI, as \
                           librtpi: glibc and musl no longer requeue",
                    needs: &[PI_FUTEXES],
                },
            ]),
            default: Default::Value("eventfd"),
            help: "what a token is posted and awaited with",
        },
        Param {
            name: "between",
            kind: Kind::Choice(&[
                Choice::of("threads", ""),
                Choice::of("processes", "the posting side is a fork"),
            ]),
            default: Default::Value("threads"),
            help: "what the two sides are",
        },
        Param {
            name: "poster-affinity",
            kind: Kind::Or(&[Choice::of("same", "those of the thread that waits")], &Kind::Cpus),
            default: Default::Value("same"),
            help: "CPUs of the posting sides, one each, in turn",
        },
        Param {
            name: "pause",
            kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: 3_600_000_000_000 },
            default: Default::Value("1ms"),
            help: "from an answer to the next post; with 0us the pair takes the whole CPU",
        },
    ],
    overrides: &[],
    without: &[],
    check: |_| Ok(()),
    needs: &[],
    device: None,
    pace: Pace::BackToBack,
    dithers: |_| false,
    primary: Primary {
        name: "latency",
        meaning: "start of the waiting thread minus the post of its token",
        nouns: ("hand-over", "hand-overs"),
        by: By::Thread,
    },
    series: &[],
    counters: &[CounterEntry {
        name: "unanswered",
        meaning: "tokens posted but not taken before the end",
        tells: Tells::Nothing,
    }],
    state: State::There(open),
};

fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    let between = match values.text("between") {
        "processes" => Between::Processes,
        _ => Between::Threads,
    };
    let pairs = Pairs {
        count: stage.threads,
        between,
        poster_cpus: values.cpus("poster-affinity").map(|cpus| cpus.iter().collect()),
        pause_ns: values.number("pause"),
        break_ns: stage.break_ns,
    };
    match values.text("by") {
        "pipe" => pairs.of(&mut |_| boxed(Pipe::new())),
        "futex" => pairs.of(&mut |_| boxed(FutexWord::new(between))),
        "sem" => pairs.of(&mut |_| boxed(PosixSemaphore::new(between))),
        "svsem" => {
            let all = stage.journal.semaphores(stage.threads);
            let all = all.map_err(|error| error.to_string())?;
            pairs.of(&mut |number| boxed(Ok(all.one(number))))
        }
        "mqueue" => pairs.of(&mut |_| boxed(MessageQueue::new())),
        "signal" => pairs.of(&mut |_| boxed(Handled::new())),
        "sigwait" => pairs.of(&mut |_| boxed(SigWait::new())),
        "condvar" => pairs.of(&mut |_| boxed(PiCondition::new(between))),
        _ => pairs.of(&mut |_| boxed(Event::new())),
    }
}

/// What all pairs have in common.
struct Pairs {
    count: u32,
    between: Between,
    /// CPUs of the posting sides, if they have their own.
    poster_cpus: Option<Vec<u32>>,
    pause_ns: u64,
    break_ns: i64,
}

impl Pairs {
    fn of(
        self,
        make: &mut dyn FnMut(u16) -> io::Result<Box<dyn AnyPair>>,
    ) -> Result<Box<dyn Session>, String> {
        let pairs = (0..self.count).map(|number| make(u16::try_from(number).unwrap_or(u16::MAX)));
        let pairs = pairs.collect::<io::Result<_>>().map_err(|error| error.to_string())?;
        Ok(Box::new(Handoff { common: self, pairs, helpers: Vec::new() }))
    }
}

/// A pair by some primitive.
trait AnyPair {
    /// The side that waits, and the one that posts.
    fn sides(&self, common: &Pairs) -> io::Result<(Box<dyn ProbeThread>, Box<dyn HelperThread>)>;

    /// Tokens that were posted and not taken.
    fn unanswered(&self) -> u64;
}

fn boxed<T: Token + 'static>(token: io::Result<T>) -> io::Result<Box<dyn AnyPair>> {
    Ok(Box::new(Arc::new(Pair::new(token?)?)))
}

impl<T: Token + 'static> AnyPair for Arc<Pair<T>> {
    fn sides(&self, common: &Pairs) -> io::Result<(Box<dyn ProbeThread>, Box<dyn HelperThread>)> {
        let Pairs { between, pause_ns, break_ns, .. } = *common;
        let pair = Arc::clone(self);
        let posts: Box<dyn HelperThread> = match between {
            Between::Threads => Box::new(Posts { pair, pause_ns }),
            Between::Processes => Box::new(Relays::fork(pair, pause_ns)?),
        };
        Ok((Box::new(Waits { pair: Arc::clone(self), break_ns }), posts))
    }

    fn unanswered(&self) -> u64 {
        self.course.unanswered()
    }
}

struct Handoff {
    common: Pairs,
    pairs: Vec<Box<dyn AnyPair>>,
    helpers: Vec<Companion>,
}

impl Session for Handoff {
    fn thread(&mut self, number: u32) -> Result<Box<dyn ProbeThread>, String> {
        let pair = self.pairs.get(number as usize).ok_or("no such pair")?;
        let (waits, helper) = pair.sides(&self.common).map_err(|error| error.to_string())?;
        let what = if self.common.between == Between::Processes { ", a process" } else { "" };
        let cpus = self.common.poster_cpus.as_ref();
        self.helpers.push(Companion {
            of: number,
            below: 0,
            cpu: cpus.map(|cpus| cpus[number as usize % cpus.len()]),
            name: format!("posts to thread {number}{what}"),
            helper,
        });
        Ok(waits)
    }

    fn helpers(&mut self) -> Vec<Companion> {
        std::mem::take(&mut self.helpers)
    }

    fn longest_pause_ns(&self) -> u64 {
        self.common.pause_ns
    }

    fn close(self: Box<Self>) -> Closed {
        let unanswered = self.pairs.iter().map(|pair| pair.unanswered()).sum();
        Closed { counts: vec![unanswered], notes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Recorder;
    use crate::registry::probe::{Stop, Window};
    use punctual_core::aim::Aim;
    use punctual_core::stats::Limits;
    use punctual_sys::clock::monotonic_ns;
    use std::thread::spawn;

    fn session(pause_ns: u64) -> Box<dyn Session> {
        let between = Between::Threads;
        let pairs = Pairs { count: 1, between, poster_cpus: None, pause_ns, break_ns: i64::MAX };
        pairs.of(&mut |_| boxed(Event::new())).unwrap()
    }

    #[test]
    fn the_watchdog_is_told_of_the_pause() {
        assert_eq!(session(60_000_000_000).longest_pause_ns(), 60_000_000_000);
    }

    #[test]
    fn no_token_is_posted_after_the_last_sample() {
        for pause_ns in [0, 1_000] {
            let mut session = session(pause_ns);
            let mut thread = session.thread(0).unwrap();
            let mut helper = session.helpers().remove(0).helper;
            let stop = Arc::new(Stop::default());
            let theirs = Arc::clone(&stop);
            let now = monotonic_ns();
            let windows = (1..50).map(move |n| {
                let end = now + (n << 40);
                Window { first: now, end, samples: 7, aim: Aim::NONE }
            });
            let posts = windows.clone();
            let poster =
                spawn(move || posts.for_each(|window| helper.run(&window, &theirs).unwrap()));
            let mut tracks = [Recorder::new(Limits::NONE)];
            for window in windows {
                thread.run(&window, &mut tracks, &stop).unwrap();
                assert_eq!(tracks[0].samples() % 7, 0);
            }
            poster.join().unwrap();
            assert_eq!(session.close().counts, [0], "unanswered");
        }
    }
}
