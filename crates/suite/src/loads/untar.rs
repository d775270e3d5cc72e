//! A tree of small files, created and deleted.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm, SCRATCH_DIR};
use crate::registry::room::{self, RESERVE};
use crate::registry::{Default, Kind, Param, Value, Values};

const CREATED: usize = 0;
const DELETED: usize = 1;
/// Files of a folder: a kernel's source has some fifteen.
const FOLDER: u64 = 15;
/// Default number of files.
const FILES: u64 = 2_000;
/// What a file system keeps of a file beside its content, rounded up, bytes.
const OVERHEAD: u64 = 4 << 10;

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "untar",
    summary: "create and delete a tree of small files",
    help: "Creates a tree of small files, 15 in a folder, as unpacking the source of a kernel does, \
           deletes all of it, and starts over. Sizes go from an eighth of size to fifteen eighths of \
           it. Works in a scratch folder below dir, which is removed at the end, and ends rather \
           than use the space in reserve. There is nothing to unpack: it takes no CPU time for that.",
    main_param: "files",
    params: &[
        Param {
            name: "files",
            kind: Kind::Count { low: 1, high: 10_000_000 },
            default: Default::OfMachine(
                "2000, less if they exceed a quarter of the room (in memory: of an eighth of it)",
            ),
            help: "files of the tree",
        },
        Param {
            name: "size",
            kind: Kind::Size { low: 8 },
            default: Default::Value("8K"),
            help: "mean size of a file",
        },
        SCRATCH_DIR,
        RESERVE,
    ],
    counters: &["files-created", "files-deleted"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::ScratchFolder, steady_from: None, run }),
};

fn resolve(values: &mut Values, machine: &Machine) -> Result<(), String> {
    let parent = machine.resolve_dir(values)?;
    let (room, reserve) = room::space(values, &parent)?;
    let each = values.number("size").saturating_add(OVERHEAD);
    let fitting = room::by_default(room, reserve, machine) / 4 / each;
    let files = values.known_number("files").unwrap_or(FILES.min(fitting).max(1));
    values.set("files", Value::Number(files));
    room::claim(values, &parent, (room, reserve), files.saturating_mul(each))
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let folder = worker.enter_scratch()?;
    let values = worker.values();
    let (files, size) = (values.number("files"), values.number("size"));
    let tree = Path::new("tree");
    let failed = |error: io::Error| LoadError::io(folder.display(), &error);
    // Left by a worker that was killed.
    if tree.exists() {
        fs::remove_dir_all(tree).map_err(failed)?;
    }
    loop {
        room::keep(worker, folder, files.saturating_mul(size + OVERHEAD))?;
        create(tree, files, size, || worker.add(CREATED, 1)).map_err(failed)?;
        delete(tree, &mut || worker.add(DELETED, 1)).map_err(failed)?;
    }
}

/// Path and size of a file. Folders lie in folders as those of a source tree do.
fn file(tree: &Path, number: u64, size: u64) -> (PathBuf, u64) {
    let folder = number / FOLDER;
    let path = tree.join(format!("{}/{}", folder / FOLDER, folder % FOLDER));
    // 1 to 15 eighths, each as often: the mean is eight of them.
    (path.join(format!("{}.c", number % FOLDER)), size * (1 + number % FOLDER) / 8)
}

fn create(tree: &Path, files: u64, size: u64, mut created: impl FnMut()) -> io::Result<()> {
    let content = vec![b'c'; usize::try_from(size * 15 / 8).map_err(io::Error::other)?];
    for number in 0..files {
        let (path, bytes) = file(tree, number, size);
        if number % FOLDER == 0 {
            fs::create_dir_all(path.parent().unwrap_or(tree))?;
        }
        fs::write(path, &content[..usize::try_from(bytes).map_err(io::Error::other)?])?;
        created();
    }
    Ok(())
}

fn delete(folder: &Path, deleted: &mut impl FnMut()) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            delete(&entry.path(), deleted)?;
        } else {
            fs::remove_file(entry.path())?;
            deleted();
        }
    }
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_are_there_as_were_counted_and_none_once_deleted() {
        let tree = std::env::temp_dir().join(format!("punctual-untar-{}", std::process::id()));
        let (mut created, mut deleted) = (0, 0);
        create(&tree, 225 + 31, 800, || created += 1).unwrap();
        let of = |kind: &str| {
            let mut find = std::process::Command::new("find");
            let found = find.arg(&tree).args(["-type", kind, "-printf", "%s\n"]).output().unwrap();
            let sizes = String::from_utf8(found.stdout).unwrap();
            sizes.lines().map(|size| size.parse().unwrap()).collect::<Vec<u64>>()
        };
        let files = of("f");
        assert_eq!((files.len(), created), (256, 256));
        assert_eq!(files.iter().min().zip(files.iter().max()), Some((&100, &1500)));
        // 18 folders of files in two folders of the tree.
        assert_eq!(of("d").len(), 18 + 2 + 1);
        delete(&tree, &mut || deleted += 1).unwrap();
        assert_eq!((deleted, tree.exists()), (256, false));
    }
}
