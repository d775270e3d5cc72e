//! `handoff`: how long a token takes from the thread that posts it to the one that waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::units::BareNumber;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::event::{Event, Posted, Taken};
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, CounterEntry, HelperThread, Pace, Primary, ProbeEntry, ProbeThread, Session, Stage,
    State, Stop, Window,
};
use crate::registry::{Default, Kind, Param, Values};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "handoff",
    summary: "from the post of a token to the start of the thread that waits for it",
    help: "Pairs of threads: the one that posts reads the clock and posts a token to the one that \
waits, which reads the clock when it runs and records now - post, in user space on both sides. \
It then answers, and the next hand-over follows after a pause. Both threads of a pair have the \
same policy, priority and CPUs; threads=N are N pairs, and with threads=per-cpu both threads of a \
pair share a CPU. Follows ptsematest and its sisters in rt-tests, for one primitive so far: an \
eventfd.",
    params: &[Param {
        name: "pause",
        kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: 3_600_000_000_000 },
        default: Default::Value("1ms"),
        help: "from an answer to the next post; 0us hands over without pause and takes the \
whole CPU",
    }],
    overrides: &[],
    check: |_| Ok(()),
    needs: &[],
    device: None,
    pace: Pace::BackToBack,
    primary: Primary {
        name: "latency",
        meaning: "start of the waiting thread minus the post of its token",
        nouns: ("hand-over", "hand-overs"),
        by: By::Thread,
    },
    series: &[],
    counters: &[CounterEntry {
        name: "unanswered",
        meaning: "tokens that were posted and not taken before the end",
        bad: false,
    }],
    state: State::There(open),
};

#[allow(clippy::unnecessary_wraps, reason = "sessions can fail to open; this one does not")]
fn open(values: &Values, stage: &mut Stage<'_>) -> Result<Box<dyn Session>, String> {
    Ok(Box::new(Handoff {
        pause_ns: values.number("pause"),
        break_ns: stage.break_ns,
        pairs: Vec::new(),
    }))
}

struct Handoff {
    pause_ns: u64,
    break_ns: i64,
    pairs: Vec<Arc<Pair>>,
}

/// What the two threads of a pair share. What was posted in one window may be taken in the
/// next one: the window that each side is in, told by its end, says what is meant.
#[derive(Debug)]
struct Pair {
    token: Event,
    answer: Event,
    posted_ns: AtomicU64,
    /// The window that the last token was posted in.
    posted_in: AtomicU64,
    /// The last window that each side has left.
    poster_left: AtomicU64,
    waiter_left: AtomicU64,
    posted: AtomicU64,
    taken: AtomicU64,
}

impl Pair {
    fn new() -> io::Result<Self> {
        let zero = || AtomicU64::new(0);
        Ok(Self {
            token: Event::new()?,
            answer: Event::new()?,
            posted_ns: zero(),
            posted_in: zero(),
            poster_left: zero(),
            waiter_left: zero(),
            posted: zero(),
            taken: zero(),
        })
    }
}

impl Session for Handoff {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let pair = Pair::new().map_err(|error| format!("eventfd: {error}"))?;
        let pair = Arc::new(pair);
        self.pairs.push(Arc::clone(&pair));
        Ok(Box::new(Waits { pair, break_ns: self.break_ns }))
    }

    fn helpers(&mut self) -> Vec<(u32, String, Box<dyn HelperThread>)> {
        let posts = |(number, pair): (u32, &Arc<Pair>)| {
            let helper = Posts { pair: Arc::clone(pair), pause_ns: self.pause_ns };
            (number, format!("posts to thread {number}"), Box::new(helper) as Box<dyn HelperThread>)
        };
        (0..).zip(&self.pairs).map(posts).collect()
    }

    fn close(self: Box<Self>) -> Closed {
        let open = |pair: &Arc<Pair>| {
            pair.posted.load(Ordering::Relaxed).saturating_sub(pair.taken.load(Ordering::Relaxed))
        };
        Closed { counts: vec![self.pairs.iter().map(open).sum()], notes: Vec::new() }
    }
}

struct Waits {
    pair: Arc<Pair>,
    break_ns: i64,
}

impl ProbeThread for Waits {
    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let pair = &*self.pair;
        let recorder = &mut tracks[0];
        let mut taken = 0;
        pair.taken.store(0, Ordering::Relaxed);
        while taken < window.samples && pair.poster_left.load(Ordering::Relaxed) != window.end {
            if pair.token.take()? == Taken::Interrupted {
                if stop.is_over(window) {
                    break;
                }
                continue;
            }
            let now = monotonic_ns();
            if pair.posted_in.load(Ordering::Acquire) != window.end {
                continue;
            }
            let posted = pair.posted.load(Ordering::Relaxed);
            if posted == taken {
                continue;
            }
            let latency = now.wrapping_sub(pair.posted_ns.load(Ordering::Relaxed)).cast_signed();
            recorder.record(now, latency, 0);
            taken = posted;
            pair.taken.store(taken, Ordering::Relaxed);
            if latency > self.break_ns {
                stop.set_broken();
            }
            if stop.is_set() {
                break;
            }
            wake(&pair.answer)?;
        }
        // The partner may wait for an answer that does not come.
        pair.waiter_left.store(window.end, Ordering::Relaxed);
        wake(&pair.answer)
    }
}

struct Posts {
    pair: Arc<Pair>,
    pause_ns: u64,
}

impl HelperThread for Posts {
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let done = self.hand_over(window, stop);
        // Whatever ended this one: the partner may wait for a token that does not come.
        self.pair.poster_left.store(window.end, Ordering::Relaxed);
        wake(&self.pair.token)?;
        done
    }
}

impl Posts {
    fn hand_over(&self, window: &Window, stop: &Stop) -> io::Result<()> {
        let pair = &*self.pair;
        let (mut next, mut posted) = (window.first, 0);
        pair.posted.store(0, Ordering::Relaxed);
        loop {
            while AbsoluteSleep.until(next)? == Waited::Interrupted {
                if stop.is_over(window) {
                    return Ok(());
                }
            }
            let now = monotonic_ns();
            if now >= window.end || stop.is_set() {
                return Ok(());
            }
            posted += 1;
            pair.posted_ns.store(now, Ordering::Relaxed);
            pair.posted.store(posted, Ordering::Relaxed);
            pair.posted_in.store(window.end, Ordering::Release);
            wake(&pair.token)?;
            // An answer that was left from the window before is not the one to this token.
            while pair.taken.load(Ordering::Relaxed) != posted {
                let interrupted = pair.answer.take()? == Taken::Interrupted;
                let left = pair.waiter_left.load(Ordering::Relaxed) == window.end;
                if left || interrupted && stop.is_over(window) {
                    return Ok(());
                }
            }
            next = monotonic_ns() + self.pause_ns;
        }
    }
}

/// Posts one, whatever interrupts.
fn wake(event: &Event) -> io::Result<()> {
    while event.post(1)? == Posted::Interrupted {}
    Ok(())
}
