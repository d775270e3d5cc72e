//! Memory that is mapped, touched, protected and unmapped.

use std::convert::Infallible;
use std::fs::{self, File};

use punctual_sys::memory::thread_faults;
use punctual_sys::region::{Region, page_size};

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, SCRATCH_DIR, jobs};
use crate::registry::room::{self, RESERVE, size_of_jobs};
use crate::registry::{Default, Kind, Param, Values};

const PRIVATE: usize = 0;
const SHARED: usize = 1;
const OF_FILE: usize = 2;
const PAGES: usize = 3;
const FAULTS: usize = 4;
/// Default size of a region.
const SIZE: u64 = 4 << 20;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "memory",
    summary: "map, touch, protect and unmap private, shared and file memory",
    help: "Each job maps a region, touches every page, forbids to write to it, reads it, allows it \
           again, and unmaps it: private memory, then shared memory, then a file that is mapped \
           privately, whose pages are copied when they are touched. Follows the name of the scenario \
           \"dynamic memory\" of Mitsubishi's evaluation. private, shared and file count regions that \
           were unmapped, pages those touched; the kernel counts the minor faults.",
    main_param: "jobs",
    params: &[
        jobs("number of processes"),
        Param {
            name: "size",
            kind: Kind::Size { low: 1 << 16 },
            default: Default::OfMachine("4M, less if all regions exceed an eighth of the memory"),
            help: "size of each job's region, and of the file that all jobs map",
        },
        SCRATCH_DIR,
        RESERVE,
    ],
    counters: &["private", "shared", "file", "pages", "minor-faults"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::ScratchFolder, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    let parent = machine.resolve_dir(values)?;
    size_of_jobs(values, machine, SIZE)?;
    let space = room::space(values, &parent)?;
    let size = values.number("size");
    room::claim(values, &parent, space, size)
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let folder = worker.enter_scratch()?;
    let size = worker.values().small("size");
    let failed = |error| LoadError::io(folder.display(), &error);
    room::keep(worker, folder, size as u64)?;
    fs::write("mapped", vec![1; size]).map_err(failed)?;
    for _ in 0..worker.values().number("jobs") {
        worker.fork(|worker| {
            let file = File::open("mapped").map_err(failed)?;
            loop {
                come_and_go(worker, PRIVATE, Region::new(size), size)?;
                come_and_go(worker, SHARED, Region::shared(size), size)?;
                come_and_go(worker, OF_FILE, Region::of_file(&file, size), size)?;
            }
        })?;
    }
    worker.wait_endless()
}

fn come_and_go(
    worker: &Worker<'_>,
    kind: usize,
    region: std::io::Result<Region>,
    size: usize,
) -> Result<(), LoadError> {
    let failed = |error| LoadError::io("a region of memory", &error);
    let before = thread_faults().0;
    let mut region = region.map_err(failed)?;
    region.touch();
    region.protect_and_read().map_err(failed)?;
    drop(region);
    worker.add(kind, 1);
    worker.add(PAGES, size.div_ceil(page_size()) as u64);
    worker.add(FAULTS, thread_faults().0 - before);
    Ok(())
}
