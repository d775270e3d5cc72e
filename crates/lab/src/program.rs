//! The punctual that a board starts as its init: this program, or one built for the board.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use punctual_core::schema::{MARKS, Marks};
use punctual_sys::file;

use crate::arch::Arch;
use crate::decompress::MOST;
use crate::elf::{self, Elf};

/// The executable for boards of an architecture: the named file, otherwise this program,
/// `punctual-ARCH` next to it, or the output of a build for that target.
///
/// # Errors
/// None exists, or it is not a static executable for that architecture.
pub fn find(arch: Arch, named: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    if let Some(path) = named {
        return read(path, arch);
    }
    let here = std::env::current_exe().context("the path of this program")?;
    let own = fs::read("/proc/self/exe").context("this program")?;
    if check(&own, arch).is_ok() {
        return Ok(own);
    }
    let beside = here.with_file_name(format!("punctual-{}", arch.name()));
    let built = built_below(&here, arch);
    for path in [Some(&beside), built.as_ref()].into_iter().flatten() {
        if path.is_file() {
            return read(path, arch);
        }
    }
    let target = format!("{}-unknown-linux-musl", arch.name());
    bail!(
        "there is no static punctual for {arch} boards: build one (rustup target add {target} && \
         cargo build --release --target {target} -p punctual), then put it next to this program as \
         punctual-{arch} or give it with --program"
    )
}

/// `ARCH-unknown-linux-musl/release/punctual` in the target folder that contains this program,
/// at any depth.
fn built_below(here: &Path, arch: Arch) -> Option<PathBuf> {
    let built = format!("{}-unknown-linux-musl/release/punctual", arch.name());
    here.ancestors().skip(1).take(4).map(|folder| folder.join(&built)).find(|path| path.is_file())
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
    fn what_was_built_beside_this_program_is_found() {
        let folder = std::env::temp_dir().join(format!("punctual-program-{}", std::process::id()));
        let here = folder.join("x86_64-unknown-linux-musl/release/punctual");
        assert_eq!(built_below(&here, Arch::Aarch64), None);
        let built = folder.join("aarch64-unknown-linux-musl/release/punctual");
        fs::create_dir_all(built.parent().unwrap()).unwrap();
        fs::write(&built, "").unwrap();
        assert_eq!(built_below(&here, Arch::Aarch64), Some(built));
        assert!(built_below(&folder.join("debug/punctual"), Arch::Aarch64).is_some());
        fs::remove_dir_all(folder).unwrap();
    }
}
