//! What a guest on x86 needs to be kept as it is and started again from there: it pauses
//! itself, and afterwards reads what it is to do from the emulator.

use std::io;

/// Pauses this machine, with the time of all of its clocks; returns when the emulator lets it go
/// on. On a board whose emulator does not pause at this, it returns at once.
///
/// It is the event "panicked" of QEMU's `pvpanic` (docs/specs/pvpanic.rst of QEMU), which with
/// `-action panic=pause` stops the machine at this very instruction.
///
/// # Errors
/// The errno of `ioperm(2)`; `Unsupported` on other machines than x86.
pub fn pause() -> io::Result<()> {
    machine::pause()
}

/// Executes 2^31 instructions that do nothing, and few more.
///
/// # Errors
/// `Unsupported` on other machines than x86.
pub fn pass_instructions() -> io::Result<()> {
    machine::pass_instructions()
}

/// The content of a file that the emulator was given for this guest, such as `opt/org/file`;
/// `None` if it has no file of that name.
///
/// # Errors
/// The errno of `ioperm(2)`; `Unsupported` if nothing answers, or on other machines than x86;
/// `InvalidData` if the list of files makes no sense.
pub fn emulator_file(name: &str) -> io::Result<Option<Vec<u8>>> {
    machine::emulator_file(name)
}

/// The firmware configuration device of QEMU (docs/specs/fw_cfg.rst of QEMU).
#[cfg(any(target_arch = "x86_64", test))]
mod directory {
    /// Length of an entry, bytes: size, key, two reserved bytes, name.
    pub const ENTRY: usize = 64;

    /// Most entries: keys have 14 bits.
    pub const MOST: u32 = 1 << 14;

    /// A file in the directory.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Entry {
        pub key: u16,
        /// Bytes.
        pub size: u32,
    }

    /// The file of this name in the entries.
    pub fn find(entries: &[u8], name: &str) -> Option<Entry> {
        entries.chunks_exact(ENTRY).find_map(|entry| {
            let (head, named) = entry.split_at(8);
            let end = named.iter().position(|byte| *byte == 0).unwrap_or(named.len());
            (&named[..end] == name.as_bytes()).then(|| Entry {
                size: u32::from_be_bytes([head[0], head[1], head[2], head[3]]),
                key: u16::from_be_bytes([head[4], head[5]]),
            })
        })
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;
    use std::io;

    use super::directory::{self, ENTRY, MOST};
    use crate::ports::{permitted, read_into, write_u8, write_u16};

    /// Default port of QEMU's `pvpanic`.
    const PVPANIC: u16 = 0x505;

    /// Its event "the guest panicked".
    const PANICKED: u8 = 1;

    /// The port that selects an item; the one after it gives the item byte by byte.
    const SELECTOR: u16 = 0x510;
    const DATA: u16 = 0x511;

    /// Items with a fixed key.
    const SIGNATURE: u16 = 0x00;
    const DIRECTORY: u16 = 0x19;

    pub fn pause() -> io::Result<()> {
        // SAFETY: the port is permitted; the device touches no memory.
        permitted(PVPANIC, 1, || unsafe { write_u8(PVPANIC, PANICKED) })
    }

    pub fn pass_instructions() -> io::Result<()> {
        // SAFETY: only the counter changes.
        unsafe {
            asm!(
                "2:",
                ".rept 254",
                "nop",
                ".endr",
                "dec {rounds}",
                "jnz 2b",
                rounds = inout(reg) (1_u64 << 31) / 256 => _,
                options(nomem, nostack),
            );
        }
        Ok(())
    }

    pub fn emulator_file(name: &str) -> io::Result<Option<Vec<u8>>> {
        permitted(SELECTOR, 2, || read_file(name))?
    }

    fn read_file(name: &str) -> io::Result<Option<Vec<u8>>> {
        let mut signature = [0; 4];
        select(SIGNATURE);
        next(&mut signature);
        if &signature != b"QEMU" {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let mut count = [0; 4];
        select(DIRECTORY);
        next(&mut count);
        let count = u32::from_be_bytes(count);
        if count > MOST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut entries = vec![0; ENTRY * usize::try_from(count).map_err(io::Error::other)?];
        next(&mut entries);
        let Some(entry) = directory::find(&entries, name) else { return Ok(None) };
        let mut bytes = vec![0; usize::try_from(entry.size).map_err(io::Error::other)?];
        select(entry.key);
        next(&mut bytes);
        Ok(Some(bytes))
    }

    fn select(key: u16) {
        // SAFETY: the caller has permitted the port; the device touches no memory.
        unsafe { write_u16(SELECTOR, key) };
    }

    /// The next bytes of the selected item; zeroes behind its end.
    fn next(buffer: &mut [u8]) {
        // SAFETY: as in `select`.
        unsafe { read_into(DATA, buffer) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod machine {
    use std::io;

    pub fn pause() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn pass_instructions() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn emulator_file(_: &str) -> io::Result<Option<Vec<u8>>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::directory::{ENTRY, Entry, find};

    fn entry(size: u32, key: u16, name: &str) -> Vec<u8> {
        let mut entry = [&size.to_be_bytes()[..], &key.to_be_bytes(), &[0, 0]].concat();
        entry.extend_from_slice(name.as_bytes());
        entry.resize(ENTRY, 0);
        entry
    }

    #[test]
    fn a_file_is_found_by_its_whole_name() {
        let longest = "x".repeat(ENTRY - 8);
        let files = [
            entry(0x1_0203, 0x20, "opt/punctual/order.old"),
            entry(0x0102_0304, 0x0121, "opt/punctual/order"),
            entry(7, 0x22, &longest),
        ]
        .concat();
        let found = find(&files, "opt/punctual/order");
        assert_eq!(found, Some(Entry { size: 0x0102_0304, key: 0x0121 }));
        assert_eq!(find(&files, &longest), Some(Entry { size: 7, key: 0x22 }), "without a zero");
        assert_eq!(find(&files, "opt/punctual"), None);
        assert_eq!(find(&files[..ENTRY * 2 - 1], "opt/punctual/order"), None, "cut short");
        assert_eq!(find(&[], ""), None);
    }
}
