//! Timers that expire together: the kernel calls their functions one after the other in one interrupt
//! (`__hrtimer_run_queues` of kernel/time/hrtimer.c), and each waits for those before.

use std::ops::Range;

use super::holder::Holder;
use super::site::{Context, Contexts};
use super::times::Stretch;

/// What the kernel does itself between two functions: locks, and the queue of timers
/// (kernel/time/hrtimer.c, lib/timerqueue.c).
const QUEUE: [&str; 5] =
    ["_raw_spin_", "timerqueue_", "__remove_hrtimer", "enqueue_hrtimer", "rb_"];

/// Whether a timer's function is one that wakes a thread (kernel/time/hrtimer.c, posix-timers.c,
/// fs/timerfd.c).
pub(super) fn wakes(function: &str) -> bool {
    ["hrtimer_wakeup", "posix_timer_fn", "timerfd_tmrproc"].contains(&function)
}

fn is_queue(function: &str) -> bool {
    QUEUE.iter().any(|name| function.starts_with(name))
}

/// Where the function of the thread's own timer is in a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// It is the first thing of the leg.
    First,
    /// It ends the leg.
    Last,
}

/// What a piece is to timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work<'a> {
    /// No part of it.
    No,
    /// What the kernel does between two functions.
    Queue,
    /// A timer's function.
    Function(&'a str),
}

fn work<'a>(contexts: &'a Contexts, stack: &[u32]) -> Work<'a> {
    match contexts.of_stack(stack) {
        Context::Timer(function) if is_queue(function) => Work::Queue,
        Context::Timer(function) => Work::Function(function),
        Context::Interrupt(_) if contexts.calls_timers(stack) => Work::Queue,
        _ => Work::No,
    }
}

/// Gives each piece of a leg that other timers had to the one whose function was called there; what
/// the kernel does between two is of the one before, or of the first.
pub(super) fn name_timers<'a>(
    all: &mut [(Stretch<'a>, Holder<'a>)],
    contexts: &'a Contexts,
    own: Own,
) {
    let works: Vec<Work<'a>> = all.iter().map(|(piece, _)| work(contexts, piece.stack)).collect();
    let own = own_pieces(&works, own);
    let mut begin = 0;
    while begin < works.len() {
        let length = works[begin..].iter().take_while(|work| **work != Work::No).count();
        let run = begin..begin + length;
        name_run(&mut all[run.clone()], &works[run.clone()], &|place| {
            own.contains(&(begin + place))
        });
        begin = run.end + 1;
    }
}

/// The pieces of the function that wakes the thread itself.
fn own_pieces(works: &[Work<'_>], own: Own) -> Range<usize> {
    let is_own = |work: &&Work<'_>| matches!(work, Work::Function(function) if wakes(function));
    match own {
        Own::First => 0..works.iter().take_while(is_own).count(),
        Own::Last => {
            let count = works.iter().rev().take_while(is_own).count();
            works.len() - count..works.len()
        }
    }
}

/// The same of pieces between which nothing else ran.
fn name_run<'a>(
    all: &mut [(Stretch<'a>, Holder<'a>)],
    works: &[Work<'a>],
    is_own: &dyn Fn(usize) -> bool,
) {
    let other = |place: usize| match works[place] {
        Work::Function(function) if !is_own(place) => Some(function),
        _ => None,
    };
    let Some(first) = (0..works.len()).find_map(other) else {
        let of_queue = all.iter_mut().filter(|(_, holder)| matches!(holder, Holder::Timer(_)));
        return of_queue.for_each(|(_, holder)| *holder = Holder::Path);
    };
    let mut last = first;
    for (place, (_, holder)) in all.iter_mut().enumerate() {
        last = other(place).unwrap_or(last);
        *holder = if is_own(place) { Holder::Path } else { Holder::Timer(last) };
    }
}
