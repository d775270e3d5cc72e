//! The SHA-256 of what was unpacked into the cache, kept with it: a file that has changed since
//! boots no guest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use punctual_core::hash::{Hasher, sha256};
use punctual_sys::file;

use crate::files;

/// The file with the sums of a folder, as sha256sum(1) writes and checks them.
const SUMS: &str = ".punctual-sha256";

/// No kernel has so many modules that their sums are longer, bytes.
const MOST_SUMS: u64 = 64 << 20;

/// How many folders a file lies below that of its package, at most.
const DEEPEST: usize = 24;

/// Bytes that are hashed at once.
const PIECE: usize = 1 << 20;

/// Whether the sums of a folder are kept.
pub(super) fn are_kept(folder: &Path) -> bool {
    folder.join(SUMS).is_file()
}

/// Keeps the sums of all files below a folder.
///
/// # Errors
/// One cannot be read, or the sums not be written.
pub(super) fn keep(folder: &Path) -> Result<()> {
    let mut sums = BTreeMap::new();
    below(folder, folder, &mut sums)?;
    let mut text = String::new();
    for (path, sum) in sums {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{sum}  {path}");
    }
    let path = folder.join(SUMS);
    files::replace(&path, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

fn below(root: &Path, folder: &Path, sums: &mut BTreeMap<String, String>) -> Result<()> {
    let cannot = || format!("cannot read {}", folder.display());
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let (path, kind) = (entry.path(), entry.file_type().with_context(cannot)?);
        if kind.is_dir() {
            below(root, &path, sums)?;
        } else if kind.is_file() && entry.file_name() != SUMS {
            let sum = hash(&path).with_context(|| format!("cannot read {}", path.display()))?;
            sums.insert(relative(root, &path), sum);
        }
    }
    Ok(())
}

fn hash(path: &Path) -> io::Result<String> {
    let (mut file, mut hasher) = (File::open(path)?, Hasher::default());
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finish()),
            length => hasher.update(&piece[..length]),
        }
    }
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

/// Checks what was read from a file, if the sums of a folder that it is in are kept.
///
/// # Errors
/// It is not what was unpacked; what to do.
pub(crate) fn check(path: &Path, bytes: &[u8]) -> Result<()> {
    let Some(root) = path.ancestors().skip(1).take(DEEPEST).find(|folder| are_kept(folder)) else {
        return Ok(());
    };
    let sums = root.join(SUMS);
    let text = file::read_text(&sums, MOST_SUMS)
        .with_context(|| format!("cannot read {}", sums.display()))?;
    let name = relative(root, path);
    let kept = text.lines().find_map(|line| {
        let (sum, of) = line.split_once("  ")?;
        (of == name).then_some(sum)
    });
    ensure!(
        kept == Some(sha256(bytes).as_str()),
        "{} has changed since it was fetched, by its SHA-256 in {}: remove {}, and it is fetched anew",
        path.display(),
        sums.display(),
        root.display()
    );
    Ok(())
}

/// The sum of one file, in a file of its own beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Single {
    /// The file is what its sum was kept of.
    Same,
    /// It is another.
    Changed,
    /// There is no sum.
    NoSum,
    /// There is no file.
    NoFile,
}

/// Where the sum of a single file is.
pub(super) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// Whether a file is what its sum beside it was kept of.
pub(super) fn single(path: &Path) -> Single {
    if !path.exists() {
        return Single::NoFile;
    }
    match file::read_text(&beside(path), 4_096) {
        Err(_) => Single::NoSum,
        Ok(kept) if hash(path).is_ok_and(|sum| kept.split(' ').next() == Some(sum.as_str())) => {
            Single::Same
        }
        Ok(_) => Single::Changed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn what_has_changed_is_refused_wherever_it_lies() {
        let folder = Folder::new();
        let (image, module) = (folder.0.join("p/boot/vmlinuz"), folder.0.join("p/lib/m/a.ko"));
        folder.write("p/boot/vmlinuz", b"image");
        folder.write("p/lib/m/a.ko", b"module");
        check(&image, b"anything").unwrap();
        assert!(!are_kept(&folder.0.join("p")));
        keep(&folder.0.join("p")).unwrap();
        check(&image, b"image").unwrap();
        check(&module, b"module").unwrap();
        let error = check(&module, b"modulf").unwrap_err().to_string();
        let remedy = format!("remove {}, and it is fetched anew", folder.0.join("p").display());
        assert!(error.contains("lib/m/a.ko has changed") && error.ends_with(&remedy), "{error}");
        // What was not in the package is not of it.
        assert!(check(&folder.0.join("p/lib/m/b.ko"), b"").is_err());
        let output = std::process::Command::new("sha256sum")
            .args(["--check", "--strict", "--quiet", SUMS])
            .current_dir(folder.0.join("p"))
            .output();
        if let Ok(output) = output {
            assert!(output.status.success(), "{output:?}");
        }
    }

    #[test]
    fn a_single_file_has_its_sum_beside_it() {
        let folder = Folder::new();
        let path = folder.0.join("elf");
        assert_eq!(single(&path), Single::NoFile);
        folder.write("elf", b"one");
        assert_eq!(single(&path), Single::NoSum);
        fs::write(beside(&path), format!("{}  elf\n", sha256(b"one"))).unwrap();
        assert_eq!(single(&path), Single::Same);
        folder.write("elf", b"two");
        assert_eq!(single(&path), Single::Changed);
    }
}
