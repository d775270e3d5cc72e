//! Which build of the kernel is running.

use std::fmt::Write as _;

use serde::Serialize;

use super::root::FactsRoot;

/// What the kernel's image says about itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KernelImage {
    /// The GNU build ID, hexadecimal: the linker's hash of the image. It distinguishes builds
    /// of the same version and finds the debug symbols.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

impl KernelImage {
    /// Reads `/sys/kernel/notes`.
    #[must_use]
    pub fn read(root: &FactsRoot) -> Self {
        let notes = root.bytes("sys/kernel/notes").unwrap_or_default();
        Self { build_id: build_id(&notes).map(hexadecimal) }
    }
}

/// `NT_GNU_BUILD_ID` in elf.h.
const BUILD_ID: u32 = 3;
/// Linkers write 8 to 20 bytes by default.
const BUILD_ID_BYTES: std::ops::RangeInclusive<usize> = 1..=64;

/// The build ID in ELF notes (elf(5), "Notes"), which are in the byte order of the machine.
fn build_id(notes: &[u8]) -> Option<&[u8]> {
    let mut rest = notes;
    loop {
        let (name_size, after) = number(rest)?;
        let (value_size, after) = number(after)?;
        let (kind, after) = number(after)?;
        let (name, after) = padded(after, name_size)?;
        let (value, after) = padded(after, value_size)?;
        if kind == BUILD_ID && name == b"GNU\0" {
            return Some(value).filter(|value| BUILD_ID_BYTES.contains(&value.len()));
        }
        rest = after;
    }
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_ne_bytes(*number), rest))
}

/// A field, and what follows its padding to four bytes; the last field may lack the padding.
fn padded(bytes: &[u8], size: u32) -> Option<(&[u8], &[u8])> {
    let size = usize::try_from(size).ok()?;
    let field = bytes.get(..size)?;
    let rest = bytes.get(size.checked_next_multiple_of(4)?..).unwrap_or_default();
    Some((field, rest))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `/sys/kernel/notes` of a virtual machine, x86-64 with Linux 6.18: the build ID, two
    /// notes of Linux and two for Xen.
    const NOTES: &[u8] = include_bytes!("../../tests/fixtures/notes.bin");
    const ID: &str = "e4f18d9dc1d0e6fc2b17e93e885a647b3c0a6fc1";

    fn note(name: &[u8], kind: u32, value: &[u8]) -> Vec<u8> {
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_ne_bytes();
        let mut note = [size(name), size(value), kind.to_ne_bytes()].concat();
        for field in [name, value] {
            note.extend(field);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    fn id(notes: &[u8]) -> Option<String> {
        build_id(notes).map(hexadecimal)
    }

    #[test]
    fn the_notes_of_a_real_kernel() {
        assert_eq!(id(NOTES).as_deref(), Some(ID));
        // The notes after it are walked through.
        let last = [&NOTES[36..], &NOTES[..36]].concat();
        assert_eq!(id(&last).as_deref(), Some(ID));
    }

    #[test]
    fn notes_that_were_cut_short() {
        for length in 0..36 {
            assert_eq!(id(&NOTES[..length]), None, "{length}");
        }
        assert_eq!(id(&NOTES[..36]).as_deref(), Some(ID));
        for length in 36..NOTES.len() {
            assert_eq!(id(&NOTES[36..length]), None, "{length}");
        }
    }

    #[test]
    fn sizes_are_padded_to_four_bytes() {
        let before = note(b"Linux\0", 0x100, b"6.1.102\0\0");
        let notes = [before, note(b"GNU\0", 3, &[1, 2, 0xab])].concat();
        assert_eq!(id(&notes).as_deref(), Some("0102ab"));
        // The last padding may be missing.
        assert_eq!(id(&notes[..notes.len() - 1]).as_deref(), Some("0102ab"));
    }

    #[test]
    fn other_notes_are_no_build_id() {
        let id_of = |name, kind, value: &[u8]| id(&note(name, kind, value));
        assert_eq!(id_of(b"GNU\0", 1, &[1; 20]), None);
        assert_eq!(id_of(b"GNU", 3, &[1; 20]), None);
        assert_eq!(id_of(b"Xen\0", 3, &[1; 20]), None);
        assert_eq!(id_of(b"GNU\0", 3, &[]), None);
        assert_eq!(id_of(b"GNU\0", 3, &[1; 65]), None);
        assert_eq!(id_of(b"GNU\0", 3, &[1; 64]).unwrap().len(), 128);
    }

    #[test]
    fn sizes_that_no_file_has() {
        for at in [0, 4] {
            for size in [u32::MAX, u32::MAX - 2, 1 << 31, 153] {
                let mut notes = NOTES.to_vec();
                notes[at..at + 4].copy_from_slice(&size.to_ne_bytes());
                assert_eq!(id(&notes), None, "{size} at {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(0_u8.., 0..200)) {
            if let Some(id) = build_id(&bytes) {
                prop_assert!(BUILD_ID_BYTES.contains(&id.len()));
            }
        }
    }
}
