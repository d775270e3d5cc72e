//! The folder of a search: what its tries have in common, and each try as it ended.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use punctual_core::search::{SearchOrigin, Try};
use punctual_lab::experiment::{make_folder, warning};
use punctual_sys::file;

use crate::commands::lab::sections::replace;
use crate::output;

/// What the tries have in common.
const ORIGIN: &str = "origin.json";

/// A line of JSON for each try.
const TRIES: &str = "tries.jsonl";

/// The runs of the tries.
const RUNS: &str = "runs";

/// More than any search writes, bytes.
const MOST: u64 = 1 << 30;

/// By which a try is known: load, kernel, seed.
pub type Key = (String, String, u64);

/// A search's folder, with what is in it already.
pub struct SearchFolder {
    path: PathBuf,
    tries: File,
    known: BTreeMap<Key, Try>,
}

fn key(one: &Try) -> Key {
    (one.load.clone(), one.kernel.clone(), one.seed)
}

impl SearchFolder {
    /// Opens the folder of this search, or makes it.
    ///
    /// # Errors
    /// It is that of another search, or of none, or cannot be written.
    pub fn open(out: &Path, origin: &SearchOrigin) -> anyhow::Result<Self> {
        if let Some(text) = warning(out) {
            output::complain(&text);
        }
        let mut known = BTreeMap::new();
        let path = if out.exists() {
            known = tries_of(out, origin)?.into_iter().map(|one| (key(&one), one)).collect();
            out.canonicalize().with_context(|| out.display().to_string())?
        } else {
            let made = make_folder(out)?;
            replace(&made.join(ORIGIN), (serde_json::to_string_pretty(origin)? + "\n").as_bytes())?;
            made
        };
        fs::create_dir_all(path.join(RUNS)).with_context(|| path.display().to_string())?;
        // Without the half of a line that a kill may have left.
        write(&path, known.values())?;
        let name = path.join(TRIES);
        let tries = OpenOptions::new().append(true).open(&name);
        let tries = tries.with_context(|| name.display().to_string())?;
        Ok(Self { path, tries, known })
    }

    /// The folder of runs.
    pub fn runs(&self) -> PathBuf {
        self.path.join(RUNS)
    }

    /// How many tries there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// A try that is here.
    pub fn get(&self, key: &Key) -> Option<&Try> {
        self.known.get(key)
    }

    /// Keeps a try that has ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(&mut self, one: Try) -> anyhow::Result<()> {
        let line = serde_json::to_string(&one)? + "\n";
        let name = self.path.join(TRIES);
        self.tries.write_all(line.as_bytes()).with_context(|| name.display().to_string())?;
        self.known.insert(key(&one), one);
        Ok(())
    }

    /// Writes these tries in this order, which is that of the search and not of their ends. Behind
    /// them are others that it did not need, from one with another budget.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn sort(&mut self, tries: Vec<Try>) -> anyhow::Result<()> {
        let mut others = std::mem::take(&mut self.known);
        tries.iter().for_each(|one| drop(others.remove(&key(one))));
        write(&self.path, tries.iter().chain(others.values()))?;
        let all = tries.into_iter().chain(others.into_values());
        self.known = all.map(|one| (key(&one), one)).collect();
        Ok(())
    }
}

fn write<'a>(folder: &Path, tries: impl Iterator<Item = &'a Try>) -> anyhow::Result<()> {
    let mut text = String::new();
    for one in tries {
        text.push_str(&serde_json::to_string(one)?);
        text.push('\n');
    }
    replace(&folder.join(TRIES), text.as_bytes())
}

/// The tries in the folder of a search with this origin; those of guests that failed are tried again.
fn tries_of(out: &Path, origin: &SearchOrigin) -> anyhow::Result<Vec<Try>> {
    let kept = file::read(&out.join(ORIGIN), MOST).ok();
    let kept = kept.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    let kept = kept.with_context(|| {
        format!(
            "{} is not the folder of a search (it has no {ORIGIN}): name another with --out",
            out.display()
        )
    })?;
    let asked = serde_json::to_value(origin)?;
    let keys = asked.as_object().into_iter().flat_map(|asked| asked.keys());
    let other: Vec<&str> =
        keys.filter(|key| asked.get(key) != kept.get(key)).map(String::as_str).collect();
    ensure!(
        other.is_empty(),
        "{} has a search with other {}: its tries are not comparable; name another folder with --out",
        out.display(),
        other.join(", ")
    );
    let text = file::read(&out.join(TRIES), MOST).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    let tries = lines.filter_map(|line| serde_json::from_slice::<Try>(line).ok());
    Ok(tries.filter(|one| !one.guest_failed).collect())
}
