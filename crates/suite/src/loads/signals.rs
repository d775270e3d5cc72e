//! Threads that signal and wake each other without pause.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use punctual_sys::futex::{self, Scope};
use punctual_sys::storm;

use crate::harness::worker::{LoadError, Tally, Worker, end_process};
use crate::registry::load::{Form, LoadEntry, Owns, PartForm, jobs, jobs_to_resolve};
use crate::registry::{Default, Kind, Param};

const SIGNALS: usize = 0;
const WAKEUPS: usize = 1;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "signals",
    summary: "signal and futex storms between threads",
    help: "The threads of each job stand in a ring. Each one sends a signal (tgkill) to the next, \
           wakes it with a futex, and waits to be woken itself; the signals interrupt these waits. \
           signals counts runs of the handler: a signal that is sent while one is pending merges \
           with it. wakeups counts rounds of a thread.",
    main_param: "jobs",
    params: &[
        jobs("number of processes"),
        Param {
            name: "threads",
            kind: Kind::Count { low: 2, high: 256 },
            default: Default::Value("4"),
            help: "threads of each process",
        },
    ],
    counters: &["signals", "wakeups"],
    needs: &[],
    form: Form::Part(PartForm {
        resolve: jobs_to_resolve,
        owns: Owns::Nothing,
        steady_from: None,
        run,
    }),
};

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let threads = worker.values().small("threads");
    for _ in 0..worker.values().number("jobs") {
        worker.fork(|worker| storm(worker.tally(), threads))?;
    }
    worker.wait_endless()
}

/// A thread of the ring.
#[derive(Debug, Default)]
struct RingThread {
    thread: AtomicI32,
    /// How often it was woken.
    woken: AtomicU32,
}

fn storm(tally: Tally<'_>, threads: usize) -> ! {
    storm::install();
    let seats: Vec<RingThread> = (0..threads).map(|_| RingThread::default()).collect();
    thread::scope(|scope| {
        for seat in 0..threads {
            let (own, next) = (&seats[seat], &seats[(seat + 1) % threads]);
            let pass_on = move || {
                let Err(error) = pass_on(tally, own, next);
                end_process(LoadError::io("signals", &error))
            };
            let spawned = thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, pass_on);
            if let Err(error) = spawned {
                end_process(LoadError::io("thread", &error));
            }
        }
        let mut counted = 0;
        loop {
            thread::sleep(Duration::from_millis(50));
            let now = storm::handled();
            tally.add(SIGNALS, now - counted);
            counted = now;
        }
    })
}

fn pass_on(tally: Tally<'_>, own: &RingThread, next: &RingThread) -> io::Result<Infallible> {
    own.thread.store(punctual_sys::thread::id(), Ordering::Release);
    // The next may not be there yet: nothing is sent before its number is known.
    while next.thread.load(Ordering::Acquire) == 0 {
        thread::yield_now();
    }
    let mut seen = 0;
    loop {
        storm::send(next.thread.load(Ordering::Acquire))?;
        next.woken.fetch_add(1, Ordering::Release);
        futex::wake_one(&next.woken, Scope::Private)?;
        while own.woken.load(Ordering::Acquire) == seen {
            match futex::wait(&own.woken, Scope::Private, seen) {
                Ok(()) => {}
                Err(error) => match error.kind() {
                    // A signal, or it has been woken in between.
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {}
                    _ => return Err(error),
                },
            }
        }
        seen = seen.wrapping_add(1);
        tally.add(WAKEUPS, 1);
    }
}
