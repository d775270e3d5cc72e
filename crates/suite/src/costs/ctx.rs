//! Context switches: a token in a ring of processes.

use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write};

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::process::{self, Pid, fork_worker};
use punctual_sys::thread;

use super::apart::{Apart, Scale, timed};
use super::area::{self, claim_memory};
use super::calls::named;
use crate::registry::cost::{Column, CostEntry, Method, PEER, peer_cpus};
use crate::registry::{Default, Kind, Param, Values};

pub(super) const CTX: CostEntry = CostEntry {
    name: "ctx",
    summary: "a context switch in a ring of processes (2p/0K to 16p/64K)",
    help: "Processes pass a token of 4 bytes around a ring of pipes. Each sums an array of its own \
before it passes the token on. What one process alone takes to send as many tokens through as many \
pipes, and to sum its array each time, is subtracted. So the value has the switch and, as the arrays \
of all processes together get larger than the caches, what it takes to fill them again. Comparable to \
the context switches in LMbench's summary, but the processes are bound to one CPU (peer=same), so that \
no wake-up of another CPU is among them.",
    meaning: "one hop of the token from a process to the next, less a hop within one process",
    params: &[
        Param {
            name: "procs",
            kind: Kind::Count { low: 2, high: 96 },
            default: Default::Value("2"),
            help: "processes of the ring",
        },
        Param {
            name: "kb",
            kind: Kind::Count { low: 0, high: 1 << 20 },
            default: Default::Value("0"),
            help: "array that each of them sums, KiB",
        },
        Param { help: "CPUs of every second process of the ring", ..PEER },
    ],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::ContextSwitching,
    columns: &[
        Column { name: "2p/0K", params: &[] },
        Column { name: "2p/16K", params: &[("kb", "16")] },
        Column { name: "2p/64K", params: &[("kb", "64")] },
        Column { name: "8p/16K", params: &[("procs", "8"), ("kb", "16")] },
        Column { name: "8p/64K", params: &[("procs", "8"), ("kb", "64")] },
        Column { name: "16p/16K", params: &[("procs", "16"), ("kb", "16")] },
        Column { name: "16p/64K", params: &[("procs", "16"), ("kb", "64")] },
    ],
    open,
};

fn open(values: &Values) -> io::Result<Method> {
    let (procs, kib): (usize, u64) = (values.small("procs"), values.number("kb"));
    let bytes = kib * 1024;
    claim_memory(procs as u64 * bytes)?;
    let others = peer_cpus(values)?;
    #[allow(clippy::cast_precision_loss, reason = "at most 96")]
    timed(None, Scale::Us(procs as f64), move || TokenRing::new(procs, bytes, &others))
}

type Pipe = (PipeReader, PipeWriter);

/// The first process of the ring, and the way to the others.
struct TokenRing {
    /// To the second, from the last.
    to: PipeWriter,
    from: PipeReader,
    /// As many pipes as the ring has, which no other process has.
    own: Vec<Pipe>,
    array: Vec<u64>,
    others: Others,
    passes: u32,
}

/// Processes that are ended and reaped when this is dropped.
#[derive(Default)]
struct Others(Vec<Pid>);

impl Drop for Others {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = process::kill(*pid);
        }
        for pid in &self.0 {
            let _ = process::wait(*pid);
        }
    }
}

impl TokenRing {
    fn new(procs: usize, bytes: u64, cpus: &CpuSet) -> io::Result<Self> {
        let pipe = || named("pipe", io::pipe());
        let mut others = Others::default();
        let (first, to) = pipe()?;
        let (mut from, mut to) = (Some(first), Some(to));
        for number in 1..procs {
            let (next, on) = pipe()?;
            let (mut next, mut on) = (Some(next), Some(on));
            let member = || {
                // In the child alone. With these open, nobody would see that a process has ended.
                drop((to.take(), next.take()));
                pass_on(from.take(), on.take(), bytes)
            };
            let pid = fork_worker(member)?;
            others.0.push(pid);
            if number % 2 == 1 {
                named("sched_setaffinity", affinity::set_of(pid, cpus))?;
            }
            from = next;
        }
        let (Some(from), Some(to)) = (from, to) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let own = (0..procs).map(|_| pipe()).collect::<io::Result<_>>()?;
        let mut ring = Self { to, from, own, array: area::words(bytes, 1)?, others, passes: 0 };
        // All processes are there, and have what they need.
        ring.run(1)?;
        Ok(ring)
    }
}

