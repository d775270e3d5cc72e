//! Page faults on fresh and on swapped-out pages.

use std::convert::Infallible;

use punctual_sys::memory::thread_faults;
use punctual_sys::region::Region;

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, jobs};
use crate::registry::room::size_of_jobs;
use crate::registry::{Default, Kind, Param, Values};

const MINOR: usize = 0;
const MAJOR: usize = 1;
/// Default size of a job's region.
const SIZE: u64 = 64 << 20;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "faults",
    summary: "page faults on fresh and on swapped-out pages",
    help: "Each job maps a region, touches every page of it, asks the kernel to swap it out \
           (MADV_PAGEOUT), touches it again, unmaps it, and starts over. The kernel's own fault \
           counters prove the work: minor-faults needed no disk, major-faults waited for one. \
           Without swap there are no major faults.",
    main_param: "jobs",
    params: &[
        jobs("number of processes"),
        Param {
            name: "size",
            kind: Kind::Size { low: 1 << 16 },
            default: Default::OfMachine("64M, less if all regions exceed an eighth of the memory"),
            help: "size of each job's region",
        },
    ],
    counters: &["minor-faults", "major-faults"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::Nothing, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    size_of_jobs(values, machine, SIZE).map(drop)
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let size = worker.values().small("size");
    for _ in 0..worker.values().number("jobs") {
        worker.fork(|worker| fault(worker, size))?;
    }
    worker.wait_endless()
}

fn fault(worker: &Worker<'_>, size: usize) -> Result<(), LoadError> {
    let failed = |error| LoadError::io("a region of memory", &error);
    let mut region = Region::new(size).map_err(failed)?;
    let mut counted = thread_faults();
    loop {
        region.touch();
        count(worker, &mut counted);
        // Old kernels and small containers refuse this; fresh pages fault anyway.
        let _ = region.page_out();
        region.touch();
        count(worker, &mut counted);
        region.give_back().map_err(failed)?;
    }
}

fn count(worker: &Worker<'_>, counted: &mut (u64, u64)) {
    let now = thread_faults();
    worker.add(MINOR, now.0 - counted.0);
    worker.add(MAJOR, now.1 - counted.1);
    *counted = now;
}
