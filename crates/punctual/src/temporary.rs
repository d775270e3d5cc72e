//! Folders that nobody keeps. All that this program makes are of one kind, that of the folders of
//! loads: named after the process, marked with it, and noted in its journal. They go with this
//! process, and if it is killed `punctual restore` removes them, wherever they are.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use anyhow::Context;
use punctual_suite::knobs::Journal;

/// The journal of this process, as long as there is a folder.
static JOURNAL: Mutex<Weak<Mutex<Journal>>> = Mutex::new(Weak::new());

/// A folder that only this user may use. It goes when this and all others of the process have been
/// dropped.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
    _journal: Arc<Mutex<Journal>>,
}

impl Temporary {
    /// One in `$TMPDIR`, or else in `/tmp`.
    ///
    /// # Errors
    /// It cannot be made, or not be noted in the journal.
    pub fn make() -> anyhow::Result<Self> {
        Self::make_in(&std::env::temp_dir())
    }

    /// One in a folder.
    ///
    /// # Errors
    /// As [`Temporary::make`].
    pub fn make_in(parent: &Path) -> anyhow::Result<Self> {
        let journal = journal()?;
        let path = {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.scratch_dir(parent).context("a temporary folder")?
        };
        Ok(Self { path, _journal: journal })
    }

    /// Its absolute path, without links.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn journal() -> anyhow::Result<Arc<Mutex<Journal>>> {
    let mut known = JOURNAL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(journal) = known.upgrade() {
        return Ok(journal);
    }
    let journal = Arc::new(Mutex::new(Journal::new().context("the journal")?));
    *known = Arc::downgrade(&journal);
    Ok(journal)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folders_go_with_the_last_of_them() {
        let one = Temporary::make().unwrap();
        fs::write(one.path().join("file"), "x").unwrap();
        let inner = Temporary::make_in(one.path()).unwrap();
        let (path, inside) = (one.path().to_owned(), inner.path().to_owned());
        assert!(inside.starts_with(&path) && inside != path);
        drop(one);
        assert!(inside.exists(), "the other is still in use");
        drop(inner);
        assert!(!path.exists());
        // The next has a journal of its own.
        let next = Temporary::make().unwrap();
        let path = next.path().to_owned();
        drop(next);
        assert!(!path.exists());
    }
}
