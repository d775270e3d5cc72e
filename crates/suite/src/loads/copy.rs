//! Memory copies through the kernel: `/dev/zero` to `/dev/null`.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};

use super::{Form, LoadEntry, LoadError, Machine, Params, PartForm, Worker};
use crate::registry::{Param, Values};

const BLOCK: usize = 1 << 20;
const BYTES: usize = 0;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "copy",
    summary: "read /dev/zero and write /dev/null in 1 MB blocks",
    help: "Reads /dev/zero and writes /dev/null in blocks of 1 MiB, as dd bs=1M does in the \
           scripts of the papers. It moves memory only: the kernel clears each block and drops it.",
    main_param: "jobs",
    params: &[Param { name: "jobs", value: "N", default: "1", help: "processes that copy" }],
    counters: &["bytes"],
    needs: &[],
    form: Form::Part(PartForm { resolve, scratch: false, run }),
};

fn resolve(values: &Values, _: &Machine) -> Result<Params, String> {
    let jobs = values.number("jobs", 1, 1, 1024)?;
    Ok(Params::from([("jobs".to_owned(), jobs.to_string())]))
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    for _ in 0..worker.number("jobs")? {
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
