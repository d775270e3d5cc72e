//! Bandwidths of a file that is in the page cache: read, and mapped.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Seek, Write};

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::storage::Mapped;
use punctual_sys::words;

use super::area;
use super::bandwidth::megabytes_per_second;
use crate::registry::Values;
use crate::registry::cost::{Column, CostEntry, Method, Operation};

/// Words that are read at a time: 64 KiB.
const BLOCK: usize = (64 << 10) / size_of::<u64>();

pub(super) const FILE: CostEntry = CostEntry {
    name: "bw.file",
    summary: "bandwidth of reading a cached file, 64 KiB at a time, and adding it up",
    help: "Reads a file that is in the page cache from its begin to its end with read(2), 64 KiB at \
           a time, and adds up the words of each block (8 bytes each, as bw.mem op=read does). Comparable \
           to File reread in LMbench's summary. The file has no name and is gone when this ends.",
    meaning: "one reading of the file",
    columns: &[Column { name: "bw file reread", params: &[] }],
    open: |values| {
        let (file, count, sum) = cached(values)?;
        let block = area::words(BLOCK as u64 * 8, 0)?;
        Ok(Method::Timed(Box::new(Reread { file, count, sum, block })))
    },
    ..OF_FILE
};

pub(super) const MAPPED: CostEntry = CostEntry {
    name: "bw.mmap",
    summary: "bandwidth of adding up a mapped file whose pages are all there",
    help: "Maps a file that is in the page cache once and adds up its words, as bw.mem op=read does \
           with memory. All pages are mapped before, so no faults are in it. Comparable to Mmap \
           reread in LMbench's summary. The file has no name and is gone when this ends.",
    meaning: "one pass over the mapping",
    columns: &[Column { name: "bw mmap reread", params: &[] }],
    open: |values| {
        let (file, count, sum) = cached(values)?;
        let map = Mapped::new(&file, count * 8)?;
        // Every page is mapped before any pass is timed.
        check(map.sum_words(), sum)?;
        Ok(Method::Timed(Box::new(Summed { map, count, sum })))
    },
    ..OF_FILE
};

/// What they have in common.
const OF_FILE: CostEntry = CostEntry {
    name: "",
    summary: "",
    help: "",
    meaning: "",
    params: &[area::size("8M", "size of the file"), area::DIR],
    needs: &[],
    unit: Unit::MegabytesPerSecond,
    better: Better::More,
    section: CostSection::Bandwidths,
    columns: &[],
    open: |_| Err(io::ErrorKind::Unsupported.into()),
};

/// A file of whole words in the page cache, how many, and their sum.
fn cached(values: &Values) -> io::Result<(File, usize, u64)> {
    let (folder, bytes) = (area::folder(values), values.number("size"));
    area::claim_memory(bytes)?;
    let mut file = area::file(&folder, bytes)?;
    let count = usize::try_from(bytes / 8).map_err(io::Error::other)?;
    let (mut left, mut sum) = (count, 0_u64);
    let mut block: Vec<u64> = (1..=BLOCK as u64).collect();
    while left > 0 {
        let part = &mut block[..left.min(BLOCK)];
        sum = sum.wrapping_add(words::sum(part));
        left -= part.len();
        let mut pieces = words::bytes_of(part).chunks(area::WRITTEN_BYTES);
        let written = pieces.try_for_each(|piece| file.write_all(piece));
        written.map_err(|error| area::in_folder(&folder, &error))?;
    }
    Ok((file, count, sum))
}

fn check(found: u64, expected: u64) -> io::Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(io::Error::other("what was read is not what was written"))
}

struct Reread {
    file: File,
    count: usize,
    sum: u64,
    block: Vec<u64>,
}

impl Operation for Reread {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            self.file.rewind()?;
            let (mut left, mut sum) = (self.count, 0_u64);
            while left > 0 {
                let part = left.min(BLOCK);
                let block = &mut self.block[..part];
                self.file.read_exact(words::bytes_of(block))?;
                sum = sum.wrapping_add(words::sum(block));
                left -= part;
            }
            check(sum, self.sum)?;
        }
        Ok(())
    }

    fn empty(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        megabytes_per_second(self.count, ns)
    }
}

struct Summed {
    map: Mapped,
    count: usize,
    sum: u64,
}

impl Operation for Summed {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            check(black_box(&self.map).sum_words(), self.sum)?;
        }
        Ok(())
    }

    fn empty(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        megabytes_per_second(self.count, ns)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::super::bandwidth::MEMORY;
    use super::super::testing::{fastest, timed, values};
    use super::*;

    #[test]
    fn rereading_is_no_faster_than_reading_memory() {
        let all = [&MEMORY, &FILE, &MAPPED].map(|entry| timed(entry, &[("size", "64K")]));
        let [memory, file, mapped] = fastest(all);
        // The same loop over the same number of words; reading copies them before.
        assert!(file > 0.9 * memory, "{file} ns of a file, {memory} ns of memory");
        assert!(mapped > 0.5 * memory, "{mapped} ns of a mapping, {memory} ns of memory");
    }

    #[test]
    fn what_is_read_is_checked_and_sizes_need_not_be_whole_blocks() {
        let values = values(&FILE, &[("size", "100008")]);
        let (file, count, sum) = cached(&values).unwrap();
        let block = vec![0; BLOCK];
        let mut operation = Reread { file, count, sum, block };
        operation.run(2).unwrap();
        operation.file.write_all_at(&[99], 100_007).unwrap();
        assert!(operation.run(1).is_err());
        let mut mapped = timed(&MAPPED, &[("size", "100008")]);
        mapped.run(2).unwrap();
    }
}
