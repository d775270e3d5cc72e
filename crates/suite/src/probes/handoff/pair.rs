//! A pair: one side posts, the other waits, records and answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_sys::clock::monotonic_ns;
use punctual_sys::event::{Event, Taken};
use punctual_sys::shared_value::SharedValue;
use punctual_sys::timer::{AbsoluteSleep, Wait, Waited};
use punctual_sys::token::Token;

use crate::recorder::Recorder;
use crate::registry::probe::{HelperThread, ProbeThread, Stop, Window};

/// What the two sides of a pair share. A token posted in one window may be taken in the
/// next, so each side names its window, identified by its end. Ends only grow, and tokens are
/// numbered across both windows.
#[derive(Debug)]
pub(super) struct Pair<T> {
    pub(super) token: T,
    pub(super) answer: Event,
    pub(super) course: SharedValue<Course>,
}

#[derive(Debug, Default)]
pub(super) struct Course {
    pub(super) posted_ns: AtomicU64,
    /// The window in which the last token was posted.
    pub(super) posted_in: AtomicU64,
    /// The last window that each side has left.
    pub(super) poster_left: AtomicU64,
    waiter_left: AtomicU64,
    /// Numbers of the last token posted and of the last one taken.
    pub(super) posted: AtomicU64,
    taken: AtomicU64,
}

impl<T: Token> Pair<T> {
    pub(super) fn new(token: T) -> io::Result<Self> {
        Ok(Self { token, answer: Event::new()?, course: SharedValue::new(Course::default())? })
    }

    /// Tokens that were posted and not taken.
    pub(super) fn unanswered(&self) -> u64 {
        let taken = self.course.taken.load(Ordering::Relaxed);
        self.course.posted.load(Ordering::Relaxed).saturating_sub(taken)
    }

    /// Whether the posting side has left this window and its last token is taken.
    fn is_over(&self, window: &Window, taken: u64) -> bool {
        self.course.poster_left.load(Ordering::Acquire) == window.end
            && !self.is_open(window, taken)
    }

    /// Whether a token of this window is posted and not taken.
    fn is_open(&self, window: &Window, taken: u64) -> bool {
        self.course.posted_in.load(Ordering::Acquire) == window.end
            && self.course.posted.load(Ordering::Acquire) != taken
    }

    /// Posts tokens until the end of the window, or until it `is_told` to end.
    pub(super) fn hand_over(
        &self,
        pause_ns: u64,
        window: &Window,
        is_told: impl Fn() -> bool,
    ) -> io::Result<()> {
        let course = &*self.course;
        let is_over = || is_told() || monotonic_ns() >= window.end;
        let is_alone = || course.waiter_left.load(Ordering::Relaxed) == window.end;
        let (mut next, mut posted) = (window.first, course.posted.load(Ordering::Relaxed));
        loop {
            while AbsoluteSleep.until(next)? == Waited::Interrupted {
                if is_over() {
                    return Ok(());
                }
            }
            let now = monotonic_ns();
            if now >= window.end || is_told() || is_alone() {
                return Ok(());
            }
            posted += 1;
            course.posted_ns.store(now, Ordering::Relaxed);
            // With its instant: a waiter that a signal wakes may see it before the token is there.
            course.posted.store(posted, Ordering::Release);
            course.posted_in.store(window.end, Ordering::Release);
            self.token.post()?;
            // An answer that was left from the window before is not the one to this token.
            while course.taken.load(Ordering::Acquire) != posted {
                let interrupted = self.answer.take()? == Taken::Interrupted;
                if is_alone() || interrupted && is_over() {
                    return Ok(());
                }
            }
            next = monotonic_ns().saturating_add(pause_ns);
        }
    }

    /// Leaves a window as its posting side. Whatever ended it: the partner may wait for a token
    /// that does not come.
    pub(super) fn leave(&self, window_end: u64) -> io::Result<()> {
        self.course.poster_left.store(window_end, Ordering::Release);
        self.token.post()
    }
}

/// The thread that waits.
pub(super) struct Waits<T> {
    pub(super) pair: Arc<Pair<T>>,
    pub(super) break_ns: i64,
}

impl<T: Token> ProbeThread for Waits<T> {
    fn prepare(&mut self) -> io::Result<()> {
        self.pair.token.bind()
    }

