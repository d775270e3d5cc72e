//! A guest's console: a file that QEMU writes and the run keeps.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use punctual_core::text::clean_start;

use crate::bounds::LOG;

/// Name of the file in the run directory.
pub const CONSOLE: &str = "console.log";

/// Lines that are shown if a guest fails.
const LAST_LINES: usize = 12;

/// Longest line that is shown, characters.
const LONGEST_LINE: usize = 1_000;

/// Start of the line in which the kernel says why it panics; its stack and registers follow.
const PANIC: &str = "Kernel panic - ";

/// The console of one guest.
#[derive(Debug)]
pub(crate) struct Console {
    path: PathBuf,
    /// Its length at the last check, bytes.
    length: u64,
}

impl Console {
    /// That of a run directory, empty as yet.
    pub(crate) fn of(dir: &Path) -> Self {
        Self { path: dir.join(CONSOLE), length: 0 }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything was written since the last call.
    pub(crate) fn has_grown(&mut self) -> bool {
        let length = fs::metadata(&self.path).map_or(0, |file| file.len());
        std::mem::replace(&mut self.length, length) != length
    }

    /// Its length at the last call of [`Console::has_grown`], bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// The last lines, preceded by the reason of a kernel panic if there was one.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        let mut console = Vec::new();
        // What cannot be read is not shown.
        let _ =
            File::open(&self.path).and_then(|file| file.take(2 * LOG).read_to_end(&mut console));
        last_lines(&console)
    }
}

fn last_lines(console: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(console);
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let printable = |line: &str| clean_start(line.trim_end_matches('\r'), LONGEST_LINE);
    let mut last: Vec<String> = lines().rev().take(LAST_LINES).map(printable).collect();
    last.reverse();
    let is_reason = |line: &&str| line.contains(PANIC) && !line.contains("---[ end");
    if let Some(reason) = lines().find(is_reason).map(printable)
        && !last.contains(&reason)
    {
        last[0] = reason;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn the_reason_of_a_panic_is_shown_before_the_last_lines() {
        assert_eq!(last_lines(b"one\r\n\r\ntwo\x07\r\n"), ["one", "two\u{fffd}"]);
        assert_eq!(last_lines(b""), [""; 0]);
        let panic = "[ 6.2] Kernel panic - not syncing: Attempted to kill init!";
        let trace: String = (0..20).map(|number| format!("frame {number}\n")).collect();
        let end = "---[ end Kernel panic - not syncing: Attempted to kill init! ]---";
        let shown = last_lines(format!("{panic}\n{trace}{end}\n").as_bytes());
        assert_eq!(shown.len(), LAST_LINES);
        assert_eq!((&shown[0], &shown[1]), (&panic.to_owned(), &"frame 10".to_owned()));
        assert_eq!(shown[LAST_LINES - 1], end);
        let short = last_lines(format!("{panic}\n{end}\n").as_bytes());
        assert_eq!(short, [panic, end]);
    }

    #[test]
    fn growth_is_seen_once() {
        let folder = Folder::new();
        let mut console = Console::of(&folder.0);
        assert!(!console.has_grown());
        fs::write(console.path(), "booting\n").unwrap();
        assert!(console.has_grown());
        assert!(!console.has_grown());
        assert_eq!(console.last_lines(), ["booting"]);
    }
}
