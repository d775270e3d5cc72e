//! `handoff`: how long a token takes from the thread that posts it to the thread that waits.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::schema::Tells;
use punctual_core::units::BareNumber;
use punctual_sys::clock::monotonic_ns;
use punctual_sys::event::{Event, Posted, Taken};
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};

use crate::recorder::Recorder;
use crate::registry::probe::{
    By, Closed, Companion, CounterEntry, HelperThread, Pace, Primary, ProbeEntry, ProbeThread,
    Session, Stage, State, Stop, Window,
};
use crate::registry::{Default, Kind, Param, Values};

pub(super) const ENTRY: ProbeEntry = ProbeEntry {
    name: "handoff",
    summary: "from the post of a token to the start of the thread that waits for it",
    help: "Pairs of threads. One reads the clock and posts a token through an eventfd; the other, \
which waits for it, reads the clock when it runs and records now - post, both in user space. It \
then answers, and after a pause the next hand-over follows. Both threads of a pair have the same \
policy, priority and CPUs. threads=N makes N pairs; with threads=per-cpu both threads of a pair \
share a CPU. Modelled on ptsematest and its siblings in rt-tests; eventfd is the only primitive \
so far.",
    params: &[Param {
        name: "pause",
        kind: Kind::Time { bare: BareNumber::Microseconds, low: 0, high: 3_600_000_000_000 },
        default: Default::Value("1ms"),
        help: "from an answer to the next post; with 0us the pair takes the whole CPU",
    }],
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

/// What the two threads of a pair share. A token posted in one window may be taken in the
/// next, so each side names its window, identified by its end. Ends only grow, and tokens are
/// numbered across both windows.
#[derive(Debug)]
struct Pair {
    token: Event,
    answer: Event,
    posted_ns: AtomicU64,
    /// The window in which the last token was posted.
    posted_in: AtomicU64,
    /// The last window that each side has left.
    poster_left: AtomicU64,
    waiter_left: AtomicU64,
    /// Numbers of the last token posted and of the last one taken.
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

    /// Whether the posting thread has left this window and its last token is taken.
    fn is_over(&self, window: &Window, taken: u64) -> bool {
        self.poster_left.load(Ordering::Acquire) == window.end && !self.is_open(window, taken)
    }

    /// Whether a token of this window is posted and not taken.
    fn is_open(&self, window: &Window, taken: u64) -> bool {
        self.posted_in.load(Ordering::Acquire) == window.end
            && self.posted.load(Ordering::Acquire) != taken
    }
}

impl Session for Handoff {
    fn thread(&mut self, _: u32) -> Result<Box<dyn ProbeThread>, String> {
        let pair = Pair::new().map_err(|error| format!("eventfd: {error}"))?;
        let pair = Arc::new(pair);
        self.pairs.push(Arc::clone(&pair));
        Ok(Box::new(Waits { pair, break_ns: self.break_ns }))
    }

    fn helpers(&mut self) -> Vec<Companion> {
        let posts = |(of, pair): (u32, &Arc<Pair>)| {
            let helper = Box::new(Posts { pair: Arc::clone(pair), pause_ns: self.pause_ns });
            Companion { of, below: 0, name: format!("posts to thread {of}"), helper }
        };
        (0..).zip(&self.pairs).map(posts).collect()
    }

    fn longest_pause_ns(&self) -> u64 {
        self.pause_ns
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
        let done = self.take_tokens(window, &mut tracks[0], stop);
        // However this ended, the partner may be waiting for an answer that would never come.
        self.pair.waiter_left.store(window.end, Ordering::Release);
        wake(&self.pair.answer)?;
        done
    }
}

impl Waits {
    fn take_tokens(&self, window: &Window, recorder: &mut Recorder, stop: &Stop) -> io::Result<()> {
        let pair = &*self.pair;
        let mut taken = pair.taken.load(Ordering::Relaxed);
        let mut left = window.samples;
        while left > 0 && !pair.is_over(window, taken) {
            if pair.token.take()? == Taken::Interrupted {
                if !stop.is_over(window) {
                    continue;
                }
                if !pair.is_open(window, taken) {
                    break;
                }
                // A token on its way is late by now; the last sample counts it.
            }
            let now = monotonic_ns();
            let posted_in = pair.posted_in.load(Ordering::Acquire);
            if posted_in > window.end {
                // This thread is late and its partner is already in the next window, where this
                // token will be taken.
                return wake(&pair.token);
            }
            let posted = pair.posted.load(Ordering::Acquire);
            if posted_in != window.end || posted == taken {
                continue;
            }
            let latency = now.wrapping_sub(pair.posted_ns.load(Ordering::Relaxed)).cast_signed();
            recorder.record(now, latency, 0);
            taken = posted;
            left -= 1;
            if latency > self.break_ns {
                stop.set_broken(now.saturating_add_signed(-latency), latency);
            }
            let last = left == 0 || stop.is_set();
            if last {
                // Before the partner sees its token taken and posts another one.
                pair.waiter_left.store(window.end, Ordering::Relaxed);
            }
            pair.taken.store(taken, Ordering::Release);
            if last {
                break;
            }
            wake(&pair.answer)?;
        }
        Ok(())
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
        self.pair.poster_left.store(window.end, Ordering::Release);
        wake(&self.pair.token)?;
        done
    }
}

impl Posts {
    fn hand_over(&self, window: &Window, stop: &Stop) -> io::Result<()> {
        let pair = &*self.pair;
        let is_alone = || pair.waiter_left.load(Ordering::Relaxed) == window.end;
        let (mut next, mut posted) = (window.first, pair.posted.load(Ordering::Relaxed));
        loop {
            while AbsoluteSleep.until(next)? == Waited::Interrupted {
                if stop.is_over(window) {
                    return Ok(());
                }
            }
            let now = monotonic_ns();
            if now >= window.end || stop.is_set() || is_alone() {
                return Ok(());
            }
            posted += 1;
            pair.posted_ns.store(now, Ordering::Relaxed);
            // With its instant: a waiter that a signal wakes may see it before the token is there.
            pair.posted.store(posted, Ordering::Release);
            pair.posted_in.store(window.end, Ordering::Release);
            wake(&pair.token)?;
            // An answer that was left from the window before is not the one to this token.
            while pair.taken.load(Ordering::Acquire) != posted {
                let interrupted = pair.answer.take()? == Taken::Interrupted;
                if is_alone() || interrupted && stop.is_over(window) {
                    return Ok(());
                }
            }
            next = monotonic_ns().saturating_add(self.pause_ns);
        }
    }
}

/// Posts one, retrying if a signal interrupts it.
fn wake(event: &Event) -> io::Result<()> {
    while event.post(1)? == Posted::Interrupted {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::aim::Aim;
    use punctual_core::stats::Limits;
    use std::sync::mpsc::channel;
    use std::thread::{sleep, spawn};
    use std::time::Duration;

    fn window(from_ns: u64, long_ns: u64, samples: u64) -> Window {
        Window { first: from_ns, end: from_ns + long_ns, samples, aim: Aim::NONE }
    }

    fn waits(pair: &Arc<Pair>) -> Waits {
        Waits { pair: Arc::clone(pair), break_ns: i64::MAX }
    }

    /// The state just before the posting thread writes the token.
    fn post(pair: &Pair, window: &Window) {
        pair.posted_ns.store(monotonic_ns(), Ordering::Relaxed);
        pair.posted.fetch_add(1, Ordering::Release);
        pair.posted_in.store(window.end, Ordering::Release);
    }

    #[test]
    fn a_token_that_a_late_thread_takes_in_the_warm_up_is_one_of_the_measurement() {
        let pair = Arc::new(Pair::new().unwrap());
        let now = monotonic_ns();
        let (warm_up, measured) = (window(now, 1, u64::MAX), window(now + 2, 1 << 40, 1));
        let (sender, ended) = channel();
        let mut waits = waits(&pair);
        spawn(move || {
            let mut tracks = [Recorder::new(Limits::NONE)];
            waits.run(&warm_up, &mut tracks, &Stop::default()).unwrap();
            tracks[0].begin(now);
            waits.run(&measured, &mut tracks, &Stop::default()).unwrap();
            sender.send(tracks[0].samples()).unwrap();
        });
        sleep(Duration::from_millis(20));
        // The thread did not run between the end of the warm-up and the first token.
        pair.poster_left.store(warm_up.end, Ordering::Release);
        post(&pair, &measured);
        pair.token.post(2).unwrap();
        assert_eq!(ended.recv_timeout(Duration::from_secs(10)), Ok(1), "it waits for ever");
    }

    #[test]
    fn the_last_token_is_taken_although_the_other_side_has_left() {
        let pair = Arc::new(Pair::new().unwrap());
        let measured = window(monotonic_ns(), 1, u64::MAX);
        post(&pair, &measured);
        pair.poster_left.store(measured.end, Ordering::Release);
        pair.token.post(2).unwrap();
        let mut tracks = [Recorder::new(Limits::NONE)];
        waits(&pair).run(&measured, &mut tracks, &Stop::default()).unwrap();
        assert_eq!(tracks[0].samples(), 1);
    }

    #[test]
    fn a_token_on_its_way_at_the_end_is_counted_as_late_as_it_is() {
        punctual_sys::thread::accept_wakes();
        let pair = Arc::new(Pair::new().unwrap());
        let measured = window(monotonic_ns(), 1 << 40, u64::MAX);
        // The poster has lost the CPU between its clock and its write.
        post(&pair, &measured);
        let (mut waits, stop) = (waits(&pair), Arc::new(Stop::default()));
        let theirs = Arc::clone(&stop);
        let thread = spawn(move || {
            let mut tracks = [Recorder::new(Limits::NONE)];
            tracks[0].begin(measured.first);
            waits.run(&measured, &mut tracks, &theirs).unwrap();
            let [track] = tracks;
            track.finish().moments
        });
        sleep(Duration::from_millis(50));
        stop.set();
        while !thread.is_finished() {
            punctual_sys::thread::wake(&thread);
            sleep(Duration::from_millis(1));
        }
        let found = thread.join().unwrap();
        assert!(found.count == 1 && found.max >= 50_000_000, "{found:?}");
    }

    #[test]
    fn the_watchdog_is_told_of_the_pause() {
        let session = Handoff { pause_ns: 60_000_000_000, break_ns: i64::MAX, pairs: Vec::new() };
        assert_eq!(session.longest_pause_ns(), 60_000_000_000);
    }

    #[test]
    fn no_token_is_posted_after_the_last_sample() {
        for pause_ns in [0, 1_000] {
            let mut session = Handoff { pause_ns, break_ns: i64::MAX, pairs: Vec::new() };
            let mut thread = session.thread(0).unwrap();
            let mut helper = session.helpers().remove(0).helper;
            let stop = Arc::new(Stop::default());
            let theirs = Arc::clone(&stop);
            let now = monotonic_ns();
            let windows = (1..50).map(move |n| window(now, n << 40, 7));
            let posts = windows.clone();
            let poster =
                spawn(move || posts.for_each(|window| helper.run(&window, &theirs).unwrap()));
            let mut tracks = [Recorder::new(Limits::NONE)];
            for window in windows {
                thread.run(&window, &mut tracks, &stop).unwrap();
                assert_eq!(tracks[0].samples() % 7, 0);
            }
            poster.join().unwrap();
            assert_eq!(Box::new(session).close().counts, [0], "unanswered");
        }
    }
}
