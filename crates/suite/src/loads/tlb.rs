//! Changes of a process's page tables that other CPUs must be told of.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use punctual_sys::affinity::{self, CpuSet};
use punctual_sys::region::{Region, page_size};

use crate::harness::worker::{LoadError, Tally, Worker, end_process};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm};
use crate::registry::{Default, Kind, Param, Value, Values};

const PROTECTED: usize = 0;
const UNMAPPED: usize = 1;
const SHOOTDOWNS: usize = 2;
/// Protections between two unmappings, and between two updates of the counters.
const ROUND: u64 = 16;
/// How often the kernel's count is read.
const PERIOD: Duration = Duration::from_millis(100);

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "tlb",
    summary: "threads of one process that change its page tables on all CPUs",
    help: "Each thread is bound to a CPU, forbids and allows writing to pages of its own (mprotect), \
           and unmaps and maps them, while its siblings run on the other CPUs: those must drop what \
           they know of the pages, on x86 at an interrupt for each change. shootdowns is what the TLB \
           line of /proc/interrupts has grown by, whoever caused them. It stays 0 where there is no \
           such line (arm64 needs no interrupt), where a hypervisor does it, and on one CPU: there \
           the load changes page tables and drops the CPU's own entries, and nothing is sent.",
    main_param: "threads",
    params: &[
        Param {
            name: "threads",
            kind: Kind::Count { low: 1, high: 1024 },
            default: Default::OfMachine("one per CPU"),
            help: "threads of the process",
        },
        Param {
            name: "pages",
            kind: Kind::Count { low: 1, high: 4096 },
            default: Default::Value("4"),
            help: "pages of each thread that change at a time",
        },
    ],
    counters: &["protections", "unmappings", "shootdowns"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::Nothing, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    let threads = values.known_number("threads").unwrap_or(machine.cpus);
    values.set("threads", Value::Number(threads));
    Ok(())
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let bytes = worker.values().small::<usize>("pages") * page_size();
    let tally = worker.tally();
    let cpus: Vec<u32> = affinity::get().map(|cpus| cpus.iter().collect()).unwrap_or_default();
    thread::scope(|scope| {
        for thread in 0..worker.values().small::<usize>("threads") {
            let cpu = cpus.get(thread % cpus.len().max(1)).copied();
            let change = move || {
                let Err(error) = change(tally, bytes, cpu);
                end_process(LoadError::io("a region of memory", &error))
            };
            let spawned = thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, change);
            if let Err(error) = spawned {
                end_process(LoadError::io("thread", &error));
            }
        }
        let mut counted = shootdowns().unwrap_or(0);
        loop {
            thread::sleep(PERIOD);
            let now = shootdowns().unwrap_or(counted);
            tally.add(SHOOTDOWNS, now.saturating_sub(counted));
            counted = now;
        }
    })
}

/// Bound to a CPU: threads that share one have nothing to tell each other. If that is refused, the
/// scheduler spreads them.
fn change(tally: Tally<'_>, bytes: usize, cpu: Option<u32>) -> io::Result<Infallible> {
    let _ = cpu.map(|cpu| affinity::set(&CpuSet::of(cpu)));
    loop {
        let mut region = Region::new(bytes)?;
        for _ in 0..ROUND {
            // Pages that were never there would not be in any TLB.
            region.touch();
            region.protect_and_read()?;
        }
        drop(region);
        tally.add(PROTECTED, ROUND);
        tally.add(UNMAPPED, 1);
    }
}

/// The kernel's count of shootdowns, of all CPUs.
fn shootdowns() -> Option<u64> {
    of_line(&fs::read_to_string("/proc/interrupts").ok()?)
}

fn of_line(interrupts: &str) -> Option<u64> {
    let counts = interrupts.lines().find_map(|line| line.trim_start().strip_prefix("TLB:"))?;
    Some(counts.split_whitespace().map_while(|count| count.parse::<u64>().ok()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_summed_over_the_cpus() {
        let text = "           CPU0       CPU1\n  0:  44  0   IO-APIC    2-edge      timer\n\
                    LOC:   20498530   25336899   Local timer interrupts\n\
                    TLB:    2111746    2128048   TLB shootdowns\n";
        assert_eq!(of_line(text), Some(4_239_794));
        assert_eq!(of_line(&text.replace("TLB:", "RES:")), None);
    }
}
