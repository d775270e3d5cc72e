//! Futexes: from the wake of a thread to its return.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::thread::{Builder, JoinHandle};

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::futex::{Scope, wait, wake_one};
use punctual_sys::thread;

use super::calls::named;
use crate::registry::cost::{Column, CostEntry, Method, Operation, PEER, Peer, peer_cpus};
use crate::registry::{Param, Values};

const STACK_BYTES: usize = 64 << 10;

pub(super) const FUTEX: CostEntry = CostEntry {
    name: "lat.futex",
    summary: "from FUTEX_WAKE in a thread to the return of FUTEX_WAIT in another",
    help: "Two threads of one process wake each other in turn, each by a futex of its own (private, \
without priority inheritance), and wait. The value is half of a round: one wake, the switch to the \
thread that waited, and what that takes to wait again. On different CPUs (peer=other) the other may \
not sleep yet when it is woken, and finds the word changed. LMbench has nothing comparable; perf bench \
futex wake times how threads are woken, not that they run.",
    meaning: "half of a round of two wakes and two waits, the empty loop subtracted",
    params: &[Param { help: "CPUs of the other thread", ..PEER }],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Others,
    columns: &[Column { name: "futex", params: &[] }],
    open,
};

fn open(values: &Values) -> io::Result<Method> {
    Ok(Method::Timed(Box::new(PingPong::new(&peer_cpus(values)?)?)))
}

/// Words on cache lines of their own: each is written by one side.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU32);

#[derive(Default)]
struct Table {
    ping: Word,
    pong: Word,
    /// The other thread's ID once it runs; its errno below 0 if it cannot.
    ready: AtomicI32,
}

/// What ping says to end the other thread.
const LEAVE: u32 = u32::MAX;

struct PingPong {
    table: Arc<Table>,
    turn: u32,
    other: Option<JoinHandle<()>>,
    id: i32,
}

impl PingPong {
    fn new(cpus: &CpuSet) -> io::Result<Self> {
        let table = Arc::new(Table::default());
        let (theirs, cpus) = (Arc::clone(&table), cpus.clone());
        let start = Builder::new().name("cost-futex".to_owned()).stack_size(STACK_BYTES);
        let other = start.spawn(move || answer(&theirs, &cpus));
        let other = Some(named("starting a thread", other)?);
        let mut made = Self { table, turn: 0, other, id: 0 };
        let done = made.run(1);
        let ready = made.table.ready.load(Ordering::Acquire);
        if ready < 0 {
            return named("sched_setaffinity", Err(io::Error::from_raw_os_error(-ready)));
        }
        made.id = ready;
        done.map(|()| made)
    }
}

/// The other side: waits, and wakes, until it is told to leave.
fn answer(table: &Table, cpus: &CpuSet) {
    let bound = affinity::set(cpus);
    let errno = bound.err().and_then(|error| error.raw_os_error());
    table.ready.store(errno.map_or_else(thread::id, |errno| -errno), Ordering::Release);
    let mut turn = 0;
    loop {
        turn = until_changed(&table.ping, turn);
        if turn == LEAVE {
            return;
        }
        give(&table.pong, turn);
    }
}

#[inline]
fn until_changed(word: &Word, from: u32) -> u32 {
    loop {
        let now = word.0.load(Ordering::Acquire);
        if now != from {
            return now;
        }
        // Changed by now, or a signal: the word says.
        let _ = wait(&word.0, Scope::Private, from);
    }
}

#[inline]
fn give(word: &Word, turn: u32) {
    word.0.store(turn, Ordering::Release);
    let _ = wake_one(&word.0, Scope::Private);
}

impl Operation for PingPong {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            let before = self.turn;
            self.turn = (before + 1) % LEAVE;
            give(&self.table.ping, self.turn);
            if until_changed(&self.table.pong, before) != self.turn {
                return Err(io::Error::other("another turn was answered"));
            }
        }
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        ns / 2.0 / 1e3
    }

    fn peers(&self) -> Vec<Peer> {
        vec![Peer { name: "is woken".to_owned(), id: self.id }]
    }
}

impl Drop for PingPong {
    fn drop(&mut self) {
        give(&self.table.ping, LEAVE);
        let _ = self.other.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::apart::tests::{opened, value};

    #[test]
    fn a_wake_takes_more_than_a_system_call() {
        let (woken, call) = (value("lat.futex", 2_000), value("lat.io", 2_000));
        assert!(woken > call, "{woken} us, a call {call} us");
    }

    #[test]
    fn the_other_thread_is_there_and_ends() {
        let Ok(Method::Timed(pair)) = opened("lat.futex:peer=any") else { panic!() };
        let task = format!("/proc/self/task/{}", pair.peers()[0].id);
        let name = std::fs::read_to_string(format!("{task}/comm")).unwrap();
        assert_eq!(name, "cost-futex\n");
        drop(pair);
        assert!(!std::path::Path::new(&task).exists());
        let Err(error) = opened("lat.futex:peer=8191") else { panic!("there is no such CPU") };
        assert!(error.to_string().starts_with("sched_setaffinity: "), "{error}");
    }

    #[test]
    fn turns_begin_again_after_the_last() {
        let mut pair = PingPong::new(&affinity::get().unwrap()).unwrap();
        pair.run(3).unwrap();
        // As after 2^32 of them.
        pair.turn = LEAVE - 2;
        give(&pair.table.ping, pair.turn);
        while pair.table.pong.0.load(Ordering::Acquire) != pair.turn {
            std::thread::yield_now();
        }
        pair.run(5).unwrap();
        assert_eq!(pair.turn, 3);
    }
}
