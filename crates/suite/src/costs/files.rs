//! Files: looked up, opened, made and removed, in a scratch folder of the process that is timed.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use punctual_core::schema::{Better, CostSection, Unit};
use punctual_sys::calls::{create_and_close, open_and_close, stat, unlink};
use punctual_sys::folder::Folder;

use super::apart::{Apart, Once, Scale, ns_of, timed, worked_out};
use super::area::{DIR, claim_space, folder};
use super::calls::named;
use crate::knobs::OwnFolder;
use crate::registry::cost::{Column, CostEntry, Method};
use crate::registry::{Default, Kind, Param, Values};

pub(super) const STAT: CostEntry = CostEntry {
    name: "lat.stat",
    summary: "stat of a file by its path",
    help: "Asks for the metadata of an empty file by its absolute path, which has two components more \
than dir=, in a process of one thread. All of it is in memory. Each component of the path adds to it. \
Comparable to stat in LMbench's summary, for a path of the same depth.",
    meaning: "one stat, the empty loop subtracted",
    params: &[DIR],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Processor,
    columns: &[Column { name: "stat", params: &[] }],
    open: |values| lookup(values, stat),
};

pub(super) const OPEN: CostEntry = CostEntry {
    name: "lat.open",
    summary: "open of a file by its path, and its close (open/close)",
    help: "Opens the file of lat.stat to read it, and closes it. Comparable to open/close in LMbench's \
summary, for a path of the same depth.",
    meaning: "one open and close, the empty loop subtracted",
    params: &[DIR],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::Processor,
    columns: &[Column { name: "open/close", params: &[] }],
    open: |values| lookup(values, open_and_close),
};

const SIZE: Param = Param {
    name: "kb",
    kind: Kind::Count { low: 0, high: 1024 },
    default: Default::Value("0"),
    help: "size of each file, KiB",
};

pub(super) const CREATE: CostEntry = CostEntry {
    name: "lat.create",
    summary: "make a file, write to it and close it (file 0K create, file 10K create)",
    help: "Makes 100 files in one folder with creat(2), writes each with one call (if it is not to \
be empty) and closes it. They are removed, without being timed, before the next repetition. Nothing is \
synced: what is timed is the file system's work in memory. Comparable to file create in LMbench's \
summary, on the same kind of file system.",
    meaning: "one creat, write and close; mean of 100",
    params: &[SIZE, DIR],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::FilesAndMemory,
    columns: &[
        Column { name: "file 0K create", params: &[] },
        Column { name: "file 10K create", params: &[("kb", "10")] },
    ],
    open: |values| many(values, true),
};

pub(super) const DELETE: CostEntry = CostEntry {
    name: "lat.delete",
    summary: "remove a file (file 0K delete, file 10K delete)",
    help: "Removes the files that lat.create makes, with unlink(2), in the order in which they were \
made; making them is not timed. Comparable to file delete in LMbench's summary, on the same kind of \
file system.",
    meaning: "one unlink; mean of 100",
    params: &[SIZE, DIR],
    needs: &[],
    unit: Unit::Us,
    better: Better::Less,
    section: CostSection::FilesAndMemory,
    columns: &[
        Column { name: "file 0K delete", params: &[] },
        Column { name: "file 10K delete", params: &[("kb", "10")] },
    ],
    open: |values| many(values, false),
};

/// As many as in a folder of LMbench's.
const FILES: u64 = 100;
/// What a file takes besides its content, at most: an inode and a block.
const OVERHEAD_BYTES: u64 = 8 << 10;

type Call = fn(&std::ffi::CStr) -> io::Result<()>;

