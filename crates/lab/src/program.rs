//! The program that a board starts as its init, `punctual-board`. This one carries those of a
//! release, the same bytes for everyone: on a virtual board other code is another course.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use punctual_core::schema::{MARKS, Marks};
use punctual_sys::file;

use crate::arch::Arch;
use crate::decompress::{Compression, MOST};
use crate::elf::{self, Elf};

/// The packed programs that are carried; empty if punctual was built without (see build.rs).
const CARRIED: [(Arch, &[u8]); 2] = [
    (Arch::X86_64, include_bytes!(concat!(env!("OUT_DIR"), "/board-x86_64.gz"))),
    (Arch::Aarch64, include_bytes!(concat!(env!("OUT_DIR"), "/board-aarch64.gz"))),
];

/// The init of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub bytes: Vec<u8>,
    /// The file that it is from, if nobody named that one: the user is to know.
    pub chosen: Option<PathBuf>,
}

/// The executable for boards of an architecture: the named file, otherwise the one that is carried,
/// or without that `punctual-board-ARCH` next to this program or in `boards` of the target folder
/// that contains it.
///
/// # Errors
/// None exists, or it is not a static executable for that architecture.
pub fn find(arch: Arch, named: Option<&Path>) -> anyhow::Result<Program> {
    if let Some(path) = named {
        return Ok(Program { bytes: read(path, arch)?, chosen: None });
    }
    if let Some(bytes) = carried(arch)? {
        return Ok(Program { bytes, chosen: None });
    }
    let here = std::env::current_exe().context("the path of this program")?;
    if let Some(path) = near(&here, arch) {
        return Ok(Program { bytes: read(&path, arch)?, chosen: Some(path) });
    }
    bail!(
        "this punctual was built without the program that {arch} boards run: build both with `make \
         guests`, or take punctual-board-{arch} of a release and put it next to this program or \
         name it with --program"
    )
}

fn carried(arch: Arch) -> anyhow::Result<Option<Vec<u8>>> {
    let packed = CARRIED.into_iter().find(|(of, packed)| *of == arch && !packed.is_empty());
    let Some((_, packed)) = packed else { return Ok(None) };
    let bytes = Compression::Gzip.unpack(packed, MOST);
    let bytes = bytes.and_then(|bytes| check(&bytes, arch).map(|()| bytes));
    Ok(Some(bytes.with_context(|| format!("the program for {arch} boards that is carried"))?))
}

/// The file beside this program, or what `make guests` has left in its target folder, at any depth.
fn near(here: &Path, arch: Arch) -> Option<PathBuf> {
    let name = format!("punctual-board-{}", arch.name());
    let built = Path::new("boards").join(&name);
    let above = here.ancestors().skip(1).take(4).map(|folder| folder.join(&built));
    [here.with_file_name(&name)].into_iter().chain(above).find(|path| path.is_file())
}

/// Where this program can be seen at work, as it says in its file; `None`: it does not, or is not at
/// a fixed address.
#[must_use]
pub fn marks(program: &[u8]) -> Option<Marks> {
    let elf = Elf::read(program)?;
    program.as_chunks::<8>().0.windows(5).find_map(|words| {
        let all = words.strip_prefix(&MARKS)?.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let all: Vec<u64> = all.filter(|address| elf.is_code(*address)).collect();
        let [begin, sample, end] = all[..] else { return None };
        Some(Marks { begin, sample, end })
    })
}

fn read(path: &Path, arch: Arch) -> anyhow::Result<Vec<u8>> {
    let bytes =
        file::read(path, MOST).with_context(|| format!("cannot read {}", path.display()))?;
    check(&bytes, arch)
        .with_context(|| format!("{} cannot be the init of an {arch} board", path.display()))?;
    Ok(bytes)
}

