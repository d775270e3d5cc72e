//! The folder of an experiment.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use punctual_sys::written;

/// The file in an experiment's folder that lists its runs, kernel by kernel.
pub const EXPERIMENT: &str = "experiment.json";

/// The names of the runs in the text of [`EXPERIMENT`], in the order of its kernels; none if it
/// is damaged.
#[must_use]
pub fn runs_listed(text: &[u8]) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Listed {
        runs: Vec<String>,
    }
    serde_json::from_slice::<Listed>(text).map_or_else(|_| Vec::new(), |listed| listed.runs)
}

/// Where the command was given whose list this is, to which its paths are relative; `None` if it is
/// damaged, or of an older punctual.
#[must_use]
pub fn directory_of(text: &[u8]) -> Option<PathBuf> {
    #[derive(serde::Deserialize)]
    struct ListedFrom {
        directory: PathBuf,
    }
    serde_json::from_slice::<ListedFrom>(text).ok().map(|listed| listed.directory)
}

/// What is unsafe about the folder that an experiment's folder is in, in words.
#[must_use]
pub fn warning(out: &Path) -> Option<String> {
    let who = written::who_can_replace(parent_of(out))?;
    Some(format!("{who}; name a folder of your own with --out"))
}

fn parent_of(out: &Path) -> &Path {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Creates the folder of an experiment.
///
/// # Errors
/// It exists or cannot be created.
pub fn make_folder(out: &Path) -> Result<PathBuf> {
    let parent = parent_of(out);
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    fs::create_dir(out).with_context(|| {
        format!(
            "cannot make {}; an experiment is never overwritten: name another folder with --out",
            out.display()
        )
    })?;
    // QEMU is given this path whatever its working directory.
    out.canonicalize().with_context(|| out.display().to_string())
}