fn lookup(values: &Values, call: Call) -> io::Result<Method> {
    let parent = folder(values);
    timed(Some(&parent), Scale::Us(1.0), || {
        let folder = OwnFolder::make(&parent)?;
        let path = folder.path().join("file");
        named(&path.display().to_string(), fs::write(&path, ""))?;
        Ok(Lookup { path: text(&path)?, call, _folder: folder })
    })
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

struct Lookup {
    path: CString,
    call: Call,
    _folder: OwnFolder,
}

impl Apart for Lookup {
    fn run(&mut self, iterations: u64) -> io::Result<()> {
        (0..iterations).try_for_each(|_| (self.call)(&self.path))
    }
}

fn many(values: &Values, makes: bool) -> io::Result<Method> {
    let kib = values.number("kb");
    let parent = folder(values);
    claim_space(&parent, FILES * (kib * 1024 + OVERHEAD_BYTES))?;
    let content = vec![b'x'; usize::try_from(kib * 1024).map_err(io::Error::other)?];
    worked_out(Some(&parent), || {
        let folder = OwnFolder::make(&parent)?;
        // Paths are relative, so their depth does not depend on where the folder is.
        Folder::open(folder.path())?.enter()?;
        let paths = (0..FILES).map(|number| text(Path::new(&number.to_string())));
        let paths = paths.collect::<io::Result<_>>()?;
        Ok(Many { paths, content, makes, folder })
    })
}

struct Many {
    paths: Vec<CString>,
    content: Vec<u8>,
    /// Whether making the files is what counts, or removing them.
    makes: bool,
    folder: OwnFolder,
}

impl Once for Many {
    fn measure(&mut self) -> io::Result<f64> {
        let make = || self.paths.iter().try_for_each(|path| create_and_close(path, &self.content));
        let remove = || self.paths.iter().try_for_each(|path| unlink(path));
        let place = self.folder.path().display().to_string();
        let made = named(&place, ns_of(make))?;
        let removed = named(&place, ns_of(remove))?;
        #[allow(clippy::cast_precision_loss, reason = "a small number")]
        Ok(if self.makes { made } else { removed } / FILES as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::apart::tests::{leaves_nothing, opened, value};
    use crate::costs::testing_folder;
    use punctual_harness::{Tmpfs, need, root};

    #[test]
    fn opening_takes_more_than_a_call_and_nothing_is_left() {
        let place = testing_folder("lookup");
        for what in ["lat.stat", "lat.open"] {
            let what = format!("{what}:dir={}", place.display());
            assert!(value(&what, 1_000) > 0.0);
            leaves_nothing(&what, 1);
            assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "{what}");
        }
        fs::remove_dir(place).unwrap();
    }

    #[test]
    fn files_are_made_and_removed_and_nothing_is_left() {
        let place = testing_folder("many");
        for what in ["lat.create", "lat.delete"] {
            let of = |kb| format!("{what}:kb={kb},dir={}", place.display());
            // Whatever else the disk has to do meanwhile.
            let more = || value(&of(256), 1) > value(&of(0), 1);
            assert!((0..10).any(|_| more()), "{what}: 256 KiB take no longer than none");
            leaves_nothing(&of(10), 1);
            assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "{what}");
        }
        fs::remove_dir(place).unwrap();
    }

    #[test]
    fn a_folder_whose_process_was_killed_is_removed() {
        let place = testing_folder("killed");
        for what in ["lat.stat", "lat.create"] {
            let mut method = opened(&format!("{what}:dir={}", place.display())).unwrap();
            let peers = match &mut method {
                Method::Timed(operation) => operation.peers(),
                Method::Direct(direct) => direct.peers(),
            };
            assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
            punctual_sys::process::kill(peers[0].id).unwrap();
            drop(method);
            assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "{what}");
        }
        fs::remove_dir(place).unwrap();
    }

    #[test]
    fn a_place_that_cannot_be_used_is_named() {
        for what in ["lat.stat", "lat.create:kb=10"] {
            let separator = if what.contains(':') { ',' } else { ':' };
            let Err(error) = opened(&format!("{what}{separator}dir=/does/not/exist")) else {
                panic!("{what}")
            };
            assert!(error.to_string().contains("/does/not/exist"), "{error}");
        }
    }

    #[test]
    fn a_file_system_without_room_is_an_error() {
        need!(root());
        let place = testing_folder("full");
        let mounted = Tmpfs::mount(&place.join("small"), "1m");
        let what = format!("lat.create:kb=10,dir={}/small", place.display());
        let Err(error) = opened(&what) else { panic!("5 MB in 1 MB") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
        drop(mounted);
        fs::remove_dir_all(place).unwrap();
    }
}
