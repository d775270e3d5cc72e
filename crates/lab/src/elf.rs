//! The small part of 64-bit little-endian ELF that is needed here (System V ABI, gABI chapters
//! 4 and 5). The bytes are not trusted: whatever is out of bounds counts as absent.

/// `EM_X86_64`.
pub(crate) const X86_64: u16 = 62;
/// `EM_AARCH64`.
pub(crate) const AARCH64: u16 = 183;

const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
const SHT_SYMTAB: u32 = 2;
const STT_FUNC: u8 = 2;
const ET_EXEC: u16 = 2;

/// Bytes of a symbol (gABI, chapter 4).
const SYMBOL: usize = 24;

/// Functions of a section that are read; those of the largest modules are some 10 000.
const MOST_FUNCTIONS: usize = 1 << 16;

/// Longest name of a function, bytes. Kernels allow 512 (`KSYM_NAME_LEN`).
const LONGEST_NAME: usize = 512;

/// A function of an object file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionSymbol {
    /// Where it begins in its section, or its address in a program.
    pub(crate) at: u64,
    /// Its length, bytes; not 0.
    pub(crate) size: u64,
    /// Its name: ASCII without spaces.
    pub(crate) name: String,
}

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

    /// Whether an address is in its code (`PT_LOAD` with `PF_X`).
    pub(crate) fn is_code(&self, address: u64) -> bool {
        let headers = (0..u16_at(self.bytes, 56).map_or(0, usize::from))
            .filter_map(|index| self.header(32, 54, index));
        let mut code = headers.filter(|header| {
            u32_at(header, 0) == Some(1) && u32_at(header, 4).is_some_and(|flags| flags & 1 == 1)
        });
        code.any(|header| {
            let offset = u64_at(header, 16).and_then(|start| address.checked_sub(start));
            offset.zip(u64_at(header, 32)).is_some_and(|(offset, length)| offset < length)
        })
    }

    /// The content of the first section of this name.
    pub(crate) fn section(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.named_section(name).and_then(|(_, header)| self.content(header))
    }

    /// The functions in the first section of this name of an object file, in the order of its
    /// table of symbols. What is out of bounds, too long or more than a module can have is absent.
    pub(crate) fn functions(&self, section: &[u8]) -> Vec<FunctionSymbol> {
        let functions = || {
            let (number, header) = self.named_section(section)?;
            let length = u64_at(header, 32)?;
            self.function_symbols(|of, at, end| {
                usize::from(of) == number && at < end && end <= length
            })
        };
        functions().unwrap_or_default()
    }

    /// The functions of a program that is executed at the addresses that its file says (`ET_EXEC`),
    /// in the order of its table of symbols; none of other programs. As in [`Elf::functions`].
    pub(crate) fn program_functions(&self) -> Vec<FunctionSymbol> {
        if u16_at(self.bytes, 16) != Some(ET_EXEC) {
            return Vec::new();
        }
        let is_code = |section: u16, at: u64, end: u64| section > 0 && at < end && self.is_code(at);
        self.function_symbols(is_code).unwrap_or_default()
    }

    /// Those of which this holds: their section, where they begin, and their end.
    fn function_symbols(
        &self,
        is_wanted: impl Fn(u16, u64, u64) -> bool,
    ) -> Option<Vec<FunctionSymbol>> {
        let is_table = |header: &&[u8]| u32_at(header, 4) == Some(SHT_SYMTAB);
        let table = self.section_headers().map(|(_, header)| header).find(is_table)?;
        let names = self.section_header(usize::try_from(u32_at(table, 40)?).ok()?)?;
        let names = self.content(names)?;
        let symbols = self.content(table)?.chunks_exact(SYMBOL);
        let function = |symbol: &[u8]| {
            if symbol.get(4)? & 0xf != STT_FUNC {
                return None;
            }
            let (at, size) = (u64_at(symbol, 8)?, u64_at(symbol, 16)?);
            let fits = is_wanted(u16_at(symbol, 6)?, at, at.checked_add(size)?);
            let name = names.get(usize::try_from(u32_at(symbol, 0)?).ok()?..)?;
            // A name without an end would be read once for each symbol.
            let name = text_at(name.get(..LONGEST_NAME).unwrap_or(name));
            let is_name =
                (1..LONGEST_NAME).contains(&name.len()) && name.iter().all(u8::is_ascii_graphic);
            let name = std::str::from_utf8(name).ok()?;
            (fits && is_name).then(|| FunctionSymbol { at, size, name: name.to_owned() })
        };
        Some(symbols.filter_map(function).take(MOST_FUNCTIONS).collect())
    }

    /// Number and header of the first section of this name.
    fn named_section(&self, name: &[u8]) -> Option<(usize, &'a [u8])> {
        let names = self.content(self.section_header(usize::from(u16_at(self.bytes, 62)?))?)?;
        self.section_headers().find(|(_, header)| {
            let start = u32_at(header, 0).and_then(|start| usize::try_from(start).ok());
            start.and_then(|start| names.get(start..)).is_some_and(|text| text_at(text) == name)
        })
    }

    fn section_headers(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        let count = u16_at(self.bytes, 60).map_or(0, usize::from);
        (0..count).filter_map(|index| Some((index, self.section_header(index)?)))
    }

    fn content(&self, header: &[u8]) -> Option<&'a [u8]> {
        part(self.bytes, u64_at(header, 24)?, u64_at(header, 32)?)
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

    /// An object file with a section `.text` of 256 bytes and these symbols: name, type, section,
    /// offset, size.
    pub(crate) fn object(symbols: &[(&str, u8, u16, u64, u64)]) -> Vec<u8> {
        let (mut table, mut names) = (vec![0_u8; SYMBOL], vec![0_u8]);
        for (name, kind, section, at, size) in symbols {
            table.extend(u32::try_from(names.len()).unwrap().to_le_bytes());
            table.extend([0x10 | kind, 0]);
            table.extend(section.to_le_bytes());
            table.extend(at.to_le_bytes());
            table.extend(size.to_le_bytes());
            names.extend(name.bytes().chain([0]));
        }
        let section_names = b"\0.text\0.symtab\0.strtab\0";
        let contents = [&[0x90; 256][..], &table, &names, section_names];
        let mut bytes = vec![0_u8; 64];
        let mut headers = vec![0_u8; 64];
        for ((content, name), kind) in contents.iter().zip([1_u32, 7, 15, 15]).zip([1, 2, 3, 3_u32])
        {
            let mut header = [0_u8; 64];
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            // The names of symbols.
            header[40] = if kind == SHT_SYMTAB { 3 } else { 0 };
            bytes.extend_from_slice(content);
            headers.extend_from_slice(&header);
        }
        let headers_at = bytes.len() as u64;
        bytes.extend_from_slice(&headers);
        bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        bytes[18..20].copy_from_slice(&X86_64.to_le_bytes());
        bytes[40..48].copy_from_slice(&headers_at.to_le_bytes());
        for (at, value) in [(58, 64_u16), (60, 5), (62, 4)] {
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// A program with such symbols, whose code is at 0x40_0000.
    pub(crate) fn program(symbols: &[(&str, u8, u16, u64, u64)]) -> Vec<u8> {
        let mut bytes = object(symbols);
        let header_at = bytes.len() as u64;
        let mut header = [0_u8; 56];
        header[..4].copy_from_slice(&1_u32.to_le_bytes());
        header[4..8].copy_from_slice(&5_u32.to_le_bytes());
        header[16..24].copy_from_slice(&0x40_0000_u64.to_le_bytes());
        header[32..40].copy_from_slice(&256_u64.to_le_bytes());
        bytes.extend_from_slice(&header);
        bytes[16..18].copy_from_slice(&ET_EXEC.to_le_bytes());
        bytes[32..40].copy_from_slice(&header_at.to_le_bytes());
        for (at, value) in [(54, 56_u16), (56, 1)] {
            bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn functions_of_a_program_have_addresses() {
        let mut bytes = program(&[
            ("main", 2, 1, 0x40_0010, 0x20),
            ("data", 1, 1, 0x40_0030, 8),
            ("imported", 2, 0, 0x40_0030, 8),
            ("elsewhere", 2, 1, 0x50_0000, 8),
            ("empty", 2, 1, 0x40_0040, 0),
        ]);
        let of = |bytes: &[u8]| Elf::read(bytes).unwrap().program_functions();
        let main = FunctionSymbol { at: 0x40_0010, size: 0x20, name: "main".to_owned() };
        assert_eq!(of(&bytes), [main]);
        // ET_DYN: where it will be is not known.
        bytes[16] = 3;
        assert_eq!(of(&bytes), []);
    }

    fn functions(bytes: &[u8]) -> Vec<FunctionSymbol> {
        Elf::read(bytes).map_or_else(Vec::new, |elf| elf.functions(b".text"))
    }

    #[test]
    fn functions_of_a_section_are_read() {
        let long = "x".repeat(LONGEST_NAME);
        let bytes = object(&[
            ("first", 2, 1, 0, 0x20),
            ("table", 1, 1, 0x20, 8),
            ("init", 2, 2, 0, 0x10),
            ("label", 2, 1, 0x30, 0),
            ("last", 2, 1, 0xc0, 0x40),
            ("outside", 2, 1, 0xc1, 0x40),
            ("endless", 2, 1, 0x10, u64::MAX),
            ("a b", 2, 1, 0, 1),
            ("\u{e9}", 2, 1, 0, 1),
            ("", 2, 1, 0, 1),
            (&long, 2, 1, 0, 1),
        ]);
        let of = |name: &str, at, size| FunctionSymbol { at, size, name: name.to_owned() };
        assert_eq!(functions(&bytes), [of("first", 0, 0x20), of("last", 0xc0, 0x40)]);
        assert_eq!(Elf::read(&bytes).unwrap().functions(b".init.text"), []);
        assert_eq!(functions(&file(X86_64, ".text", b"")), []);
    }

    #[test]
    fn damaged_symbols_are_absent() {
        let bytes = object(&[("first", 2, 1, 0, 0x20), ("last", 2, 1, 0xc0, 0x40)]);
        for length in 0..bytes.len() {
            assert_eq!(functions(&bytes[..length]), [], "{length}");
        }
        for place in 0..bytes.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut broken = bytes.clone();
                broken[place] = byte;
                assert!(functions(&broken).len() <= 2, "{place}");
            }
        }
    }

    #[test]
    fn functions_are_bounded() {
        let many = vec![("f", 2, 1, 0, 1); MOST_FUNCTIONS + 1];
        assert_eq!(functions(&object(&many)).len(), MOST_FUNCTIONS);
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
