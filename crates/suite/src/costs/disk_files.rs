//! Files of a disk: made and removed, with their folder forced to the disk.

use std::io;

use punctual_core::schema::{Better, CostSection, Unit};

use super::area;
use super::disk::on_disk;
use crate::knobs::WatchedScratch;
use crate::registry::cost::{CostEntry, Method, Operation};
use crate::registry::{Default, Kind, Param, Values};

/// Space for a file's name and inode, bytes; more than any file system takes.
const FILE_BYTES: u64 = 4096;

pub(super) const CREATE: CostEntry = CostEntry {
    name: "disk.create",
    summary: "files made in a second in one folder, which is then forced to the disk",
    help: "Makes empty files one after the other in a folder of its own, and forces the folder to the \
           disk (fsync) after as many as files= says: what the file system needs to keep them is in it. \
           Their removal is not timed. In bonnie++'s terms sequential create, whose default leaves \
           out the disk. The folder is removed at the end, and when punctual is killed.",
    meaning: "that many files made, and one fsync of their folder",
    open: |values| open(values, false),
    ..FILES
};

pub(super) const DELETE: CostEntry = CostEntry {
    name: "disk.delete",
    summary: "files removed in a second from one folder, which is then forced to the disk",
    help: "Removes empty files in the order in which they were made, and forces their folder to the \
           disk (fsync) after as many as files= says. That they are made before, and are on the disk, is \
           not timed. In bonnie++'s terms sequential delete, whose default leaves out the disk.",
    meaning: "that many files removed, and one fsync of their folder",
    open: |values| open(values, true),
    ..FILES
};

/// What they have in common.
const FILES: CostEntry = CostEntry {
    name: "",
    summary: "",
    help: "",
    meaning: "",
    params: &[
        Param {
            name: "files",
            kind: Kind::Count { low: 1, high: 1_000_000 },
            default: Default::Value("1024"),
            help: "files for each time that the folder is forced to the disk",
        },
        area::DIR,
    ],
    needs: &[],
    unit: Unit::PerSecond,
    better: Better::More,
    section: CostSection::Disk,
    columns: &[],
    open: |_| Err(io::ErrorKind::Unsupported.into()),
};

fn open(values: &Values, deletes: bool) -> io::Result<Method> {
    let (parent, files) = (area::folder(values), values.number("files"));
    on_disk(&parent)?;
    area::claim_space(&parent, files.saturating_mul(FILE_BYTES))?;
    let scratch = WatchedScratch::make(&parent)?;
    Ok(Method::Timed(Box::new(Files { scratch, files, there: 0, deletes })))
}

/// An iteration is `files` of them.
struct Files {
    scratch: WatchedScratch,
    files: u64,
    /// How many there are; they have the numbers below.
    there: u64,
    deletes: bool,
}

impl Files {
    fn make(&mut self, iterations: u64) -> io::Result<()> {
        for _ in 0..iterations {
            for _ in 0..self.files {
                self.scratch.folder().make_file(name(self.there))?;
                self.there += 1;
            }
            self.scratch.folder().sync()?;
        }
        Ok(())
    }

    fn remove(&mut self) -> io::Result<()> {
        for number in 0..self.there {
            self.scratch.folder().remove_file(name(number))?;
            if (number + 1).is_multiple_of(self.files) {
                self.scratch.folder().sync()?;
            }
        }
        self.there = 0;
        Ok(())
    }

    fn in_words(&self, done: io::Result<()>) -> io::Result<()> {
        done.map_err(|error| area::in_folder(self.scratch.path(), &error))
    }
}

fn name(number: u64) -> String {
    format!("{number:010}")
}

impl Operation for Files {
    fn prepare(&mut self, iterations: u64) -> io::Result<()> {
        let bytes = iterations.saturating_mul(self.files).saturating_mul(FILE_BYTES);
        area::claim_space(self.scratch.path(), bytes)?;
        let made = if self.deletes { self.make(iterations) } else { Ok(()) };
        self.in_words(made)
    }

    fn run(&mut self, iterations: u64) -> io::Result<()> {
        let done = if self.deletes { self.remove() } else { self.make(iterations) };
        self.in_words(done)
    }

    fn tidy(&mut self) -> io::Result<()> {
        let removed = self.remove();
        self.in_words(removed)
    }

    fn empty(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn value(&self, ns: f64) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "at most a million")]
        let files = self.files as f64;
        files * 1e9 / ns
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::values;
    use super::*;

    fn files(deletes: bool) -> Option<Files> {
        let values = values(&CREATE, &[("files", "30")]);
        let parent = area::folder(&values);
        if let Err(error) = on_disk(&parent) {
            punctual_harness::refused(&error.to_string());
            return None;
        }
        let scratch = WatchedScratch::make(&parent).unwrap();
        Some(Files { scratch, files: 30, there: 0, deletes })
    }

    /// Besides the marker.
    fn count(files: &Files) -> usize {
        files.scratch.folder().names().unwrap().len() - 1
    }

    #[test]
    fn all_are_made_and_all_are_removed() {
        for deletes in [false, true] {
            let Some(mut files) = files(deletes) else { return };
            files.prepare(2).unwrap();
            assert_eq!(count(&files), if deletes { 60 } else { 0 });
            files.run(2).unwrap();
            assert_eq!(count(&files), if deletes { 0 } else { 60 });
            files.tidy().unwrap();
            assert_eq!(count(&files), 0);
            // 30 files in 30 ms.
            assert_eq!(files.value(30e6), 1000.0);
            let path = files.scratch.path().to_owned();
            drop(files);
            assert!(!path.exists());
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let values = values(&CREATE, &[("dir", "/proc")]);
        let Err(error) = open(&values, false) else { panic!("files were made in /proc") };
        assert!(error.to_string().contains("/proc"), "{error}");
    }
}
