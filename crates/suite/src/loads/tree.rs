//! Walks a directory tree again and again.

use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use punctual_sys::error;

use crate::harness::worker::{LoadError, Worker};
use crate::registry::load::{Form, LoadEntry, Machine, Owns, PartForm};
use crate::registry::{Default, Kind, Param, Value, Values, any_text};

const ENTRIES: usize = 0;
/// The kernel generates their files on access: walking them would be a different load.
const KERNEL_FILES: [&str; 3] = ["/proc", "/sys", "/dev"];

pub(super) const ENTRY: LoadEntry = LoadEntry {
    name: "tree",
    summary: "walk a directory tree and stat everything",
    help: "Walks a directory tree and stats every entry, as du / and find / do in the scripts of \
           the papers, then starts again from the top. Stays on one file system, follows no \
           symbolic links, and enters neither /proc nor /sys nor /dev.",
    main_param: "dir",
    params: &[Param {
        name: "dir",
        kind: Kind::Text { value: "DIR", check: any_text },
        default: Default::Value("/"),
        help: "top of the tree",
    }],
    counters: &["entries"],
    needs: &[],
    form: Form::Part(PartForm { resolve, owns: Owns::Nothing, steady_from: None, run }),
};

fn resolve(values: &mut Values, _: &Machine) -> Result<(), String> {
    let given = values.text("dir");
    let dir =
        fs::canonicalize(given).map_err(|error| format!("{given}: {}", error::text(&error)))?;
    if KERNEL_FILES.iter().any(|kernel| dir.starts_with(kernel)) {
        return Err(format!(
            "{given}: the kernel's own files (/proc, /sys, /dev) are not walked; choose another folder"
        ));
    }
    let text = dir.to_str().ok_or(format!("{given}: not UTF-8"))?.to_owned();
    values.set("dir", Value::Text(text));
    Ok(())
}

fn run(worker: &Worker<'_>) -> Result<Infallible, LoadError> {
    let top = Path::new(worker.values().text("dir"));
    loop {
        walk(worker, top)?;
    }
}

fn walk(worker: &Worker<'_>, top: &Path) -> Result<(), LoadError> {
    let failed = |error| LoadError::io(top.display(), &error);
    let device = fs::symlink_metadata(top).map_err(failed)?.dev();
    fs::read_dir(top).map_err(failed)?;
    worker.add(ENTRIES, 1);
    let mut folders: Vec<PathBuf> = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        // Like find, skips what vanishes or cannot be read.
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(status) = entry.metadata() else {
                continue;
            };
            worker.add(ENTRIES, 1);
            if status.is_dir() && status.dev() == device {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}
