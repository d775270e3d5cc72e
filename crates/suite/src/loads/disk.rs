//! Big files: sequential writes, syncs and copies, bypassing the page cache if possible.

use std::convert::Infallible;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use punctual_sys::storage::{self, DIRECT_ALIGNMENT};

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, SCRATCH_DIR};
use crate::registry::room::{self, RESERVE};
use crate::registry::{Default, Kind, Param, Value, Values};

const BLOCK: usize = 1 << 20;
const WRITTEN: usize = 0;
const READ: usize = 1;
const SYNCS: usize = 2;
const DIRECT: usize = 3;
/// Default size of the file: more than a disk's internal cache.
const SIZE: u64 = 256 << 20;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "disk",
    summary: "write, sync and copy a big file, with O_DIRECT if possible",
    help: "Writes a big file in blocks of 1 MiB, syncs it, copies it, syncs the copy and deletes \
           both, again and again: Ingo Molnar's big file copy and LRTBF's dd. If the file system \
           supports O_DIRECT, the disk's DMA moves the data, and direct-bytes counts it. Works in \
           a scratch folder below dir, which is removed at the end, and ends rather than use the \
           space in reserve.",
    main_param: "dir",
    params: &[
        SCRATCH_DIR,
        Param {
            name: "size",
            kind: Kind::Size { low: BLOCK as u64 },
            default: Default::OfMachine(
                "256M, less if two such files do not fit (files in memory: into an eighth of it)",
            ),
            help: "size of the file; the copy takes as much again",
        },
        RESERVE,
    ],
    counters: &["bytes-written", "bytes-read", "fsyncs", "direct-bytes"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::ScratchFolder, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    let parent = machine.resolve_dir(values)?;
    let (room, reserve) = room::space(values, &parent)?;
    let (block, fitting) = (BLOCK as u64, fitting(room.free, reserve));
    let size = match values.known_number("size") {
        Some(size) => size.checked_next_multiple_of(block).unwrap_or(u64::MAX),
        None => {
            let most = room::by_default(room, reserve, machine) / 2 / block * block;
            SIZE.min(fitting).min(most).max(block)
        }
    };
    if size > fitting {
        return Err(format!("{}: {}", parent.display(), room::full(room, reserve)));
    }
    values.set("size", Value::Number(size));
    values.set("reserve", Value::Number(reserve));
    Ok(())
}

/// The largest file, in whole blocks, of which there is room for two and the folder with its
/// marker.
fn fitting(free: u64, reserve: u64) -> u64 {
    let block = BLOCK as u64;
    free.saturating_sub(reserve).saturating_sub(block) / 2 / block * block
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let folder = worker.enter_scratch()?;
    let mut block = Block::new();
    loop {
        let done = write_and_copy(worker, &mut block);
        done.map_err(|error| error.within(folder))?;
    }
}

fn write_and_copy(worker: &Worker<'_>, block: &mut Block) -> Result<(), LoadError> {
    let (size, reserve) = (worker.values().number("size"), worker.values().number("reserve"));
    let (folder, original, copy) = (Path::new("."), Path::new("original"), Path::new("copy"));
    // Left by a worker that was killed.
    for path in [original, copy] {
        remove(path)?;
    }
    let room = storage::room(folder).map_err(|error| LoadError::io("statfs", &error))?;
    room::check(room, reserve, 2 * size).map_err(LoadError::Failed)?;
    write_file(worker, original, size, block)?;
    copy_file(worker, original, copy, size, block)
}

fn remove(path: &Path) -> Result<(), LoadError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LoadError::io(path.display(), &error))
        }
        _ => Ok(()),
    }
}

/// A buffer of [`BLOCK`] bytes, aligned as O_DIRECT requires.
struct Block {
    memory: Vec<u8>,
    start: usize,
}

impl Block {
    fn new() -> Self {
        let memory = vec![0xa5; BLOCK + DIRECT_ALIGNMENT];
        let start = memory.as_ptr().align_offset(DIRECT_ALIGNMENT);
        Self { memory, start }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + BLOCK]
    }
}

/// Opens a file with O_DIRECT, or without it if the file system refuses.
fn open(options: &mut OpenOptions, path: &Path) -> Result<(File, bool), LoadError> {
    if let Ok(file) = storage::open_direct(options, path) {
        return Ok((file, true));
    }
    let file = options.custom_flags(0).open(path);
    Ok((file.map_err(|error| LoadError::io(path.display(), &error))?, false))
}

fn create(path: &Path) -> Result<(File, bool), LoadError> {
    open(OpenOptions::new().write(true).create(true), path)
}

fn write_file(
    worker: &Worker<'_>,
    path: &Path,
    size: u64,
    block: &mut Block,
) -> Result<(), LoadError> {
    let failed = |error| LoadError::io(path.display(), &error);
    let (mut file, direct) = create(path)?;
    let mut left = size;
    while left > 0 {
        file.write_all(block.bytes()).map_err(failed)?;
        written(worker, direct);
        left = left.saturating_sub(BLOCK as u64);
    }
    file.sync_all().map_err(failed)?;
    worker.add(SYNCS, 1);
    Ok(())
}

fn copy_file(
    worker: &Worker<'_>,
    from: &Path,
    to: &Path,
    size: u64,
    block: &mut Block,
) -> Result<(), LoadError> {
    let reading = |error| LoadError::io(from.display(), &error);
    let writing = |error| LoadError::io(to.display(), &error);
    let (mut source, direct_read) = open(OpenOptions::new().read(true), from)?;
    let (mut target, direct_write) = create(to)?;
    let mut left = size;
    while left > 0 {
        source.read_exact(block.bytes()).map_err(reading)?;
        worker.add(READ, BLOCK as u64);
        if direct_read {
            worker.add(DIRECT, BLOCK as u64);
        }
        target.write_all(block.bytes()).map_err(writing)?;
        written(worker, direct_write);
        left = left.saturating_sub(BLOCK as u64);
    }
    target.sync_all().map_err(writing)?;
    worker.add(SYNCS, 1);
    Ok(())
}

fn written(worker: &Worker<'_>, direct: bool) {
    worker.add(WRITTEN, BLOCK as u64);
    if direct {
        worker.add(DIRECT, BLOCK as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_file_system_has_room_for_the_load_too() {
        // Not 28 MiB: the folder takes some of what is free.
        assert_eq!(fitting(112 << 20, 56 << 20), 27 << 20);
    }
}
