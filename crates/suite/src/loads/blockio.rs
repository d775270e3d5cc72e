//! Small synchronous reads and writes.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use punctual_core::random::mix;
use punctual_sys::storage::{DIRECT_ALIGNMENT, Synced, drop_cached, open_synced};

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, SCRATCH_DIR};
use crate::registry::room::{self, RESERVE};
use crate::registry::{Default, Kind, Param, Value, Values};

const WRITES: usize = 0;
const READS: usize = 1;
const WRITTEN: usize = 2;
const READ: usize = 3;
const DIRECT: usize = 4;
const NAME: &str = "blocks";

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "blockio",
    summary: "small synchronous reads and writes on a slow path",
    help: "Writes a block at a random place of a file and waits until it is on the disk, alternately \
           with its metadata (O_SYNC) and without (O_DSYNC), then reads another block, which was \
           dropped from memory before. With O_DIRECT where the file system supports it for such \
           blocks; direct-bytes counts that. Follows the name of Mitsubishi's scenario \"CF PIO\": \
           choose a dir on the slowest path that the machine has, a memory card or a loop device. A \
           folder in memory (tmpfs) has no disk to wait for. Works in a scratch folder below dir, \
           which is removed at the end.",
    main_param: "dir",
    params: &[
        SCRATCH_DIR,
        Param {
            name: "size",
            kind: Kind::Size { low: 1 },
            default: Default::Value("4K"),
            help: "size of a block",
        },
        Param {
            name: "file",
            kind: Kind::Size { low: 1 },
            default: Default::OfMachine(
                "16M, less if that exceeds a quarter of the room (in memory: of an eighth of it)",
            ),
            help: "size of the file",
        },
        RESERVE,
    ],
    counters: &["writes", "reads", "bytes-written", "bytes-read", "direct-bytes"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::ScratchFolder, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    const FILE: u64 = 16 << 20;
    let parent = machine.resolve_dir(values)?;
    let (room, reserve) = room::space(values, &parent)?;
    let block = values.number("size");
    let fitting = room::by_default(room, reserve, machine) / 4;
    let file = values.known_number("file").unwrap_or(FILE.min(fitting));
    let file = file.max(block).checked_next_multiple_of(block).unwrap_or(u64::MAX);
    values.set("file", Value::Number(file));
    room::claim(values, &parent, (room, reserve), file)
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let folder = worker.enter_scratch()?;
    let failed = |error| LoadError::io(folder.display(), &error);
    let values = worker.values();
    let (block, file) = (values.number("size"), values.number("file"));
    room::keep(worker, folder, file)?;
    let size: usize = values.small("size");
    let mut memory = vec![0x5a; size + DIRECT_ALIGNMENT];
    let start = memory.as_ptr().align_offset(DIRECT_ALIGNMENT);
    let bytes = &mut memory[start..start + size];
    let blocks = Blocks::create(bytes, file / block).map_err(failed)?;
    let mut random = 0_u64;
    loop {
        random = mix(random.wrapping_add(1));
        blocks.write(random, bytes).map_err(failed)?;
        worker.add(WRITES, 1);
        worker.add(WRITTEN, block);
        blocks.read(mix(random), bytes).map_err(failed)?;
        worker.add(READS, 1);
        worker.add(READ, block);
        worker.add(DIRECT, if blocks.direct { 2 * block } else { 0 });
    }
}

/// The file, opened with O_DSYNC and with O_SYNC.
#[derive(Debug)]
struct Blocks {
    synced: [File; 2],
    direct: bool,
    size: u64,
    count: u64,
}

impl Blocks {
    /// Fills the file first: a hole would be read without the disk. `block` is one block, aligned
    /// as O_DIRECT requires.
    fn create(block: &[u8], count: u64) -> io::Result<Self> {
        let size = block.len() as u64;
        let file = File::create(NAME)?;
        for number in 0..count {
            file.write_all_at(block, number * size)?;
        }
        file.sync_all()?;
        // Whether such blocks can be written directly depends on the disk's own.
        match Self::open(size, count, true) {
            Ok(direct) if direct.write(0, block).is_ok() => Ok(direct),
            _ => Self::open(size, count, false),
        }
    }

    fn open(size: u64, count: u64, direct: bool) -> io::Result<Self> {
        let open = |synced| {
            let mut options = OpenOptions::new();
            open_synced(options.read(true).write(true), Path::new(NAME), synced, direct)
        };
        let synced = [open(Synced::Data)?, open(Synced::All)?];
        Ok(Self { synced, direct, size, count })
    }

    fn write(&self, random: u64, bytes: &[u8]) -> io::Result<()> {
        let file = &self.synced[usize::from(random % 2 == 1)];
        file.write_all_at(bytes, (random / 2) % self.count * self.size)
    }

    fn read(&self, random: u64, bytes: &mut [u8]) -> io::Result<()> {
        if !self.direct {
            drop_cached(&self.synced[0]);
        }
        self.synced[0].read_exact_at(bytes, random % self.count * self.size)
    }
}
