//! The functions of programs that guests were given (`--files`).
//!
//! Where the code of a process is, its file says only if it is executed where it was linked
//! (`ET_EXEC`); others lie elsewhere in each process. Which program a thread executes is known by
//! the thread's name, which `exec` sets to the name of the file (`begin_new_exec`, fs/exec.c).

use crate::elf::Elf;
use crate::extra::ExtraFile;

/// Bytes of a thread's name (`TASK_COMM_LEN`, without the zero at its end).
const NAME_MOST: usize = 15;

/// A program of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GuestProgram {
    /// What its threads are called unless they say otherwise.
    pub(super) thread: String,
    /// Address, size in bytes and name of its functions.
    pub(super) functions: Vec<(u64, u64, String)>,
}

/// The programs among a guest's files whose functions are known. Of several that threads do not
/// tell apart there is none, unless they are the same.
pub(super) fn of(files: &[ExtraFile]) -> Vec<GuestProgram> {
    let executable = || files.iter().filter(|file| file.mode & 0o111 != 0);
    let name = |file: &ExtraFile| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        String::from_utf8_lossy(&name.as_bytes()[..name.len().min(NAME_MOST)]).into_owned()
    };
    let mut all: Vec<GuestProgram> = Vec::new();
    for file in executable() {
        let thread = name(file);
        let is_other = |other: &&ExtraFile| name(other) == thread && other.content != file.content;
        if executable().any(|other| is_other(&other)) || all.iter().any(|of| of.thread == thread) {
            continue;
        }
        let symbols = Elf::read(&file.content).map(|elf| elf.program_functions());
        let symbols = symbols.unwrap_or_default().into_iter();
        let functions: Vec<_> = symbols.map(|of| (of.at, of.size, of.name)).collect();
        if !functions.is_empty() {
            all.push(GuestProgram { thread, functions });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::{object, program};

    #[test]
    fn programs_are_known_by_the_names_of_their_threads() {
        let file = |path: &str, mode: u32, content: &[u8]| ExtraFile {
            path: path.to_owned(),
            mode,
            content: content.to_owned(),
        };
        let one = program(&[("main", 2, 1, 0x40_0010, 0x20)]);
        let other = program(&[("spin", 2, 1, 0x40_0020, 0x20)]);
        let files = [
            file("a/twice", 0o755, &one),
            file("b/twice", 0o755, &other),
            file("bin/burn", 0o755, &one),
            file("data", 0o644, &one),
            file("object", 0o755, &object(&[("first", 2, 1, 0, 0x20)])),
            file("sbin/burn", 0o755, &one),
            file("script", 0o755, b"#!/bin/sh"),
            file("usr/a-name-too-long-for-a-thread", 0o700, &other),
        ];
        let of = |thread: &str, at: u64, name: &str| GuestProgram {
            thread: thread.to_owned(),
            functions: vec![(at, 0x20, name.to_owned())],
        };
        let expected = [of("burn", 0x40_0010, "main"), of("a-name-too-long", 0x40_0020, "spin")];
        assert_eq!(super::of(&files), expected);
    }
}
