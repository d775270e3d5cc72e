//! Streams through memory.

use std::convert::Infallible;
use std::hint::black_box;

use super::caches::Caches;
use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, jobs};
use crate::registry::room::size_of_jobs;
use crate::registry::{Default, Kind, Param, Values};

const READ: usize = 0;
const WRITTEN: usize = 1;
/// Bytes that are copied between two updates of the counters.
const BLOCK: usize = 1 << 20;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "membw",
    summary: "stream through memory on every CPU",
    help: "Each job copies one half of its memory to the other half, then back, without pause, as \
           OSADL's memory load and STREAM's copy do. What does not fit into the caches goes through \
           the memory bus, which all CPUs share. The bytes are those that the program reads and \
           writes; the bus may move more (a line is often read before it is written) or less (if \
           the memory of all jobs fits into a cache).",
    main_param: "jobs",
    params: &[
        jobs("processes that copy"),
        Param {
            name: "size",
            kind: Kind::Size { low: 1 << 16 },
            default: Default::OfMachine(
                "four times the largest cache, less if all exceed an eighth of the memory",
            ),
            help: "memory of each job",
        },
    ],
    counters: &["bytes-read", "bytes-written"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::Nothing, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    size_of_jobs(values, machine, Caches::read().largest().saturating_mul(4)).map(drop)
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let size = worker.values().small("size");
    for _ in 0..worker.values().number("jobs") {
        worker.fork(|worker| {
            let mut memory = vec![1_u8; size];
            let (mut from, mut to) = memory.split_at_mut(size / 2);
            loop {
                copy(from, to, |bytes| {
                    worker.add(READ, bytes);
                    worker.add(WRITTEN, bytes);
                });
                std::mem::swap(&mut from, &mut to);
            }
        })?;
    }
    worker.wait_endless()
}

/// Copies what both have room for, and tells the bytes of each block.
fn copy(from: &[u8], to: &mut [u8], mut copied: impl FnMut(u64)) {
    for (from, to) in from.chunks(BLOCK).zip(to.chunks_mut(BLOCK)) {
        let length = from.len().min(to.len());
        to[..length].copy_from_slice(&black_box(from)[..length]);
        black_box(&*to);
        copied(length as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_that_were_copied() {
        for (from, to, copied) in [(3 << 20, 3 << 20, 3 << 20), (5_000, 5_001, 5_000)] {
            let (source, mut target) = (vec![7; from], vec![0; to]);
            let mut bytes = 0;
            copy(&source, &mut target, |more| bytes += more);
            assert_eq!(bytes, copied);
            assert_eq!(target.iter().filter(|byte| **byte == 7).count() as u64, copied);
        }
    }
}