/// The life of another process of the ring: as long as there is a first one.
fn pass_on(from: Option<PipeReader>, to: Option<PipeWriter>, bytes: u64) -> i32 {
    thread::set_name("punctual-ring");
    let passing = || -> io::Result<()> {
        let (mut from, mut to) = from.zip(to).ok_or(io::ErrorKind::BrokenPipe)?;
        let array = area::words(bytes, 1)?;
        let mut token = [0; 4];
        loop {
            from.read_exact(&mut token)?;
            sum(&array);
            to.write_all(&token)?;
        }
    };
    i32::from(passing().is_err())
}

#[inline(never)]
fn sum(array: &[u64]) {
    black_box(array.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
}

impl Apart for TokenRing {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        let mut token = [0; 4];
        for _ in 0..iterations {
            self.passes = self.passes.wrapping_add(1);
            let passed = self.to.write_all(&self.passes.to_ne_bytes());
            named("a process of the ring has ended", passed)?;
            named("a process of the ring has ended", self.from.read_exact(&mut token))?;
            if u32::from_ne_bytes(token) != self.passes {
                return Err(io::Error::other("another token came back"));
            }
            sum(&self.array);
        }
        Ok(())
    }

    fn empty(&mut self, iterations: u64) -> io::Result<()> {
        let mut token = [0; 4];
        for _ in 0..iterations {
            for (from, to) in &mut self.own {
                self.passes = self.passes.wrapping_add(1);
                to.write_all(&self.passes.to_ne_bytes())?;
                from.read_exact(&mut token)?;
                if u32::from_ne_bytes(token) != self.passes {
                    return Err(io::Error::other("another token came back"));
                }
                sum(&self.array);
            }
        }
        Ok(())
    }

    fn others(&self) -> &[Pid] {
        &self.others.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::apart::tests::{least, leaves_nothing, opened, value};

    #[test]
    fn a_hop_takes_a_switch_and_every_process_sums_its_array() {
        let none = value("ctx", 1_000);
        assert!(none > 0.0, "{none} us");
        // What one process alone takes for all hops, it takes in the ring too. Generous, because
        // the sums of a test build are slow, and other work comes between.
        for what in ["ctx:kb=64", "ctx:procs=16,kb=16"] {
            let Ok(Method::Timed(mut ring)) = opened(what) else { panic!() };
            let (run, empty) = least(&mut *ring, 30);
            assert!(run > 0.6 * empty, "{what}: {run} ns, alone {empty} ns");
        }
    }

    #[test]
    fn the_processes_of_a_ring_end_with_it() {
        leaves_nothing("ctx:procs=9,kb=4", 9);
        leaves_nothing("ctx:peer=any", 2);
    }

    #[test]
    fn a_process_that_is_lost_is_an_error_and_no_hang() {
        for lost in [0, 3, 6] {
            let mut method = opened("ctx:procs=8").unwrap();
            let Method::Timed(operation) = &mut method else { panic!() };
            let ring = operation.peers();
            assert_eq!(ring.len(), 8, "the one that is timed, and seven others");
            process::kill(ring[1 + lost].id).unwrap();
            let error = operation.run(10_000).unwrap_err().to_string();
            assert!(error.starts_with("a process of the ring has ended"), "{error}");
        }
    }

    #[test]
    fn what_has_no_room_is_refused_in_words() {
        let Err(error) = opened("ctx:procs=96,kb=1048576") else { panic!("96 GiB were there") };
        assert!(error.to_string().contains("bytes of memory"), "{error}");
        let Err(error) = opened("ctx:peer=8191") else { panic!("there is no such CPU") };
        assert!(error.to_string().starts_with("sched_setaffinity: "), "{error}");
    }
}
