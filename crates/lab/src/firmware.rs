//! The firmware of a board, which QEMU reads from files of its own and other packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use punctual_core::hash::Hasher;

use crate::arch::Arch;

/// What QEMU puts into the memory of an x86_64 board without a display, disks and networks:
/// SeaBIOS, the ROM of the interrupt controller, and those that start an ELF kernel with a PVH
/// entry or a bzImage.
const X86_64: [&str; 4] = ["bios-256k.bin", "kvmvapic.bin", "pvh.bin", "linuxboot_dma.bin"];

/// The SHA-256 of the files, one after the other, as this QEMU finds them. `None` if the boards
/// of the architecture have no firmware, or no file is found: QEMU then says so itself.
///
/// # Errors
/// QEMU cannot be started, or a file cannot be read.
pub(crate) fn hash(program: &Path, arch: Arch) -> Result<Option<String>> {
    match arch {
        // A kernel is started by QEMU itself.
        Arch::Aarch64 => Ok(None),
        Arch::X86_64 => {
            let output = Command::new(program).args(["-L", "help"]).stdin(Stdio::null()).output();
            let output = output.with_context(|| format!("cannot start {}", program.display()))?;
            let text = String::from_utf8_lossy(&output.stdout);
            let folders: Vec<_> = text.lines().map(PathBuf::from).collect();
            of_folders(&folders, &X86_64)
        }
    }
}

/// The hash of the files with these names, each from the first folder that has it; `None` if
/// there are none.
fn of_folders(folders: &[PathBuf], names: &[&str]) -> Result<Option<String>> {
    let mut hasher = None;
    for name in names {
        let mut paths = folders.iter().map(|folder| folder.join(name));
        if let Some(path) = paths.find(|path| path.is_file()) {
            let bytes =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            hasher.get_or_insert_with(Hasher::default).update(&bytes);
        }
    }
    Ok(hasher.map(Hasher::finish))
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_core::hash::sha256;

    #[test]
    fn each_file_is_read_from_the_first_folder_that_has_it() {
        let root = std::env::temp_dir().join(format!("punctual-firmware-{}", std::process::id()));
        let folders = ["one", "two"].map(|name| root.join(name));
        for (path, text) in [("one/b", "B"), ("two/a", "A"), ("two/b", "other")] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let found = of_folders(&folders, &["a", "b", "absent"]).unwrap();
        assert_eq!(found, Some(sha256(b"AB")));
        assert_eq!(of_folders(&folders, &["absent"]).unwrap(), None);
        fs::remove_dir_all(root).unwrap();
    }
}
