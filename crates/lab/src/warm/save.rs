//! Boots a board until it pauses, and writes its state.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use punctual_core::channel::Event;

use super::store::{STATE, Unfinished};
use crate::console::CONSOLE;
use crate::qemu::{Boot, End, Guest, Start};

/// Longest time from the last byte that QEMU has written until the file is whole.
const LAST_BYTES: Duration = Duration::from_secs(10);

/// How the boot of a board that is to be kept ended.
pub(super) enum Saved {
    /// Its state is in the folder.
    Whole(Unfinished),
    /// It ended before. This is how, and its console.
    Failed(End, Vec<u8>),
    /// It is no longer wanted.
    Interrupted,
}

/// A board that is being kept, and what it still has to do.
struct Save {
    guest: Guest,
    /// Whether it said that it pauses.
    announced: bool,
    /// Whether QEMU was told to write.
    writes: bool,
    /// When QEMU had written everything.
    written: Option<Instant>,
}

/// Boots a board in a folder until its state is there; `boot` has neither its place nor its
/// start. `pause` waits briefly, and `true` ends everything.
pub(super) fn save(
    boot: &Boot<'_>,
    initramfs: &[u8],
    partial: Unfinished,
    pause: &mut dyn FnMut() -> bool,
) -> Result<Saved> {
    // QEMU is given this path whatever its working directory.
    let folder = partial.0.canonicalize().context("the folder of the board")?;
    let (state, dir) = (folder.join(STATE), folder.join("guest"));
    let start = Start::ToKeep { initramfs, state: &state };
    let boot = Boot { start, dir: &dir, ..*boot };
    let guest = Guest::boot(&boot, Box::new(|_| Ok(())))?;
    let mut save = Save { guest, announced: false, writes: false, written: None };
    loop {
        if pause() {
            save.guest.abandon();
            return Ok(Saved::Interrupted);
        }
        let end = match save.step(&state) {
            Ok(None) => continue,
            Ok(Some(None)) => {
                save.guest.abandon();
                fs::remove_dir_all(&dir).context("the folder of the guest")?;
                fs::remove_file(whole(&state)).context("the state of the board")?;
                return Ok(Saved::Whole(partial));
            }
            Ok(Some(Some(end))) => end,
            Err(error) => {
                let complaint = save.guest.last_complaint();
                save.guest.end_for(format!("{error:#}: {complaint}"))
            }
        };
        let console = fs::read(dir.join(CONSOLE)).unwrap_or_default();
        return Ok(Saved::Failed(end, console));
    }
}

impl Save {
    /// Goes on: `None` until it is over, then its end unless its state is there.
    fn step(&mut self, state: &Path) -> Result<Option<Option<End>>> {
        let Self { guest, announced, .. } = self;
        let paused = guest.control().is_some_and(|control| control.is_paused());
        // After `paused`, so that what was said before is heard.
        if let Some(end) = guest.poll(|event| *announced |= matches!(event, Event::Pausing { .. }))
        {
            return Ok(Some(Some(end)));
        }
        let Some(control) = guest.control() else { return Ok(None) };
        if paused && !self.writes {
            anyhow::ensure!(*announced, "the guest panicked before it came to rest");
            control.write()?;
            self.writes = true;
        }
        if control.is_over() {
            let since = self.written.get_or_insert_with(Instant::now);
            if whole(state).exists() {
                return Ok(Some(None));
            }
            anyhow::ensure!(since.elapsed() < LAST_BYTES, "the board's state is not whole");
        }
        Ok(None)
    }
}

/// The file that says that a state is whole.
fn whole(state: &Path) -> std::path::PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(".whole");
    name.into()
}
