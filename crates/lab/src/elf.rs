//! The small part of 64-bit little-endian ELF that is needed here (System V ABI, gABI chapters
//! 4 and 5). The bytes are not trusted: whatever is out of bounds counts as absent.

/// `EM_X86_64`.
pub(crate) const X86_64: u16 = 62;
/// `EM_AARCH64`.
pub(crate) const AARCH64: u16 = 183;

const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;

/// An ELF file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elf<'a> {
    bytes: &'a [u8],
    /// Architecture, `e_machine`.
    pub(crate) machine: u16,
}

impl<'a> Elf<'a> {
    /// `None` if the bytes are not a 64-bit little-endian ELF file.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let is_elf64_little_endian = bytes.starts_with(b"\x7fELF\x02\x01");
        Some(Self { bytes, machine: u16_at(bytes, 18)? }).filter(|_| is_elf64_little_endian)
    }

    /// Whether it needs a dynamic linker (`PT_INTERP`); `None` if its program headers are
    /// truncated.
    pub(crate) fn is_dynamic(&self) -> Option<bool> {
        let count = usize::from(u16_at(self.bytes, 56)?);
        (0..count).try_fold(false, |dynamic, index| {
            let kind = u32_at(self.header(32, 54, index)?, 0)?;
            Some(dynamic || kind == PT_INTERP)
        })
    }

    /// The content of the first section of this name.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&'a [u8]> {
        let names_header = self.section_header(usize::from(u16_at(self.bytes, 62)?))?;
        let names = part(self.bytes, u64_at(names_header, 24)?, u64_at(names_header, 32)?)?;
        let count = usize::from(u16_at(self.bytes, 60)?);
        (0..count).filter_map(|index| self.section_header(index)).find_map(|header| {
            let start = usize::try_from(u32_at(header, 0)?).ok()?;
            if text_at(names.get(start..)?) != name {
                return None;
            }
            part(self.bytes, u64_at(header, 24)?, u64_at(header, 32)?)
        })
    }

    /// Whether a `PT_NOTE` segment has a note of this owner and type.
    pub(crate) fn has_note(&self, owner: &[u8], kind: u32) -> bool {
        let count = u16_at(self.bytes, 56).map_or(0, usize::from);
        (0..count)
            .filter_map(|index| self.header(32, 54, index))
            .filter(|header| u32_at(header, 0) == Some(PT_NOTE))
            .filter_map(|header| part(self.bytes, u64_at(header, 8)?, u64_at(header, 32)?))
            .any(|notes| notes_have(notes, owner, kind))
    }

    fn section_header(&self, index: usize) -> Option<&'a [u8]> {
        self.header(40, 58, index)
    }

    /// Entry `index` of a table whose offset and entry size are stored at these places.
    fn header(&self, offset_at: usize, size_at: usize, index: usize) -> Option<&'a [u8]> {
        let table = usize::try_from(u64_at(self.bytes, offset_at)?).ok()?;
        let size = usize::from(u16_at(self.bytes, size_at)?);
        let start = table.checked_add(size.checked_mul(index)?)?;
        self.bytes.get(start..start.checked_add(size)?)
    }
}

fn notes_have(mut notes: &[u8], owner: &[u8], kind: u32) -> bool {
    let mut next = || -> Option<bool> {
        let length = |at| u32_at(notes, at).and_then(|length| usize::try_from(length).ok());
        let (name_length, description_length) = (length(0)?, length(4)?);
        let name = notes.get(12..12_usize.checked_add(name_length)?)?;
        let found = text_at(name) == owner && u32_at(notes, 8)? == kind;
        // Both are padded to four bytes.
        let padded = |length: usize| length.checked_next_multiple_of(4);
        let end = 12_usize.checked_add(padded(name_length)?)?;
        notes = notes.get(end.checked_add(padded(description_length)?)?..).unwrap_or(&[]);
        Some(found)
    };
    while let Some(found) = next() {
        if found {
            return true;
        }
    }
    false
}

/// The bytes up to the first NUL, or all of them.
pub(crate) fn text_at(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or(bytes)
}

