//! Boots a board until it pauses, and writes its state.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use punctual_core::channel::Event;

use super::store::STATE;
use crate::console::CONSOLE;
use crate::qemu::{Boot, End, Guest, Start};
use crate::user_cache::Partial;

/// Longest time from the last byte that QEMU has written until the file is whole.
const LAST_BYTES: Duration = Duration::from_secs(10);

/// How many states of a board are tried: each guest pauses so often (suite/src/warm.rs).
const STATES: u32 = 3;

/// How the boot of a board that is to be kept ended.
pub(super) enum Saved {
    /// Its state is in the folder.
    Whole(Partial),
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
    /// How many of its states were of no use.
    useless: u32,
}

/// Boots a board in a folder until its state is there; `boot` has neither its place nor its
/// start. `pause` waits briefly, and `true` ends everything.
pub(super) fn save(
    boot: &Boot<'_>,
    initramfs: &[u8],
    partial: Partial,
    pause: &mut dyn FnMut() -> bool,
) -> Result<Saved> {
    // QEMU is given this path whatever its working directory.
    let folder = partial.0.canonicalize().context("the folder of the board")?;
    let (state, dir) = (folder.join(STATE), folder.join("guest"));
    let working = folder.join("working");
    let start = Start::ToKeep { initramfs, state: &state };
    let boot = Boot { start, dir: &dir, working: &working, ..*boot };
    let guest = Guest::boot(&boot, Box::new(|_| Ok(())))?;
    let mut save = Save { guest, announced: false, writes: false, written: None, useless: 0 };
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
                let reason = save.guest.with_complaint(&error);
                save.guest.end_for(reason)
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
            anyhow::ensure!(
                *announced,
                "the guest panicked before it came to rest; see its console, or leave out --warm"
            );
            control.write()?;
            self.writes = true;
        }
        if control.is_over() {
            let since = self.written.get_or_insert_with(Instant::now);
            if whole(state).exists() {
                if !is_too_far(state)? {
                    return Ok(Some(None));
                }
                self.useless += 1;
                anyhow::ensure!(
                    self.useless < STATES,
                    "no QEMU that records can go on from where this board comes to rest; leave out \
                     --warm"
                );
                fs::remove_file(whole(state)).context("the state of the board")?;
                control.go_on_to_next_pause()?;
                self.announced = false;
                (self.writes, self.written) = (false, None);
                return Ok(None);
            }
            anyhow::ensure!(since.elapsed() < LAST_BYTES, "the board's state is not whole");
        }
        Ok(None)
    }
}

/// Start of the instructions in a state: the mark of a part, the length of its name, the name, its
/// version (`icount_vmstate_timers` in softmmu/icount.c of QEMU).
const INSTRUCTIONS: &[u8] = b"\x05\x0ctimer/icount\0\0\0\x01";

/// Whether a board has executed so many instructions that a QEMU that records aborts when the
/// board goes on: it takes the difference to none as a signed number of 32 bits, which must not
/// be negative (`replay_advance_current_icount` in replay/replay-internal.c).
fn is_too_far(state: &Path) -> Result<bool> {
    let bytes = fs::read(state).context("the state of the board")?;
    Ok(instructions(&bytes).is_some_and(|count| count & (1 << 31) != 0))
}

/// How many instructions the board of a state has executed, if it says so. Devices come after the
/// memory, in which this program with its own copy of the mark may be.
fn instructions(state: &[u8]) -> Option<u64> {
    let at = state.windows(INSTRUCTIONS.len()).rposition(|window| window == INSTRUCTIONS)?;
    // After 64 bits of what idle time has added to the clock.
    let count = state.get(at + INSTRUCTIONS.len() + 8..)?.first_chunk()?;
    Some(u64::from_be_bytes(*count))
}

/// The file that says that a state is whole.
fn whole(state: &Path) -> std::path::PathBuf {
    let mut name = state.as_os_str().to_owned();
    name.push(".whole");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instructions_of_a_board_are_read_from_its_state() {
        let mut state = b"memory timer/icount, and before the part\x05\x0ctimer/icount".to_vec();
        state.extend(1_u32.to_be_bytes());
        state.extend(865_089_288_u64.to_be_bytes());
        state.extend(2_692_834_484_u64.to_be_bytes());
        assert_eq!(instructions(&state), Some(2_692_834_484));
        assert_eq!(instructions(&state[..state.len() - 1]), None);
        assert_eq!(instructions(b""), None);
        // Memory comes first, with a copy of the mark in it: that of this program.
        let memory = [INSTRUCTIONS, b"t text that follows it in memory"].concat();
        assert_eq!(instructions(&[memory, state].concat()), Some(2_692_834_484));
    }

    #[test]
    fn a_state_is_of_use_if_a_signed_difference_holds_its_instructions() {
        let folder = crate::testing::Folder::new();
        let path = folder.0.join("state");
        let too_far = |count: u64| {
            fs::write(&path, [INSTRUCTIONS, &[0; 8], &count.to_be_bytes()].concat()).unwrap();
            is_too_far(&path).unwrap()
        };
        assert!(!too_far(1_461_733_558) && !too_far((1 << 31) - 1));
        assert!(too_far(1 << 31) && too_far(2_692_834_484) && too_far((1 << 32) - 1));
        assert!(!too_far(1 << 32));
    }
}