    fn run(&mut self, window: &Window, tracks: &mut [Recorder], stop: &Stop) -> io::Result<()> {
        let done = self.take_tokens(window, &mut tracks[0], stop);
        // However this ended, the partner may be waiting for an answer that would never come.
        self.pair.course.waiter_left.store(window.end, Ordering::Release);
        Token::post(&self.pair.answer)?;
        done
    }
}

impl<T: Token> Waits<T> {
    fn take_tokens(&self, window: &Window, recorder: &mut Recorder, stop: &Stop) -> io::Result<()> {
        let pair = &*self.pair;
        let course = &*pair.course;
        let mut taken = course.taken.load(Ordering::Relaxed);
        let mut left = window.samples;
        while left > 0 && !pair.is_over(window, taken) {
            let now = match pair.token.take()? {
                Some(now) => now,
                None if !stop.is_over(window) => continue,
                None if !pair.is_open(window, taken) => break,
                // A token on its way is late by now; the last sample counts it.
                None => monotonic_ns(),
            };
            let posted_in = course.posted_in.load(Ordering::Acquire);
            if posted_in > window.end {
                // This thread is late and its partner is already in the next window, where this
                // token will be taken.
                return pair.token.post();
            }
            let posted = course.posted.load(Ordering::Acquire);
            if posted_in != window.end || posted == taken {
                continue;
            }
            let latency = now.wrapping_sub(course.posted_ns.load(Ordering::Relaxed)).cast_signed();
            recorder.record(now, latency, 0);
            taken = posted;
            left -= 1;
            if latency > self.break_ns {
                stop.set_broken(now.saturating_add_signed(-latency), latency);
            }
            let last = left == 0 || stop.is_set();
            if last {
                // Before the partner sees its token taken and posts another one.
                course.waiter_left.store(window.end, Ordering::Relaxed);
            }
            course.taken.store(taken, Ordering::Release);
            if last {
                break;
            }
            Token::post(&pair.answer)?;
        }
        Ok(())
    }
}

/// The thread that posts.
pub(super) struct Posts<T> {
    pub(super) pair: Arc<Pair<T>>,
    pub(super) pause_ns: u64,
}

impl<T: Token> HelperThread for Posts<T> {
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let done = self.pair.hand_over(self.pause_ns, window, || stop.is_set());
        self.pair.leave(window.end)?;
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::aim::Aim;
    use punctual_core::stats::Limits;
    use std::sync::mpsc::channel;
    use std::thread::{sleep, spawn};
    use std::time::Duration;

    pub(super) fn window(from_ns: u64, long_ns: u64, samples: u64) -> Window {
        Window { first: from_ns, end: from_ns + long_ns, samples, aim: Aim::NONE }
    }

    fn pair() -> Arc<Pair<Event>> {
        Arc::new(Pair::new(Event::new().unwrap()).unwrap())
    }

    fn waits(pair: &Arc<Pair<Event>>) -> Waits<Event> {
        Waits { pair: Arc::clone(pair), break_ns: i64::MAX }
    }

    /// The state just before the posting thread writes the token.
    fn post(pair: &Pair<Event>, window: &Window) {
        pair.course.posted_ns.store(monotonic_ns(), Ordering::Relaxed);
        pair.course.posted.fetch_add(1, Ordering::Release);
        pair.course.posted_in.store(window.end, Ordering::Release);
    }

    #[test]
    fn a_token_that_a_late_thread_takes_in_the_warm_up_is_one_of_the_measurement() {
        let pair = pair();
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
        pair.course.poster_left.store(warm_up.end, Ordering::Release);
        post(&pair, &measured);
        pair.token.post(2).unwrap();
        assert_eq!(ended.recv_timeout(Duration::from_secs(10)), Ok(1), "it waits for ever");
    }

    #[test]
    fn the_last_token_is_taken_although_the_other_side_has_left() {
        let pair = pair();
        let measured = window(monotonic_ns(), 1, u64::MAX);
        post(&pair, &measured);
        pair.course.poster_left.store(measured.end, Ordering::Release);
        pair.token.post(2).unwrap();
        let mut tracks = [Recorder::new(Limits::NONE)];
        waits(&pair).run(&measured, &mut tracks, &Stop::default()).unwrap();
        assert_eq!(tracks[0].samples(), 1);
    }

    #[test]
    fn a_token_on_its_way_at_the_end_is_counted_as_late_as_it_is() {
        punctual_sys::thread::accept_wakes();
        let pair = pair();
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
}
