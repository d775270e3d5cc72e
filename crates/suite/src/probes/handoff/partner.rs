//! A posting side that is a process, so that each hand-over changes the address space too.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual_core::aim::Aim;
use punctual_sys::event::{Event, Taken};
use punctual_sys::process::{self, Pid};
use punctual_sys::shared_value::SharedValue;
use punctual_sys::token::Token;
use punctual_sys::{affinity, memory, sched, thread};

use crate::probes::pair::Pair;
use crate::registry::probe::{HelperThread, Stop, Window};

/// Memory that the process may still need once its memory is locked.
const ROOM: usize = 64 << 10;

/// A process that was forked, and its window.
struct Partner {
    pid: Pid,
    orders: Orders,
    /// Has a byte for each window that the process has left; ends with it.
    left: PipeReader,
}

struct Orders {
    go: Event,
    window: SharedValue<Dates>,
}

#[derive(Default)]
struct Dates {
    first: AtomicU64,
    end: AtomicU64,
    /// The window that is to end early.
    told: AtomicU64,
}

impl Drop for Partner {
    fn drop(&mut self) {
        // It has nothing to clean up.
        let _ = process::kill(self.pid);
        let _ = process::wait(self.pid);
    }
}

/// The thread that stands for the process: it lends its policy, priority and CPUs.
pub(super) struct Relays<T> {
    pair: Arc<Pair<T>>,
    partner: Partner,
}

/// Posts tokens in a window that ends early once this is its end.
type InWindow<'a> = &'a dyn Fn(&Window, &AtomicU64) -> io::Result<()>;

impl<T: Token> Relays<T> {
    /// Forks the process, which waits for its first window. Call it before threads are started.
    ///
    /// # Errors
    /// Those of pipe2(2), eventfd(2), mmap(2) and fork(2), or that there are threads.
    pub(super) fn fork(pair: Arc<Pair<T>>, pause_ns: u64) -> io::Result<Self> {
        let partner = Partner::fork(&|window, told| {
            let done = pair.hand_over(pause_ns, window, told_to_leave(told, window.end));
            pair.leave(window.end)?;
            done
        })?;
        Ok(Self { pair, partner })
    }
}

/// Whether this window is to end early.
fn told_to_leave(told: &AtomicU64, end: u64) -> impl Fn() -> bool {
    move || told.load(Ordering::Relaxed) == end
}

impl<T: Token> HelperThread for Relays<T> {
    fn run(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let done = self.partner.relay(window, stop);
        if done.is_err() {
            self.pair.leave(window.end)?;
        }
        done
    }
}

impl Partner {
    fn fork(posts: InWindow<'_>) -> io::Result<Self> {
        let (left, leave) = io::pipe()?;
        let window = SharedValue::new(Dates::default())?;
        let orders = Orders { go: Event::new()?, window };
        let pid = process::fork_worker(|| post_for_ever(&orders, leave, posts))?;
        Ok(Self { pid, orders, left })
    }

    /// Gives the process a window, and waits until it has left it.
    fn relay(&mut self, window: &Window, stop: &Stop) -> io::Result<()> {
        let Self { pid, ref orders, ref mut left } = *self;
        let (policy, priority) = sched::get()?;
        sched::set_of(pid, policy, priority)?;
        affinity::set_of(pid, &affinity::get()?)?;
        let dates = &*orders.window;
        dates.first.store(window.first, Ordering::Relaxed);
        dates.end.store(window.end, Ordering::Relaxed);
        Token::post(&orders.go)?;
        loop {
            match left.read(&mut [0]) {
                Ok(0) => return Err(io::Error::other("the process that posts has ended")),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Err(_) if stop.is_over(window) => {
                    dates.told.store(window.end, Ordering::Relaxed);
                    thread::wake_process(pid)?;
                }
                Err(_) => {}
            }
        }
    }
}

/// The life of the process, which its parent ends.
fn post_for_ever(orders: &Orders, mut leave: PipeWriter, posts: InWindow<'_>) -> i32 {
    process::leave_terminal();
    thread::set_name("punctual-posts");
    thread::accept_wakes();
    // Without the right to it, pages are faulted in during the warm-up.
    let _ = memory::lock_all(ROOM);
    let mut windows = || -> io::Result<()> {
        sched::set_timer_slack(1)?;
        loop {
            while orders.go.take()? == Taken::Interrupted {}
            let date = |date: &AtomicU64| date.load(Ordering::Relaxed);
            let dates = &*orders.window;
            let (first, end) = (date(&dates.first), date(&dates.end));
            posts(&Window { first, end, samples: u64::MAX, aim: Aim::NONE }, &dates.told)?;
            leave.write_all(&[1])?;
        }
    };
    windows().map_or(1, |()| 0)
}
