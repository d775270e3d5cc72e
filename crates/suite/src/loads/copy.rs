//! Memory copies through the kernel: `/dev/zero` to `/dev/null`.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Owns, PartForm, nothing_to_resolve};
use crate::registry::{Default, Kind, Param};

const BLOCK: usize = 1 << 20;
const BYTES: usize = 0;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "copy",
    summary: "read /dev/zero and write /dev/null in 1 MB blocks",
    help: "Reads /dev/zero and writes /dev/null in blocks of 1 MiB, as dd bs=1M does in the \
           scripts of the papers. It moves memory only: the kernel clears each block and drops it.",
    main_param: "jobs",
    params: &[Param {
        name: "jobs",
        kind: Kind::Count { low: 1, high: 1024 },
        default: Default::Value("1"),
        help: "processes that copy",
    }],
    counters: &["bytes"],
    needs: &[],
    form: Form::Part(PartForm {
        resolve: nothing_to_resolve,
        owns: Owns::Nothing,
        steady_from: None,
        run,
    }),
};

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    for _ in 0..worker.values().number("jobs") {
        worker.fork(copy)?;
    }
    worker.wait_endless()
}

fn copy(worker: &Worker<'_>) -> Result<(), LoadError> {
    let zero = "/dev/zero";
    let null = "/dev/null";
    let mut from = File::open(zero).map_err(|error| LoadError::io(zero, &error))?;
    let mut to =
        OpenOptions::new().write(true).open(null).map_err(|error| LoadError::io(null, &error))?;
    let mut block = vec![0; BLOCK];
    loop {
        let length = from.read(&mut block).map_err(|error| LoadError::io(zero, &error))?;
        to.write_all(&block[..length]).map_err(|error| LoadError::io(null, &error))?;
        worker.add(BYTES, length as u64);
    }
}
