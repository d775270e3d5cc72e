//! Scratch folders of metrics: removed by a process that sees this one end, however it ends.

use std::io::{self, PipeWriter, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_sys::folder::Folder;
use punctual_sys::partner::Partner;

use super::folders::canonical;
use super::owner::Owner;
use super::scratch::{Refusal, SCRATCH_PREFIX, Scratch};

/// How many names are tried.
const NAMES_MAX: u32 = 10_000;

/// A private folder that is removed with everything in it when this is dropped, or when this
/// process ends, by SIGKILL too. If the process that does it is killed as well, the folder has its
/// marker, by which `punctual restore` finds it.
#[derive(Debug)]
pub(crate) struct WatchedScratch {
    path: PathBuf,
    folder: Folder,
    /// Closed before the process below is waited for.
    _lifeline: PipeWriter,
    _remover: Partner,
}

impl WatchedScratch {
    /// Makes a folder below `parent`.
    ///
    /// # Errors
    /// It cannot be made, which the text says of what; those of pipe(2) and fork(2).
    pub(crate) fn make(parent: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (parent, owner) = (canonical(parent)?, Owner::this()?);
        for _ in 0..NAMES_MAX {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            // Another letter than the journal's, so that neither takes the other's names.
            let path = parent.join(format!("{SCRATCH_PREFIX}{}-c{number}", owner.pid));
            match Scratch::make(&path, &owner) {
                Ok(()) => return Self::watch(path, &owner),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no name is left for a scratch folder"))
    }

    fn watch(path: PathBuf, owner: &Owner) -> io::Result<Self> {
        let scratch = Scratch::find(&path, owner).map_err(|refusal| match refusal {
            Refusal::NotOurs(text) | Refusal::Hindered(text) => io::Error::other(text),
        })?;
        let watched = || {
            let (end, lifeline) = io::pipe()?;
            let [parent, inner] = scratch.fds();
            let remover = Partner::fork_outliving(&[end.as_fd(), parent, inner], || {
                while (&end).read(&mut [0])? > 0 {}
                scratch.remove()
            })?;
            Ok((lifeline, remover))
        };
        match watched() {
            Ok((lifeline, remover)) => {
                let folder = scratch.into_folder();
                Ok(Self { path, folder, _lifeline: lifeline, _remover: remover })
            }
            Err(error) => {
                let _ = scratch.remove();
                Err(error)
            }
        }
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder itself, whatever may be at its path by now.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use punctual_sys::affinity;
    use punctual_sys::process;

    use super::*;

    fn parent(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn it_is_private_and_gone_with_all_that_is_in_it() {
        use std::os::unix::fs::MetadataExt;
        let parent = parent("watched");
        let scratches = [WatchedScratch::make(&parent), WatchedScratch::make(&parent)];
        for scratch in scratches.map(Result::unwrap) {
            scratch.folder().make_file("file").unwrap();
            scratch.folder().make_folder("folder").unwrap();
            assert!(scratch.path().join("file").exists());
            assert_eq!(scratch.path().metadata().unwrap().mode() & 0o777, 0o700);
        }
        // Fails if anything is left.
        std::fs::remove_dir(&parent).unwrap();
        let said = WatchedScratch::make(&parent).unwrap_err().to_string();
        assert!(said.contains(&*parent.to_string_lossy()), "{said}");
    }

    #[test]
    fn it_is_removed_when_its_process_is_killed() {
        let parent = parent("killed");
        let (ready, tell) = io::pipe().unwrap();
        let body = || {
            let scratch = WatchedScratch::make(&parent)?;
            scratch.folder().make_file("file")?;
            io::Write::write_all(&mut &tell, &[1])?;
            loop {
                std::thread::park();
            }
        };
        let cpus = affinity::get().unwrap();
        let killed = Partner::fork(&[tell.as_fd()], &cpus, body).unwrap();
        (&ready).read_exact(&mut [0]).unwrap();
        assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 1);
        process::kill(killed.pid()).unwrap();
        drop(killed);
        let from = std::time::Instant::now();
        while std::fs::read_dir(&parent).unwrap().count() > 0 {
            assert!(from.elapsed().as_secs() < 60, "nobody removed it");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::fs::remove_dir(&parent).unwrap();
    }
}
