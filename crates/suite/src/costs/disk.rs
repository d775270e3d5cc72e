//! Blocks of a disk: written, rewritten and read through the page cache, which is emptied of them
//! before and forced to the disk after.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::storage::{drop_cached, room, share_cached};
use punctual_sys::words::bytes_of;

use super::area;
use super::bandwidth::megabytes_per_second;
use crate::registry::Values;
use crate::registry::cost::{CostEntry, Direct, Method};

/// Words of a block: 8 KiB.
const BLOCK: usize = (8 << 10) / size_of::<u64>();
/// The share of a file that may be in memory before it is read; more would not be the disk.
const CACHED_MAX: f64 = 0.02;

pub(super) const WRITE: CostEntry = CostEntry {
    name: "disk.write",
    summary: "bandwidth of writing a new file in blocks of 8 KiB until it is on the disk",
    help: "Writes a file from its begin to its end, 8 KiB at a time, and forces it to the disk (fsync), \
           which is in the time: so is the allocation of its blocks. In bonnie++'s terms sequential \
           block output, which takes a file of twice the memory instead. What the disk itself or a \
           hypervisor keeps in memory cannot be left out.",
    meaning: "the file written anew, with fsync",
    open: |values| Ok(Method::Direct(Box::new(BlockFile::new(values, Pass::Write)?))),
    ..BLOCKS
};

pub(super) const REWRITE: CostEntry = CostEntry {
    name: "disk.rewrite",
    summary: "bandwidth of reading, changing and writing back the blocks of a file",
    help: "Drops a file from memory (not timed), then reads each of its blocks of 8 KiB, changes it and \
           writes it to where it was, and forces the file to the disk (fsync), which is in the time. \
           Each byte counts once. In bonnie++'s terms sequential rewrite, which takes a file of twice \
           the memory instead.",
    meaning: "the file read, changed and written back, with fsync",
    open: |values| Ok(Method::Direct(Box::new(BlockFile::new(values, Pass::Rewrite)?))),
    ..BLOCKS
};

pub(super) const READ: CostEntry = CostEntry {
    name: "disk.read",
    summary: "bandwidth of reading a file from the disk in blocks of 8 KiB",
    help: "Drops a file from memory (POSIX_FADV_DONTNEED; not timed), sees that it is gone (mincore), \
           and reads it from its begin to its end, 8 KiB at a time, with the kernel's readahead. In \
           bonnie++'s terms sequential block input, which takes a file of twice the memory instead. \
           What the disk itself or a hypervisor keeps in memory cannot be dropped.",
    meaning: "the file read from the disk",
    open: |values| Ok(Method::Direct(Box::new(BlockFile::new(values, Pass::Read)?))),
    ..BLOCKS
};

/// What they have in common.
const BLOCKS: CostEntry = CostEntry {
    name: "",
    summary: "",
    help: "",
    meaning: "",
    params: &[area::size("64M", "size of the file"), area::DIR],
    needs: &[],
    unit: Unit::MegabytesPerSecond,
    better: Better::More,
    section: CostSection::Disk,
    columns: &[],
    open: |_| Err(io::ErrorKind::Unsupported.into()),
};

/// Refuses a folder whose files are in memory.
pub(super) fn on_disk(folder: &Path) -> io::Result<()> {
    let room = room(folder).map_err(|error| area::in_folder(folder, &error))?;
    if !room.in_memory {
        return Ok(());
    }
    let text = format!("{}: its files are in memory; choose a dir on a disk", folder.display());
    Err(io::Error::new(io::ErrorKind::Unsupported, text))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Write,
    Rewrite,
    Read,
}

/// A repetition is the whole file.
struct BlockFile {
    file: File,
    folder: PathBuf,
    count: u64,
    block: Vec<u64>,
    /// The second word of each block of the file.
    generation: u64,
    work: Pass,
}

impl BlockFile {
    fn new(values: &Values, work: Pass) -> io::Result<Self> {
        let (folder, bytes) = (area::folder(values), values.number("size"));
        let count = bytes.div_ceil(8 * BLOCK as u64);
        on_disk(&folder)?;
        let file = area::file(&folder, count * 8 * BLOCK as u64)?;
        let block = area::words(8 * BLOCK as u64, 0x5a)?;
        let mut blocks = Self { file, folder, count, block, generation: 0, work };
        if work != Pass::Write {
            let written = blocks.write();
            blocks.in_words(written)?;
        }
        Ok(blocks)
    }

