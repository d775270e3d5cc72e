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

    /// Posts tokens until the end of the window, or until it `is_told` to end.
    pub(super) fn hand_over(
        &self,
        pause_ns: u64,
        window: &Window,
        is_told: impl Fn() -> bool,
    ) -> io::Result<()> {
        let (course, answer) = (&*self.course, &self.answer);
        let posted = course.posted.load(Ordering::Relaxed);
        let mut side = Posting { course, answer, window, is_told, next: window.first, posted };
        while side.stamp()? {
            self.token.post()?;
            if !side.is_answered()? {
                break;
            }
            side.next = monotonic_ns().saturating_add(pause_ns);
        }
        Ok(())
    }

    /// Leaves a window as its posting side. Whatever ended it: the partner may wait for a token
    /// that does not come.
    pub(super) fn leave(&self, window_end: u64) -> io::Result<()> {
        self.course.poster_left.store(window_end, Ordering::Release);
        self.token.post()
    }
}

impl Course {
    /// Tokens that were posted and not taken.
    pub(super) fn unanswered(&self) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed);
        self.posted.load(Ordering::Relaxed).saturating_sub(taken)
    }

    /// Whether the posting side has left this window and its last token is taken.
    fn is_over(&self, window: &Window, taken: u64) -> bool {
        self.poster_left.load(Ordering::Acquire) == window.end && !self.is_open(window, taken)
    }

    /// Whether a token of this window is posted and not taken.
    fn is_open(&self, window: &Window, taken: u64) -> bool {
        self.posted_in.load(Ordering::Acquire) == window.end
            && self.posted.load(Ordering::Acquire) != taken
    }
}

/// The side that posts, in a window. What does not depend on the primitive is compiled once: the
/// size of the binary counts.
struct Posting<'a, F> {
    course: &'a Course,
    answer: &'a Event,
    window: &'a Window,
    is_told: F,
    /// When to post next.
    next: u64,
    posted: u64,
}

impl<F: Fn() -> bool> Posting<'_, F> {
    fn is_over(&self) -> bool {
        (self.is_told)() || monotonic_ns() >= self.window.end
    }

    fn is_alone(&self) -> bool {
        self.course.waiter_left.load(Ordering::Relaxed) == self.window.end
    }

    /// Waits until the next token is due and notes the instant; false if there is to be none.
    #[inline(never)]
    fn stamp(&mut self) -> io::Result<bool> {
        while AbsoluteSleep.until(self.next)? == Waited::Interrupted {
            if self.is_over() {
                return Ok(false);
            }
        }
        let now = monotonic_ns();
        if now >= self.window.end || (self.is_told)() || self.is_alone() {
            return Ok(false);
        }
        self.posted += 1;
        self.course.posted_ns.store(now, Ordering::Relaxed);
        // With its instant: a waiter that a signal wakes may see it before the token is there.
        self.course.posted.store(self.posted, Ordering::Release);
        self.course.posted_in.store(self.window.end, Ordering::Release);
        Ok(true)
    }

    /// Waits for the answer; false if there will be none.
    #[inline(never)]
    fn is_answered(&self) -> io::Result<bool> {
        // An answer that was left from the window before is not the one to this token.
        while self.course.taken.load(Ordering::Acquire) != self.posted {
            let interrupted = self.answer.take()? == Taken::Interrupted;
            if self.is_alone() || interrupted && self.is_over() {
                return Ok(false);
            }
        }
        Ok(true)
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
        let (course, answer) = (&*pair.course, &pair.answer);
        let (taken, break_ns) = (course.taken.load(Ordering::Relaxed), self.break_ns);
        let left = window.samples;
        let mut side = Waiting { course, answer, window, recorder, stop, break_ns, taken, left };
        while side.waits_for_more() {
            match side.serve(pair.token.take()?)? {
                Next::Wait => {}
                Next::End => break,
                Next::PostAgain => return pair.token.post(),
            }
        }
        Ok(())
    }
}

/// The side that waits, in a window.
struct Waiting<'a> {
    course: &'a Course,
    answer: &'a Event,
    window: &'a Window,
    recorder: &'a mut Recorder,
    stop: &'a Stop,
    break_ns: i64,
    taken: u64,
    left: u64,
}

/// What the side that waits does after a wait.
enum Next {
    Wait,
    End,
    /// Posts what it has taken, which is of the next window.
    PostAgain,
}

impl Waiting<'_> {
    fn waits_for_more(&self) -> bool {
        self.left > 0 && !self.course.is_over(self.window, self.taken)
    }

    /// Records and answers a token that came at this instant, or what there is after a signal.
    #[inline(never)]
    fn serve(&mut self, at: Option<u64>) -> io::Result<Next> {
        let Self { course, window, stop, .. } = *self;
        let now = match at {
            Some(now) => now,
            None if !stop.is_over(window) => return Ok(Next::Wait),
            None if !course.is_open(window, self.taken) => return Ok(Next::End),
            // A token on its way is late by now; the last sample counts it.
            None => monotonic_ns(),
        };
        let posted_in = course.posted_in.load(Ordering::Acquire);
        if posted_in > window.end {
            // This thread is late and its partner is already in the next window.
            return Ok(Next::PostAgain);
        }
        let posted = course.posted.load(Ordering::Acquire);
        if posted_in != window.end || posted == self.taken {
            return Ok(Next::Wait);
        }
        let latency = now.wrapping_sub(course.posted_ns.load(Ordering::Relaxed)).cast_signed();
        self.recorder.record(now, latency, 0);
        self.taken = posted;
        self.left -= 1;
        if latency > self.break_ns {
            stop.set_broken(now.saturating_add_signed(-latency), latency);
        }
        let last = self.left == 0 || stop.is_set();
        if last {
            // Before the partner sees its token taken and posts another one.
            course.waiter_left.store(window.end, Ordering::Relaxed);
        }
        course.taken.store(posted, Ordering::Release);
        if last {
            return Ok(Next::End);
        }
        Token::post(self.answer)?;
        Ok(Next::Wait)
    }
}

/// Whether it is to end. Named here, or each primitive would have a closure of its own, and code.
fn stopped(stop: &Stop) -> impl Fn() -> bool {
    move || stop.is_set()
}

/// The thread that posts.
pub(super) struct Posts<T> {
    pub(super) pair: Arc<Pair<T>>,
    pub(super) pause_ns: u64,
}

impl<T: Token> HelperThread for Posts<T> {
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let done = self.pair.hand_over(self.pause_ns, window, stopped(stop));
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