/// Checks for a static 64-bit executable of that architecture: the initramfs has neither a
/// dynamic linker nor libraries.
fn check(bytes: &[u8], arch: Arch) -> anyhow::Result<()> {
    let elf = Elf::read(bytes).context("not a 64-bit little-endian ELF file")?;
    let machine = match arch {
        Arch::X86_64 => elf::X86_64,
        Arch::Aarch64 => elf::AARCH64,
    };
    ensure!(elf.machine == machine, "it is for another architecture");
    let dynamic = elf.is_dynamic().context("it is cut short")?;
    ensure!(!dynamic, "it is not static: it needs a dynamic linker");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_static_programs_of_the_board_will_do() {
        let own = fs::read("/proc/self/exe").unwrap();
        let other = if cfg!(target_arch = "x86_64") { Arch::Aarch64 } else { Arch::X86_64 };
        assert!(check(&own, other).unwrap_err().to_string().contains("architecture"));
        assert!(check(&own[..10], other).unwrap_err().to_string().contains("ELF"));
        assert!(check(b"#!/bin/sh\n", other).unwrap_err().to_string().contains("ELF"));
        // Test programs are dynamic with the GNU libc, and static with musl.
        let same = if cfg!(target_arch = "x86_64") { Arch::X86_64 } else { Arch::Aarch64 };
        assert_eq!(check(&own, same).is_ok(), cfg!(target_env = "musl"));
        assert!(check(&own[..70], same).unwrap_err().to_string().contains("cut short"));
    }

    #[test]
    fn marks_are_three_places_in_the_code_after_their_name() {
        let mut program = vec![0_u8; 64 + 56];
        program[..6].copy_from_slice(b"\x7fELF\x02\x01");
        program[32] = 64;
        program[54..57].copy_from_slice(&[56, 0, 1]);
        // PT_LOAD, executable, from 0x1000, of 0x100 bytes.
        for (at, value) in [(0, 1 | 5 << 32), (16, 0x1000), (32, 0x100_u64)] {
            program[64 + at..64 + at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let with = |all: [u64; 3]| {
            let addresses = all.iter().flat_map(|address| address.to_le_bytes());
            let bytes = MARKS.into_iter().flatten().chain(addresses);
            let others = MARKS.into_iter().flatten().chain([0; 24]);
            program.iter().copied().chain(others).chain(bytes).collect::<Vec<u8>>()
        };
        let found = marks(&with([0x1000, 0x1040, 0x10ff]));
        assert_eq!(found, Some(Marks { begin: 0x1000, sample: 0x1040, end: 0x10ff }));
        assert_eq!(marks(&with([0x1000, 0x1040, 0x1100])), None);
        assert_eq!(marks(&with([0x1000, 0x1040, 0xfff])), None);
        assert_eq!(marks(&program), None);
    }

    #[test]
    fn what_is_beside_this_program_is_found_before_what_was_built() {
        let folder = std::env::temp_dir().join(format!("punctual-program-{}", std::process::id()));
        let here = folder.join("x86_64-unknown-linux-musl/release/punctual");
        assert_eq!(near(&here, Arch::Aarch64), None);
        let put = |path: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        // Another machine's, and the program that measures on the host.
        put("boards/punctual-board-x86_64");
        put("aarch64-unknown-linux-musl/release/punctual");
        assert_eq!(near(&here, Arch::Aarch64), None);
        let built = put("boards/punctual-board-aarch64");
        for here in [here.clone(), folder.join("debug/punctual"), folder.join("debug/deps/lab-1")] {
            assert_eq!(near(&here, Arch::Aarch64), Some(built.clone()));
        }
        let beside = put("x86_64-unknown-linux-musl/release/punctual-board-aarch64");
        assert_eq!(near(&here, Arch::Aarch64), Some(beside));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_named_or_carried_is_not_chosen() {
        let named = find(Arch::X86_64, Some(Path::new("/proc/self/cmdline"))).unwrap_err();
        assert!(format!("{named:#}").contains("/proc/self/cmdline"), "{named:#}");
        for (arch, packed) in CARRIED {
            let carried = carried(arch).unwrap();
            assert_eq!(carried.is_some(), !packed.is_empty(), "{arch}");
            if let Some(bytes) = carried {
                assert_eq!(find(arch, None).unwrap(), Program { bytes, chosen: None });
            }
        }
    }
}