    fn offset(number: u64) -> u64 {
        number * 8 * BLOCK as u64
    }

    fn write(&mut self) -> io::Result<()> {
        self.generation += 1;
        for number in 0..self.count {
            (self.block[0], self.block[1]) = (number, self.generation);
            self.file.write_all_at(bytes_of(&mut self.block), Self::offset(number))?;
        }
        self.file.sync_all()
    }

    fn read_block(&mut self, number: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes_of(&mut self.block), Self::offset(number))?;
        if (self.block[0], self.block[1]) == (number, self.generation) {
            return Ok(());
        }
        Err(io::Error::other("what was read is not what was written"))
    }

    fn rewrite(&mut self) -> io::Result<()> {
        for number in 0..self.count {
            self.read_block(number)?;
            self.block[1] += 1;
            self.file.write_all_at(bytes_of(&mut self.block), Self::offset(number))?;
        }
        self.generation += 1;
        self.file.sync_all()
    }

    fn read(&mut self) -> io::Result<()> {
        (0..self.count).try_for_each(|number| self.read_block(number))
    }

    /// What a pass begins with: no file, or one that is on the disk alone.
    fn reset(&mut self) -> io::Result<()> {
        if self.work == Pass::Write {
            self.file.set_len(0)?;
            return self.file.sync_all();
        }
        drop_cached(&self.file);
        let cached = share_cached(&self.file)?;
        if cached <= CACHED_MAX {
            return Ok(());
        }
        let percent = cached * 100.0;
        let text = format!(
            "the file system keeps {percent:.0} % of the file in memory, so the disk is not measured"
        );
        Err(io::Error::new(io::ErrorKind::Unsupported, text))
    }

    fn in_words(&self, done: io::Result<()>) -> io::Result<()> {
        done.map_err(|error| area::in_folder(&self.folder, &error))
    }
}

impl Direct for BlockFile {
    fn measure(&mut self) -> io::Result<Option<f64>> {
        let ready = self.reset();
        self.in_words(ready)?;
        let from = monotonic_ns();
        let done = match self.work {
            Pass::Write => self.write(),
            Pass::Rewrite => self.rewrite(),
            Pass::Read => self.read(),
        };
        let took = monotonic_ns() - from;
        self.in_words(done)?;
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        #[allow(clippy::cast_precision_loss, reason = "a pass is far below 2^53 ns")]
        Ok((took > 0).then(|| megabytes_per_second(count * BLOCK, took as f64)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::values;
    use super::*;

    fn blocks(work: Pass) -> Option<BlockFile> {
        let values = values(&READ, &[("size", "1M")]);
        match on_disk(&area::folder(&values)) {
            Ok(()) => Some(BlockFile::new(&values, work).unwrap()),
            Err(error) => {
                punctual_harness::refused(&error.to_string());
                None
            }
        }
    }

    #[test]
    fn each_does_its_work_on_every_block() {
        for work in [Pass::Write, Pass::Rewrite, Pass::Read] {
            let Some(mut blocks) = blocks(work) else { return };
            let before = blocks.generation;
            for _ in 0..2 {
                assert!(blocks.measure().unwrap().unwrap() > 0.0);
            }
            assert_eq!(blocks.generation - before, if work == Pass::Read { 0 } else { 2 });
            assert_eq!(blocks.file.metadata().unwrap().len(), 1 << 20);
            // With the generation that it has.
            blocks.read().unwrap();
        }
    }

    #[test]
    fn what_is_read_comes_from_the_disk_and_is_checked() {
        let Some(mut blocks) = blocks(Pass::Read) else { return };
        blocks.reset().unwrap();
        assert!(share_cached(&blocks.file).unwrap() <= CACHED_MAX);
        blocks.measure().unwrap();
        assert!(share_cached(&blocks.file).unwrap() > 0.9);
        blocks.file.write_all_at(&[9], BlockFile::offset(5)).unwrap();
        let said = blocks.measure().unwrap_err().to_string();
        assert!(said.ends_with("what was read is not what was written"), "{said}");
    }

    #[test]
    fn memory_is_no_disk() {
        let said = on_disk(Path::new("/dev/shm")).unwrap_err().to_string();
        assert!(said.contains("/dev/shm"), "{said}");
    }
}
