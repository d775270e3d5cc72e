//! Working sets larger than the caches.

use std::convert::Infallible;
use std::hint::black_box;

use punctual_sys::code::{LINE, Lines};

use super::caches::Caches;
use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, jobs};
use crate::registry::room::size_of_jobs;
use crate::registry::{Default, Kind, Param, Values};

const DATA: usize = 0;
const INSTRUCTIONS: usize = 1;
/// Lines walked between two updates of the counters, at least.
const WALK: usize = 1 << 14;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "cache",
    summary: "walk working sets larger than each cache level, data and instructions",
    help: "Each job writes to every line (64 bytes) of a working set twice as large as a cache, for \
           each level of data cache in turn, and then calls as many functions, one in each line, as \
           twice the instruction cache has. So a thread that wakes up finds neither its data nor its \
           code, nor the kernel's. The caches are those of /sys/devices/system/cpu/cpu0/cache; where \
           the kernel tells none, 32 KiB and 256 KiB. No instruction lines are counted where the \
           machine lets nobody execute what was written (SELinux).",
    main_param: "jobs",
    params: &[
        jobs("number of processes"),
        Param {
            name: "size",
            kind: Kind::Size { low: 1 << 12 },
            default: Default::OfMachine(
                "twice the largest cache, less if all jobs exceed an eighth of the memory",
            ),
            help: "largest working set of a job",
        },
    ],
    counters: &["data-lines", "instruction-lines"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::Nothing, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    size_of_jobs(values, machine, Caches::read().largest().saturating_mul(2)).map(drop)
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let size = worker.values().small("size");
    let caches = Caches::read();
    let sets = working_sets(&caches.data, size);
    let code = usize::try_from(caches.instructions * 2).unwrap_or(size).min(size);
    for _ in 0..worker.values().number("jobs") {
        worker.fork(|worker| {
            let mut memory = vec![0_u8; size];
            let code = Lines::new(code).ok();
            loop {
                for set in &sets {
                    // A small one is walked as often as makes it worth counting.
                    for _ in 0..(WALK * LINE / set).max(1) {
                        worker.add(DATA, walk(&mut memory[..*set]));
                    }
                }
                if let Some(code) = &code {
                    for _ in 0..8 {
                        worker.add(INSTRUCTIONS, code.call());
                    }
                }
            }
        })?;
    }
    worker.wait_endless()
}

/// Twice each cache, as far as `most` bytes allow; `most` alone if it is smaller than all.
fn working_sets(caches: &[u64], most: usize) -> Vec<usize> {
    let twice = |bytes: &u64| usize::try_from(bytes.saturating_mul(2)).unwrap_or(usize::MAX);
    let mut sets: Vec<usize> = caches.iter().map(|bytes| twice(bytes).min(most)).collect();
    sets.dedup();
    sets
}

/// Writes to every line. Returns how many there are.
fn walk(memory: &mut [u8]) -> u64 {
    let mut lines = 0;
    for byte in memory.iter_mut().step_by(LINE) {
        *byte = byte.wrapping_add(1);
        lines += 1;
    }
    black_box(memory);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cache_is_exceeded_and_every_line_written() {
        let caches = [32 << 10, 1 << 20, 8 << 20];
        assert_eq!(working_sets(&caches, 1 << 30), [64 << 10, 2 << 20, 16 << 20]);
        assert_eq!(working_sets(&caches, 3 << 20), [64 << 10, 2 << 20, 3 << 20]);
        assert_eq!(working_sets(&caches, 4096), [4096]);
        let mut memory = vec![0; 10 * LINE + 1];
        assert_eq!(walk(&mut memory), 11);
        assert_eq!(memory.iter().filter(|byte| **byte == 1).count(), 11);
    }
}
