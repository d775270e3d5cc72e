//! Warm boards: a board boots once and pauses when its kernel has come to rest. Its state is
//! kept, and further guests go on from there.

mod origin;
mod save;
mod store;

use anyhow::{Context, Result};

use crate::arch::Arch;
use crate::board::BoardSpec;
use crate::qemu::{Boot, End};
pub(crate) use origin::Origin;
use save::{Saved, save};
pub(crate) use store::Snapshot;
use store::{Boards, Found};

/// What makes QEMU record. A QEMU that records cannot write its state (7.2 aborts).
const RECORDS: &str = ",rr=record,rrfile=/dev/null";

/// Devices whose state QEMU does not write.
const NOT_WRITTEN: [&str; 1] = ["edu"];

/// Options with which a guest can pause itself.
const PAUSES: [&str; 4] = ["-device", "pvpanic", "-action", "panic=pause"];

/// What became of a board that was to be kept.
#[derive(Debug)]
pub(crate) enum Kept {
    Snapshot(Snapshot),
    /// It did not come to its pause, or cannot be kept. This is how it ended, and its console.
    Failed(End, Vec<u8>),
}

/// Who waits for a kept board.
pub(crate) trait Waiter {
    /// Hears what takes long.
    fn note(&mut self, text: &str);
    /// Hears what is not as it should be.
    fn warn(&mut self, text: &str);
    /// Called while nothing happens; waits briefly. `true` ends everything.
    fn pause(&mut self) -> bool;
}

/// Checks that a board can be kept.
///
/// # Errors
/// Why not, and what to do.
pub fn check(board: &BoardSpec) -> Result<(), String> {
    let cold = "leave out --warm";
    if board.arch != Arch::X86_64 {
        return Err(format!(
            "--warm: the board {} has no device with which a guest can pause itself; {cold}",
            board.arch.name()
        ));
    }
    if board.cpus > 1 {
        return Err(format!("--warm: only a board with one CPU is kept; {cold}"));
    }
    if board.mips.is_none() {
        return Err(format!("--warm: a guest without counted time is not kept; {cold}"));
    }
    if let Some(why) = board.not_exact().first() {
        return Err(format!("--warm: only an exact board is kept ({why}); {cold}"));
    }
    let missing = board.all_devices().find(|device| NOT_WRITTEN.contains(&device.name));
    missing.map_or(Ok(()), |device| {
        Err(format!("--warm: QEMU does not write the state of {}; {cold}", device.name))
    })
}

/// QEMU's options for the boot whose state is kept, from those of a board.
pub(crate) fn options_to_keep(board: &[String]) -> Vec<String> {
    let own = board.iter().map(|option| option.replace(RECORDS, ""));
    own.chain(PAUSES.iter().map(|option| (*option).to_owned())).collect()
}

/// The kept state of a board with so much memory, MiB, which is booted if there is none; `None` if
/// nothing is wanted any more. Only one process boots and keeps at a time; others wait for it.
/// `boot` has neither the guest's folders nor what it starts from.
pub(crate) fn obtain(
    origin: &Origin,
    boot: &Boot<'_>,
    initramfs: &[u8],
    memory_mib: u32,
    waiter: &mut dyn Waiter,
) -> Option<Kept> {
    let failed = |error: anyhow::Error| {
        let troubles = vec![format!("{error:#}")];
        Some(Kept::Failed(End { troubles, last_lines: Vec::new() }, Vec::new()))
    };
    find_or_save(origin, boot, initramfs, memory_mib, waiter).unwrap_or_else(failed)
}

fn find_or_save(
    origin: &Origin,
    boot: &Boot<'_>,
    initramfs: &[u8],
    memory_mib: u32,
    waiter: &mut dyn Waiter,
) -> Result<Option<Kept>> {
    let boards = Boards::of_user()?;
    if let Found::Kept(snapshot) = boards.find(origin) {
        return Ok(Some(Kept::Snapshot(snapshot)));
    }
    let mut waits = false;
    let writer = loop {
        if let Some(writer) = boards.writer()? {
            break writer;
        }
        if !waits {
            waiter.note("waits for another punctual that keeps a board");
            waits = true;
        }
        if waiter.pause() {
            return Ok(None);
        }
    };
    match boards.find(origin) {
        Found::Kept(snapshot) => return Ok(Some(Kept::Snapshot(snapshot))),
        Found::Damaged(why) => {
            waiter.warn(&format!("the kept board is damaged, and is made anew: {why}"));
            writer.remove(origin)?;
        }
        Found::Nothing => {}
    }
    boards.check_room(u64::from(memory_mib) << 20)?;
    waiter.note("boots once, to be kept");
    let mut pause = || waiter.pause();
    Ok(match save(boot, initramfs, writer.partial(origin)?, &mut pause)? {
        Saved::Whole(partial) => {
            let kept = writer.keep(partial, origin);
            Some(Kept::Snapshot(kept.context("cannot keep the board's state")?))
        }
        Saved::Failed(end, console) => Some(Kept::Failed(end, console)),
        Saved::Interrupted => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::find;

    #[test]
    fn boards_that_cannot_be_kept_are_refused() {
        let board = BoardSpec::default;
        check(&board()).unwrap();
        let device = |name| vec![find(name).unwrap()];
        for name in ["parport", "serial", "rtc", "sound", "disk"] {
            check(&BoardSpec { devices: device(name), ..board() }).unwrap();
        }
        for (board, says) in [
            (BoardSpec { arch: Arch::Aarch64, ..board() }, "aarch64 has no device"),
            (BoardSpec { mips: None, ..board() }, "without counted time"),
            (BoardSpec { cpus: 2, ..board() }, "one CPU"),
            (BoardSpec { devices: device("virtio-disk"), ..board() }, "only an exact board"),
            (BoardSpec { measured: device("edu"), ..board() }, "the state of edu"),
        ] {
            let why = check(&board).unwrap_err();
            assert!(why.contains(says) && why.contains("leave out --warm"), "{why}");
        }
    }

    #[test]
    fn a_board_that_is_kept_does_not_record_and_can_pause() {
        let board = BoardSpec::default().options("max", 1);
        assert!(board.join(" ").contains("rr=record"));
        let text = options_to_keep(&board).join(" ");
        assert!(text.contains("-icount shift=2,sleep=off -seed 1"), "{text}");
        assert!(text.ends_with("-device pvpanic -action panic=pause"), "{text}");
    }
}