fn part(bytes: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The little-endian number at an offset.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

/// The little-endian number at an offset.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// The little-endian number at an offset.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An ELF file with one section and, as a `PT_NOTE` segment, the same bytes.
    pub(crate) fn file(machine: u16, section: &str, content: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0_u8; 64 + 56];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let content_at = 64_u64 + 56;
        let names_at = content_at + content.len() as u64;
        let names = [b"\0", section.as_bytes(), b"\0"].concat();
        let headers_at = names_at + names.len() as u64;
        put(0, b"\x7fELF\x02\x01\x01");
        put(18, &machine.to_le_bytes());
        put(32, &64_u64.to_le_bytes());
        put(40, &headers_at.to_le_bytes());
        for (at, value) in [(54, 56_u16), (56, 1), (58, 64), (60, 2), (62, 1)] {
            put(at, &value.to_le_bytes());
        }
        put(64, &PT_NOTE.to_le_bytes());
        put(64 + 8, &content_at.to_le_bytes());
        put(64 + 32, &(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(&names);
        for (name, at, length) in [(1_u32, content_at, content.len()), (0, names_at, names.len())] {
            let mut header = [0_u8; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[24..32].copy_from_slice(&at.to_le_bytes());
            header[32..40].copy_from_slice(&(length as u64).to_le_bytes());
            bytes.extend_from_slice(&header);
        }
        bytes
    }

    /// A note as the gABI lays it out.
    pub(crate) fn note(owner: &str, kind: u32, description: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for value in [owner.len() + 1, description.len()] {
            note.extend_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
        }
        note.extend_from_slice(&kind.to_le_bytes());
        for bytes in [&[owner.as_bytes(), b"\0"].concat()[..], description] {
            note.extend_from_slice(bytes);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn a_section_is_found_by_its_name() {
        let bytes = file(X86_64, ".modinfo", b"depends=\0");
        let elf = Elf::read(&bytes).unwrap();
        assert_eq!(elf.machine, X86_64);
        assert_eq!(elf.section(b".modinfo"), Some(&b"depends=\0"[..]));
        assert_eq!(elf.section(b".text"), None);
    }

    #[test]
    fn a_note_is_found_after_others() {
        let notes = [note("GNU", 3, b"12345"), note("Xen", 18, &[0; 8])].concat();
        let bytes = file(X86_64, "", &notes);
        let elf = Elf::read(&bytes).unwrap();
        assert!(elf.has_note(b"Xen", 18));
        assert!(elf.has_note(b"GNU", 3));
        assert!(!elf.has_note(b"Xen", 3));
    }

    #[test]
    fn a_program_with_an_interpreter_is_dynamic() {
        let mut bytes = file(X86_64, "", b"");
        assert_eq!(Elf::read(&bytes).unwrap().is_dynamic(), Some(false));
        assert_eq!(Elf::read(&bytes[..100]).unwrap().is_dynamic(), None);
        assert_eq!(Elf::read(&bytes[..40]).unwrap().is_dynamic(), None);
        bytes[64..68].copy_from_slice(&PT_INTERP.to_le_bytes());
        assert_eq!(Elf::read(&bytes).unwrap().is_dynamic(), Some(true));
    }

    #[test]
    fn every_truncation_is_survived() {
        let bytes = file(AARCH64, ".modinfo", &note("Xen", 18, &[0; 8]));
        for length in 0..bytes.len() {
            if let Some(elf) = Elf::read(&bytes[..length]) {
                // The headers of sections are last: without the last byte one is lost.
                assert_eq!(elf.section(b".modinfo"), None, "{length}");
                elf.has_note(b"Xen", 18);
                elf.is_dynamic();
            }
        }
        for byte in 0..bytes.len() {
            let mut broken = bytes.clone();
            broken[byte] = 0xff;
            if let Some(elf) = Elf::read(&broken) {
                elf.section(b".modinfo");
                elf.has_note(b"Xen", 18);
                elf.is_dynamic();
            }
        }
    }
}
