//! Mappings of a file: made, touched and unmapped.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::mapped::FileMapping;
use punctual_sys::region::page_size;

use super::apart::{Apart, Scale, timed};
use super::area::{self, DIR, folder};
use super::calls::named;
use crate::registry::Values;
use crate::registry::cost::{Column, CostEntry, Method};

pub(super) const MMAP: CostEntry = CostEntry {
    name: "lat.mmap",
    summary: "map a file, write to a few of its pages, unmap it (mmap)",
    help: "Maps a file of size= bytes shared and writable, writes a byte in each 16 KiB of its first \
tenth, and unmaps it, in a process of one thread and without locked memory. The file has no name and is \
in the page cache. Each write is a fault of its own, in which the file system notes that the page has \
changed. Comparable to mmap in LMbench's summary, for a file of the same size (LMbench uses that of its \
other file benchmarks) on the same kind of file system.",
    meaning: "one mmap, writes to every 16 KiB of the first tenth, and munmap; the empty loop \
subtracted",
    params: &[DIR, area::size("8M", "size of the file")],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::FilesAndMemory,
    columns: &[Column { name: "mmap", params: &[] }],
    open: |values| open(values, |_| Scale::Us(1.0), |file, bytes| Ok(MapAndWrite { file, bytes })),
};

pub(super) const PAGEFAULT: CostEntry = CostEntry {
    name: "lat.pagefault",
    summary: "first read of a page of a mapped file that is in memory (page fault)",
    help: "Maps a file of size= bytes shared and read-only, reads a byte of each page in a random order \
that stays the same, and unmaps it, in a process of one thread and without locked memory. The file has \
no name and is in the page cache, so nothing waits for a disk. To map and unmap it untouched is \
subtracted; that the pages that were read are taken out again is not. The kernel maps pages around the \
one that faults (fault-around, 64 KiB by default), so most reads do not fault: the value is the mean of \
all pages. Comparable to page fault in LMbench's summary.",
    meaning: "one page of a mapped file, read for the first time and unmapped; mapping as such \
subtracted",
    params: &[DIR, area::size("8M", "size of the file")],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::FilesAndMemory,
    columns: &[Column { name: "page fault", params: &[] }],
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53 pages")]
    open: |values| {
        let scale = |bytes: usize| Scale::Us((bytes / page_size()) as f64);
        open(values, scale, |file, bytes| {
            let pages = u32::try_from(bytes / page_size()).map_err(io::Error::other)?;
            Ok(MapAndRead { file, bytes, order: shuffled(pages) })
        })
    },
};

/// Touched are one byte in each of these, in the first of so many parts.
const STEP_BYTES: usize = 16 << 10;
const PARTS: usize = 10;

/// A file of whole pages that are all written, and what is done with it.
fn open<A: Apart>(
    values: &Values,
    scale: impl Fn(usize) -> Scale,
    make: impl FnOnce(File, usize) -> io::Result<A>,
) -> io::Result<Method> {
    let size = values.number("size");
    area::claim_memory(size)?;
    let place = folder(values);
    let bytes = usize::try_from(size).map_err(io::Error::other)? / page_size() * page_size();
    let bytes = bytes.max(page_size());
    timed(None, scale(bytes), || {
        let mut file = area::file(&place, size)?;
        let chunk = [b'x'; area::WRITTEN_BYTES];
        let mut left = bytes;
        while left > 0 {
            let part = left.min(chunk.len());
            named(&place.display().to_string(), file.write_all(&chunk[..part]))?;
            left -= part;
        }
        make(file, bytes)
    })
}

/// Every number below `count` once, in an order that is always the same.
fn shuffled(count: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    let mut state = 1_u64;
    for last in (1..order.len()).rev() {
        // Knuth's MMIX generator; its high bits are the better ones.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = (state >> 33) % (last as u64 + 1);
        order.swap(last, usize::try_from(other).unwrap_or(0));
    }
    order
}

struct MapAndWrite {
    file: File,
    bytes: usize,
}

impl Apart for MapAndWrite {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            let mut mapped = named("mmap", FileMapping::new(&self.file, self.bytes, true))?;
            mapped.write(STEP_BYTES, self.bytes / PARTS);
        }
        Ok(())
    }
}

struct MapAndRead {
    file: File,
    bytes: usize,
    order: Vec<u32>,
}

impl Apart for MapAndRead {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            let mapped = named("mmap", FileMapping::new(&self.file, self.bytes, false))?;
            black_box(mapped.read(&self.order));
        }
        Ok(())
    }

    fn empty(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            black_box(named("mmap", FileMapping::new(&self.file, self.bytes, false))?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::apart::tests::{leaves_nothing, opened, value};
    use crate::costs::testing_folder;
    use punctual_sys::memory::thread_faults;

    #[test]
    fn larger_mappings_take_longer_and_pages_some_time() {
        let place = testing_folder("mapping");
        let of = |what: &str, size| format!("{what}:size={size},dir={}", place.display());
        let mapped = |size| value(&of("lat.mmap", size), 20);
        let (small, large) = (mapped("128K"), mapped("8M"));
        assert!(small > 0.0 && large > 2.0 * small, "{small} us, {large} us");
        let fault = value(&of("lat.pagefault", "1M"), 20);
        assert!(fault > 0.0 && fault < large, "{fault} us");
        leaves_nothing(&of("lat.mmap", "1M"), 1);
        leaves_nothing(&of("lat.pagefault", "1M"), 1);
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
        std::fs::remove_dir(place).unwrap();
    }

    #[test]
    fn every_page_is_read_and_those_that_are_not_there_fault() {
        let mut order = shuffled(1_000);
        assert!(order.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) > 16).count() > 900);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..1_000));
        assert_eq!((shuffled(0), shuffled(1)), (vec![], vec![0]));
        let bytes = 256 * page_size();
        let mut file = area::file(&std::env::temp_dir(), 4 << 20).unwrap();
        file.write_all(&vec![1; bytes]).unwrap();
        let mut reads = MapAndRead { file, bytes, order: shuffled(256) };
        let faults = |reads: &mut MapAndRead, empty: bool| {
            let before = thread_faults().0;
            if empty { reads.empty(10) } else { reads.run(10) }.unwrap();
            thread_faults().0 - before
        };
        // With pages around each, there are fewer faults than pages.
        let some = faults(&mut reads, false);
        assert!((10..=2_600).contains(&some), "{some} faults");
        assert!(faults(&mut reads, true) < 10, "what is subtracted faults too");
    }

    #[test]
    fn a_size_beyond_the_machine_is_refused() {
        let Err(error) = opened("lat.mmap:size=1024T") else { panic!("that is much") };
        assert!(error.to_string().contains("bytes of memory"), "{error}");
    }
}
