//! The symbols of a kernel, read from the tables with which it names its own addresses (kallsyms):
//! a kernel as it is booted has no other symbol table.
//!
//! scripts/kallsyms.c writes the tables into .rodata, kernel/kallsyms.c reads them. Nothing says
//! where they are. Their order in Linux
//! - 4.6 to 6.3: offsets, base, number, names, markers, (since 6.2 and in late 6.1: order of
//!   names,) tokens, index of tokens;
//! - 6.4 to 6.19: number, names, markers, tokens, index of tokens, offsets, base, order of names;
//! - since 7.0: the same without base: an offset counts from its own place.
//!
//! Each table is aligned to 8 bytes, since 7.0 to 4.
//!
//! The tokens are recognised by the digits, and their index confirms them. The markers before them
//! ascend from 0, and confirm the number and the names before those. The offsets, on either side,
//! must ascend. The bytes are not trusted: whatever does not fit is not a kernel's table, and every
//! search has a bound.

use std::ops::Range;

use anyhow::{Context, Result, ensure};

use crate::arch::Arch;
use crate::elf::{X86_64, text_at, u16_at, u32_at, u64_at};

/// Longest text of a token or symbol that is read, bytes. Kernels allow 512
/// (`KSYM_NAME_LEN`, include/linux/kallsyms.h).
const LONGEST: usize = 2048;

/// Symbols for each marker (`write_src` in scripts/kallsyms.c).
const GROUP: u32 = 256;

/// How many candidates for a table are looked at. A kernel has one or two.
const MOST_CANDIDATES: usize = 16;

/// The symbols of a kernel, by address.
#[derive(Clone)]
pub(crate) struct Symbols {
    /// All names, one after the other.
    names: String,
    symbols: Vec<Symbol>,
}

#[derive(Clone, Copy)]
struct Symbol {
    address: u64,
    /// Where its name begins, which ends where the next begins.
    name_at: u32,
    /// As nm prints it.
    kind: u8,
}

impl Symbols {
    /// Reads those of an unpacked kernel: an x86 ELF file or an arm64 Image. The addresses are
    /// those that it is linked for, which are those of a boot with `nokaslr`.
    ///
    /// # Errors
    /// It is no such file, or has no kallsyms or none in an order that is known.
    pub(crate) fn of_image(bytes: &[u8], arch: Arch) -> Result<Self> {
        let image = Image::read(bytes, arch)?;
        let tokens = Tokens::find(bytes).context(
            "the kernel has no kallsyms, so nothing that it executes has a name (found no table \
             of tokens): build it with CONFIG_KALLSYMS=y",
        )?;
        let names = Names::find(bytes, tokens.at)
            .context("the kernel's kallsyms are incomplete: found no names before their tokens")?;
        let addresses = addresses(&image, &names, tokens.end).context(
            "the kernel's kallsyms are of an unknown layout: found no addresses for the names",
        )?;
        Self::decode(bytes, &tokens, &names, &addresses)
    }

    fn decode(bytes: &[u8], tokens: &Tokens, names: &Names, addresses: &[u64]) -> Result<Self> {
        /// Largest text of all names, bytes. Debian's kernels have 5 MB.
        const MOST_TEXT: usize = 256 << 20;
        let mut text = Vec::new();
        let mut symbols = Vec::with_capacity(addresses.len());
        let mut at = names.at;
        for (number, &address) in addresses.iter().enumerate() {
            let damaged = || format!("the kernel's kallsyms are damaged: name {number}");
            let codes = codes_at(bytes, at).with_context(damaged)?;
            at = codes.end;
            // The first character of what a name decodes to is the symbol's type.
            let mut decoded = bytes[codes].iter().map(|&code| tokens.texts[usize::from(code)]);
            let (&kind, rest) =
                decoded.find_map(|token| token.split_first()).with_context(damaged)?;
            let name_at = text.len();
            text.extend_from_slice(rest);
            decoded.for_each(|token| text.extend_from_slice(token));
            let is_name = (1..LONGEST).contains(&(text.len() - name_at));
            ensure!(is_name && kind.is_ascii_alphabetic(), damaged());
            ensure!(text.len() <= MOST_TEXT, "the names in the kernel's kallsyms are too long");
            symbols.push(Symbol { address, name_at: u32::try_from(name_at)?, kind });
        }
        Ok(Self { names: String::from_utf8(text)?, symbols })
    }

    /// The function that an address is in, and where in it. `None` outside of text, and after the
    /// last symbol, whose end is unknown.
    ///
    /// A function ends at the next symbol of any type. Of several names of one address, a global
    /// one and then the first is taken. The padding before a function counts as a function of its
    /// own if it has a name (`__pfx_`, which tools/objtool adds since 6.2).
    pub(crate) fn function(&self, address: u64) -> Option<(u32, u64)> {
        let next = self.symbols.partition_point(|symbol| symbol.address <= address);
        let start = self.symbols[..next].last()?.address;
        let first = self.symbols.partition_point(|symbol| symbol.address < start);
        let is_last = next == self.symbols.len();
        let names = (first..next).filter(|_| !is_last).filter_map(|index| {
            let index = u32::try_from(index).ok()?;
            let preference = b"TWtw".iter().position(|&kind| kind == self.kind(index))?;
            let name = self.name(index);
            Some((is_marker(name), name.starts_with("__pfx_"), preference, index))
        });
        let (is_marker, _, _, index) = names.min()?;
        (!is_marker).then_some((index, address - start))
    }

    /// Bytes from an address to the next symbol.
    pub(super) fn rest_of_function(&self, address: u64) -> u64 {
        let next = self.symbols.partition_point(|symbol| symbol.address <= address);
        self.symbols.get(next).map_or(0, |symbol| symbol.address - address)
    }

    /// The name of a symbol, with suffixes such as `.isra.0`. Several may have the same name.
    ///
    /// # Panics
    /// The index is not one that [`Self::function`] returned.
    pub(crate) fn name(&self, index: u32) -> &str {
        let index = index as usize;
        let end =
            self.symbols.get(index + 1).map_or(self.names.len(), |next| next.name_at as usize);
        &self.names[self.symbols[index].name_at as usize..end]
    }

    /// The address of the symbol of this name: of the first global one, or else of the first.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        let named = || self.iter().filter(|&(_, _, other)| other == name);
        let global = named().find(|(_, kind, _)| kind.is_ascii_uppercase());
        global.or_else(|| named().next()).map(|(address, _, _)| address)
    }

    /// Address, type as nm prints it, and name of each symbol, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, char, &str)> {
        (0..)
            .zip(&self.symbols)
            .map(|(index, symbol)| (symbol.address, char::from(symbol.kind), self.name(index)))
    }

    fn kind(&self, index: u32) -> u8 {
        self.symbols[index as usize].kind
    }
}

/// Whether a symbol of text only marks where a section begins or ends
/// (include/asm-generic/vmlinux.lds.h, arch/*/kernel/vmlinux.lds.S). arm64 has names of some with
/// `__pi_` too (arch/arm64/kernel/image-vars.h).
fn is_marker(name: &str) -> bool {
    const EDGES: [&str; 5] =
        ["text_start", "text_end", "text_begin", "indirect_thunk_start", "indirect_thunk_end"];
    let name = name.strip_prefix("__pi_").unwrap_or(name);
    matches!(name, "_text" | "_stext" | "_etext" | "_sinittext" | "_einittext" | "_edata")
        || (name.starts_with("__") && EDGES.iter().any(|edge| name.ends_with(edge)))
}

/// A kernel's file, and where its bytes are in memory.
pub(super) struct Image<'a> {
    bytes: &'a [u8],
    /// Parts of the file, and the address of each.
    segments: Vec<(Range<u64>, u64)>,
    /// Place and value of each pointer that is only stored at boot.
    relocations: Vec<(u64, u64)>,
}

impl<'a> Image<'a> {
    pub(super) fn read(bytes: &'a [u8], arch: Arch) -> Result<Self> {
        match arch {
            Arch::X86_64 => {
                let is_kernel =
                    bytes.starts_with(b"\x7fELF\x02\x01") && u16_at(bytes, 18) == Some(X86_64);
                ensure!(is_kernel, "no unpacked x86 kernel: no ELF file of a 64-bit x86");
                Ok(Self { bytes, segments: segments(bytes), relocations: Vec::new() })
            }
            Arch::Aarch64 => {
                let is_kernel = bytes.get(56..60) == Some(b"ARM\x64");
                ensure!(is_kernel, "no unpacked arm64 kernel: ARM\\x64 is not at 56");
                let relocations = relocations(bytes);
                let address = link_address(bytes, &relocations);
                let segments = address.map(|address| (0..bytes.len() as u64, address));
                Ok(Self { bytes, segments: segments.into_iter().collect(), relocations })
            }
        }
    }

    /// Where a byte of the file is in memory.
    fn address(&self, at: usize) -> Option<u64> {
        let at = at as u64;
        let (part, address) = self.segments.iter().find(|(part, _)| part.contains(&at))?;
        Some(address.wrapping_add(at - part.start))
    }

    /// At most this many bytes of memory from an address on, as they are in the file.
    pub(super) fn memory(&self, address: u64, length: u64) -> &'a [u8] {
        let part = self.segments.iter().find_map(|(part, start)| {
            let from = part.start.checked_add(address.checked_sub(*start)?)?;
            part.contains(&from).then_some(from..part.end.min(from.saturating_add(length)))
        });
        let place = part.and_then(|part| {
            Some(usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?)
        });
        place.and_then(|place| self.bytes.get(place)).unwrap_or_default()
    }

    /// The address of its first byte, of an arm64 kernel: it runs elsewhere before it is mapped there.
    pub(super) fn start(&self) -> Option<u64> {
        self.segments.first().map(|(_, address)| *address)
    }

    /// The file from where it has these bytes first.
    pub(super) fn from(&self, bytes: &[u8]) -> &'a [u8] {
        let at = self.bytes.windows(bytes.len()).position(|window| window == bytes);
        at.and_then(|at| self.bytes.get(at..)).unwrap_or_default()
    }

    /// The address that is stored at this place of the file, or will be at boot.
    fn pointer(&self, at: usize) -> Option<u64> {
        let stored = u64_at(self.bytes, at).filter(|&value| value != 0).or_else(|| {
            let place = self.address(at)?;
            self.relocations.iter().find(|&&(target, _)| target == place).map(|&(_, value)| value)
        });
        stored.filter(|&value| is_kernel(value))
    }
}

/// Whether it is in the kernel's half.
fn is_kernel(address: u64) -> bool {
    address >> 63 == 1
}

/// `PT_LOAD` segments (gABI, chapter 5).
fn segments(bytes: &[u8]) -> Vec<(Range<u64>, u64)> {
    let header = |index: u16| {
        let table = usize::try_from(u64_at(bytes, 32)?).ok()?;
        let size = usize::from(u16_at(bytes, 54)?);
        let header = bytes.get(table.checked_add(size * usize::from(index))?..)?;
        let field = |at| u64_at(header, at);
        let (at, address, length) = (field(8)?, field(16)?, field(32)?);
        (u32_at(header, 0)? == 1).then_some((at..at.saturating_add(length), address))
    };
    (0..u16_at(bytes, 56).unwrap_or(0)).filter_map(header).collect()
}

/// `R_AARCH64_RELATIVE` (1027) of .rela.dyn: arm64 kernels are linked with
/// `--no-apply-dynamic-relocs`, which leaves what they relocate 0 in the file
/// (arch/arm64/Makefile). With CONFIG_RELR, as Debian's 6.12, there are hardly any, and the
/// pointers are in their places.
fn relocations(bytes: &[u8]) -> Vec<(u64, u64)> {
    /// Debian's 6.1 has 180 000.
    const MOST: usize = 1 << 22;
    let is_relative = |at| u64_at(bytes, at) == Some(1027);
    (8..bytes.len())
        .step_by(8)
        // A single one is other data: in a table there is one before or after.
        .filter(|&at| is_relative(at) && (is_relative(at + 24) || is_relative(at.wrapping_sub(24))))
        .filter_map(|at| Some((u64_at(bytes, at - 8)?, u64_at(bytes, at + 8)?)))
        .filter(|&(target, value)| is_kernel(target) && is_kernel(value))
        .take(MOST)
        .collect()
}

/// The address of the first byte of an arm64 Image, `KIMAGE_VADDR`
/// (arch/arm64/include/asm/memory.h): the one by which all places of relocations are in the file
/// and hold 0 or, as those of its global offset table, what they relocate to.
fn link_address(bytes: &[u8], relocations: &[(u64, u64)]) -> Option<u64> {
    /// A kernel is linked for a multiple of it (`MIN_KIMG_ALIGN`, arch/arm64/include/asm/boot.h).
    const ALIGNMENT: u64 = 2 << 20;
    /// So many only fit by one address.
    const ENOUGH: usize = 1000;
    let fits = |base: u64| {
        relocations.iter().all(|&(target, value)| {
            let at = target.checked_sub(base).and_then(|at| usize::try_from(at).ok());
            let stored = at.and_then(|at| u64_at(bytes, at));
            stored.is_some_and(|stored| stored == 0 || stored == value)
        })
    };
    // Since 6.5, by the bits of an address; with 52, 48 are used for this.
    let usual = [48, 47, 42, 39, 36].map(|bits| (u64::MAX << (bits - 1)) + (2 << 30));
    usual.into_iter().find(|&base| fits(base)).or_else(|| {
        let lowest = relocations.iter().map(|&(target, _)| target).min()?;
        let last = lowest / ALIGNMENT * ALIGNMENT;
        let candidates = relocations.get(ENOUGH).map(|_| bytes.len() as u64 / ALIGNMENT + 1)?;
        (0..candidates)
            .map_while(|steps| last.checked_sub(steps * ALIGNMENT))
            .find(|&base| fits(base))
    })
}

/// The strings that names are made of (kallsyms_token_table) and where each begins
/// (kallsyms_token_index).
struct Tokens<'a> {
    texts: Vec<&'a [u8]>,
    at: usize,
    /// Where the index ends.
    end: usize,
}

impl<'a> Tokens<'a> {
    fn find(bytes: &'a [u8]) -> Option<Self> {
        digits(bytes).take(MOST_CANDIDATES).find_map(|digits_at| Self::around(bytes, digits_at))
    }

    /// The tables of which the token of '0' is here: every character that is used in a name is
    /// also the code for itself.
    fn around(bytes: &'a [u8], digits_at: usize) -> Option<Self> {
        let mut table_end = digits_at;
        for _ in b'0'..=u8::MAX {
            table_end +=
                bytes.get(table_end..)?.iter().take(LONGEST).position(|&byte| byte == 0)? + 1;
        }
        [4, 8].iter().find_map(|&alignment| {
            let index_at = table_end.next_multiple_of(alignment);
            let start = |code: u8| u16_at(bytes, index_at + 2 * usize::from(code)).map(usize::from);
            let at = digits_at.checked_sub(start(b'0')?)?;
            let mut next = at;
            let texts = (0..=u8::MAX).map(|code| {
                let text = text_at(bytes.get(next..table_end)?);
                let fits = at + start(code)? == next && text.iter().all(u8::is_ascii_graphic);
                next += text.len() + 1;
                fits.then_some(text)
            });
            Some(Self { texts: texts.collect::<Option<_>>()?, at, end: index_at + 512 })
        })
    }
}

/// Where the ten digits are, each followed by a NUL.
fn digits(bytes: &[u8]) -> impl Iterator<Item = usize> {
    const DIGITS: &[u8] = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0";
    // Of the first 16 places of a match, one is a multiple of 16.
    (0..bytes.len().saturating_sub(1)).step_by(16).filter_map(|at| {
        let (digit_at, digit) = match (bytes[at], bytes[at + 1]) {
            (digit, 0) => (at, digit),
            (0, digit) => (at + 1, digit),
            _ => return None,
        };
        let before = digit.checked_sub(b'0').filter(|&digit| digit < 10)?;
        let start = digit_at.checked_sub(2 * usize::from(before))?;
        bytes[start..].starts_with(DIGITS).then_some(start)
    })
}

/// The names as sequences of codes (kallsyms_names), with their number (kallsyms_num_syms).
struct Names {
    number: u32,
    number_at: usize,
    at: usize,
}

impl Names {
    fn find(bytes: &[u8], tokens_at: usize) -> Option<Self> {
        /// How far markers are looked for, bytes. An order of names in between has 3 for each.
        const MOST_BETWEEN: usize = 8 << 20;
        let runs = ascending(bytes, tokens_at.saturating_sub(MOST_BETWEEN)..tokens_at);
        runs.into_iter().rev().take(MOST_CANDIDATES).find_map(|markers| {
            // What follows the markers may happen to continue them.
            let shorter = markers.start..markers.end - 4;
            Self::before(bytes, &markers).or_else(|| Self::before(bytes, &shorter))
        })
    }

    /// Those in front of their markers (kallsyms_markers), which are where each 256th begins.
    fn before(bytes: &[u8], markers: &Range<usize>) -> Option<Self> {
        /// Debian's kernels have 200 000.
        const MOST_SYMBOLS: u32 = 1 << 22;
        let groups = u32::try_from(markers.len() / 4).ok()?;
        let most = groups.checked_mul(GROUP).filter(|&most| most <= MOST_SYMBOLS)?;
        let number_fits = most - GROUP + 1..=most;
        let last = usize::try_from(u32_at(bytes, markers.end - 4)?).ok()?;
        let nearest = markers.start.checked_sub(last.checked_add(6)?)? / 4 * 4;
        // The names of the last group are in between.
        (0..LONGEST * GROUP as usize / 4)
            .map_while(|steps| nearest.checked_sub(4 * steps))
            .filter_map(|at| Some((at, u32_at(bytes, at).filter(|n| number_fits.contains(n))?)))
            .take(MOST_CANDIDATES)
            .flat_map(|(at, number)| [4, 8].map(|gap| Self { number, number_at: at, at: at + gap }))
            .find(|names| names.fit(bytes, markers.start).is_some())
    }

    fn fit(&self, bytes: &[u8], markers_at: usize) -> Option<()> {
        let mut at = self.at;
        for number in 0..self.number {
            if number % GROUP == 0 {
                let marker_at = markers_at + 4 * (number / GROUP) as usize;
                (u32_at(bytes, marker_at)? as usize == at - self.at).then_some(())?;
            }
            at = codes_at(bytes, at)?.end;
        }
        markers_at.checked_sub(at).filter(|&padding| padding < 8).map(|_| ())
    }
}

/// The codes of the name that begins here. The length before them has two bytes if it exceeds 127
/// (since 6.1: before, no name was that long).
fn codes_at(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let (low, high) = (*bytes.get(at)?, *bytes.get(at + 1)?);
    let (start, length) = if low < 0x80 {
        (at + 1, usize::from(low))
    } else {
        (at + 2, usize::from(low & 0x7f) | usize::from(high) << 7)
    };
    (length > 0 && start + length <= bytes.len()).then_some(start..start + length)
}

/// Where numbers ascend from 0 in steps as large as 256 names can be.
fn ascending(bytes: &[u8], within: Range<usize>) -> Vec<Range<usize>> {
    /// Bytes of the fewest markers that tell a table from other numbers.
    const FEWEST: usize = 4 * 8;
    let steps = 2 * GROUP..=514 * GROUP;
    let mut found = Vec::new();
    let (mut start, mut last) = (within.start.next_multiple_of(4), None);
    for at in (start..within.end).step_by(4) {
        let value = u32_at(bytes, at);
        let step = last.zip(value).and_then(|(last, value): (u32, u32)| value.checked_sub(last));
        if step.is_some_and(|step| steps.contains(&step)) {
            last = value;
            continue;
        }
        if at - start >= FEWEST {
            found.push(start..at);
        }
        (start, last) = (at, value.filter(|&value| value == 0));
    }
    let end = within.end / 4 * 4;
    if end.saturating_sub(start) >= FEWEST {
        found.push(start..end);
    }
    found
}

/// The address of each name, by the layout by which they ascend.
fn addresses(image: &Image, names: &Names, tokens_end: usize) -> Option<Vec<u64>> {
    let size = 4 * names.number as usize;
    let offsets = |at: usize| Some(image.bytes.get(at..at.checked_add(size)?)?.as_chunks::<4>().0);
    let before = names.number_at.checked_sub(8).and_then(|base_at| {
        let at = base_at.checked_sub(size)? / 8 * 8;
        relative(offsets(at)?, image.pointer(base_at)?)
    });
    before.or_else(|| {
        let offsets = offsets(tokens_end)?;
        let base = image.pointer((tokens_end + size).next_multiple_of(8));
        base.and_then(|base| relative(offsets, base))
            .or_else(|| placed(offsets, image.address(tokens_end)?))
    })
}

/// Addresses by their offsets from a base (`kallsyms_sym_address` in kernel/kallsyms.c).
fn relative(offsets: &[[u8; 4]], base: u64) -> Option<Vec<u64>> {
    let from_base = |&offset| base.wrapping_add(u32::from_le_bytes(offset).into());
    // CONFIG_KALLSYMS_ABSOLUTE_PERCPU, of x86 before 6.15.
    let or_absolute = |&offset| match i64::from(i32::from_le_bytes(offset)) {
        negative @ ..0 => base.wrapping_add_signed(-1 - negative),
        absolute => absolute.cast_unsigned(),
    };
    checked(offsets.iter().map(from_base)).or_else(|| checked(offsets.iter().map(or_absolute)))
}

/// Addresses by their offsets from where each offset is (since 7.0).
fn placed(offsets: &[[u8; 4]], start: u64) -> Option<Vec<u64>> {
    let places = (0..).map(|number: u64| start.wrapping_add(4 * number));
    checked(
        places
            .zip(offsets)
            .map(|(place, &offset)| place.wrapping_add_signed(i32::from_le_bytes(offset).into())),
    )
}

/// Addresses as a kernel's are: ascending to one in its half, and not all the same.
fn checked(addresses: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let addresses: Vec<u64> = addresses.collect();
    let (&first, &last) = (addresses.first()?, addresses.last()?);
    let fits = addresses.is_sorted() && is_kernel(last) && last - first >= addresses.len() as u64;
    fits.then_some(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Symbols {
        /// Symbols at these addresses, which ascend.
        pub(crate) fn made_up<'a>(all: impl Iterator<Item = (u64, char, &'a str)>) -> Self {
            let mut made = Self { names: String::new(), symbols: Vec::new() };
            for (address, kind, name) in all {
                let name_at = u32::try_from(made.names.len()).unwrap();
                made.names.push_str(name);
                made.symbols.push(Symbol { address, name_at, kind: u8::try_from(kind).unwrap() });
            }
            made
        }
    }

    /// Where a made-up kernel is linked.
    const BASE: u64 = 0xffff_8000_8000_0000;
    /// Where its tables begin, in the file and after BASE.
    const RODATA: usize = 0x8000;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Layout {
        /// Linux 5.10 of x86, with addresses of CPUs counted from 0.
        Percpu,
        /// Linux 6.2.
        Ordered,
        /// Linux 6.12.
        Reordered,
        /// Linux 7.3.
        Placed,
    }

    const LAYOUTS: [Layout; 4] =
        [Layout::Percpu, Layout::Ordered, Layout::Reordered, Layout::Placed];

    /// Symbols by address: two functions of several names, and many of one.
    fn symbols() -> Vec<(u64, String)> {
        let text = |offset: u64, name: &str| (BASE + offset, name.to_owned());
        let mut all = vec![
            text(0, "T_text"),
            text(0, "T_stext"),
            text(0, "tfirst.isra.0"),
            text(0, "Tfirst"),
            text(0x20, "t__pfx_second"),
            text(0x30, "tsecond"),
            text(0x30, "Wsecond_alias"),
            text(0x30, "Tsecond_too"),
        ];
        all.extend((0..3000).map(|n| {
            text(0x100 + 0x10 * n, &format!("tf{n}.{}", "x".repeat(400 * usize::from(n == 7))))
        }));
        all.extend([
            text(0x1_0000, "T_etext"),
            text(0x1_0000, "R__start_rodata"),
            text(0x1_0040, "rdata"),
        ]);
        all.extend([text(0x1_0100, "tf1"), text(0x1_0200, "B_end")]);
        all
    }

    fn put(image: &mut Vec<u8>, alignment: usize, bytes: &[u8]) {
        image.resize(image.len().next_multiple_of(alignment), 0);
        image.extend_from_slice(bytes);
    }

    /// Codes as the kernel's script might choose: 200 stands for "tf", 0 for "xx".
    fn encoded(symbol: &str) -> Vec<u8> {
        let codes = symbol.replacen("tf", "\u{1}", 1).replace("xx", "\0");
        let codes =
            codes.bytes().map(|code| if code == 1 { 200 } else { code }).collect::<Vec<_>>();
        let length = u8::try_from(codes.len() % 128).unwrap();
        match codes.len() {
            ..128 => [&[length], &codes[..]].concat(),
            _ => [&[length | 128, 1], &codes[..]].concat(),
        }
    }

    /// The tables, where they begin in the file.
    fn tables(image: &mut Vec<u8>, symbols: &[(u64, String)], layout: Layout, base: [u8; 8]) {
        let alignment = if layout == Layout::Placed { 4 } else { 8 };
        let offsets = |start: usize| -> Vec<u8> {
            let places = (0..).map(|n| BASE + start as u64 + 4 * n);
            let first = symbols.iter().find(|(address, _)| *address >= BASE).unwrap().0;
            let offset = |(place, (address, _)): (u64, &(u64, String))| {
                let absolute = *address < BASE;
                let offset = match layout {
                    Layout::Percpu if absolute => *address,
                    Layout::Percpu => first.wrapping_sub(address + 1),
                    Layout::Placed => address.wrapping_sub(place),
                    Layout::Ordered | Layout::Reordered => address - first,
                };
                offset.to_le_bytes()[..4].to_vec()
            };
            places.zip(symbols).flat_map(offset).collect()
        };
        let order: Vec<u8> =
            (0..symbols.len() as u64).rev().flat_map(|n| n.to_be_bytes()[5..].to_vec()).collect();
        if matches!(layout, Layout::Percpu | Layout::Ordered) {
            let start = image.len().next_multiple_of(8);
            put(image, 8, &offsets(start));
            put(image, 8, &base);
        }
        put(image, alignment, &u32::try_from(symbols.len()).unwrap().to_le_bytes());
        let (mut names, mut markers) = (Vec::new(), Vec::new());
        for (number, (_, symbol)) in symbols.iter().enumerate() {
            if number % 256 == 0 {
                markers.extend(u32::try_from(names.len()).unwrap().to_le_bytes());
            }
            names.extend(encoded(symbol));
        }
        put(image, alignment, &names);
        put(image, alignment, &markers);
        if layout == Layout::Ordered {
            put(image, 8, &order);
        }
        let (mut texts, mut index) = (Vec::new(), Vec::new());
        for code in 0..=255_u8 {
            index.extend(u16::try_from(texts.len()).unwrap().to_le_bytes());
            match code {
                0 => texts.extend(b"xx"),
                200 => texts.extend(b"tf"),
                33..127 => texts.push(code),
                _ => {}
            }
            texts.push(0);
        }
        put(image, alignment, &texts);
        put(image, alignment, &index);
        if matches!(layout, Layout::Reordered | Layout::Placed) {
            let start = image.len();
            put(image, alignment, &offsets(start));
            if layout == Layout::Reordered {
                put(image, 8, &base);
            }
            put(image, alignment, &order);
        }
        put(image, 1, &[0; 64]);
    }

    fn x86(symbols: &[(u64, String)], layout: Layout) -> Vec<u8> {
        let mut image = vec![0; RODATA];
        let first = symbols.iter().find(|(address, _)| *address >= BASE).unwrap().0;
        tables(&mut image, symbols, layout, first.to_le_bytes());
        let length = image.len() as u64;
        let mut set = |at: usize, value: &[u8]| image[at..at + value.len()].copy_from_slice(value);
        set(0, b"\x7fELF\x02\x01\x01");
        for (at, value) in [(18, X86_64), (54, 56), (56, 2)] {
            set(at, &value.to_le_bytes());
        }
        set(32, &64_u64.to_le_bytes());
        // A note, and all.
        for (at, kind) in [(64, 4_u32), (120, 1)] {
            set(at, &kind.to_le_bytes());
        }
        set(120 + 16, &BASE.to_le_bytes());
        set(120 + 32, &length.to_le_bytes());
        image
    }

    /// With pointers in their places or, if `relocated`, only in relocations.
    fn arm64(symbols: &[(u64, String)], layout: Layout, relocated: bool) -> Vec<u8> {
        let mut image = vec![0; RODATA];
        image[56..60].copy_from_slice(b"ARM\x64");
        let base = if relocated { 0x55_u64 } else { symbols[0].0 };
        tables(&mut image, symbols, layout, base.to_le_bytes());
        if relocated {
            let at = image.windows(8).rposition(|value| value == 0x55_u64.to_le_bytes());
            let at = at.unwrap_or(0x100);
            image[at..at + 8].fill(0);
            image.resize(image.len().next_multiple_of(8), 0);
            for (place, value) in [(at, symbols[0].0), (0x200, BASE + 64)] {
                for value in [BASE + place as u64, 1027, value] {
                    image.extend(value.to_le_bytes());
                }
            }
        }
        image
    }

    fn check(image: &[u8], arch: Arch, symbols: &[(u64, String)]) {
        let read = Symbols::of_image(image, arch).unwrap();
        let all: Vec<_> =
            read.iter().map(|(address, kind, name)| (address, format!("{kind}{name}"))).collect();
        assert_eq!(all, symbols);
    }

    #[test]
    fn each_layout_is_read() {
        for layout in LAYOUTS {
            let mut symbols = symbols();
            if layout == Layout::Percpu {
                let percpu = [(0, "A__per_cpu_start"), (0x1000, "Acpu_tss")];
                symbols.splice(..0, percpu.map(|(address, name)| (address, name.to_owned())));
            }
            // Tables are aligned differently if their number is odd.
            for number in [symbols.len(), symbols.len() - 1] {
                check(&x86(&symbols[..number], layout), Arch::X86_64, &symbols[..number]);
            }
        }
        for layout in &LAYOUTS[1..] {
            for relocated in [false, true] {
                check(&arm64(&symbols(), *layout, relocated), Arch::Aarch64, &symbols());
            }
        }
    }

    #[test]
    fn an_arm64_kernel_of_another_address_is_known_by_its_relocations() {
        let mut image = arm64(&symbols(), Layout::Placed, true);
        let at = image.len() - 24;
        for (base, copies) in [(0xffff_ffc0_8000_0000, 2), (0xffff_8000_0800_0000, 1001)] {
            let relocation = [base + 0x200, 1027, base + 64].map(u64::to_le_bytes).concat();
            image.truncate(at - 24);
            image.extend(relocation.repeat(copies));
            let read = Symbols::of_image(&image, Arch::Aarch64).unwrap();
            assert_eq!(read.address("first"), Some(base));
        }
        image[0x200] = 1;
        let error = Symbols::of_image(&image, Arch::Aarch64).map(drop).unwrap_err();
        assert!(error.to_string().contains("no addresses"), "{error}");
    }

    #[test]
    fn a_function_has_its_best_name() {
        let symbols = Symbols::of_image(&x86(&symbols(), Layout::Reordered), Arch::X86_64).unwrap();
        let function = |offset| {
            let (index, offset) = symbols.function(BASE + offset)?;
            Some((symbols.name(index), offset))
        };
        assert_eq!(function(0), Some(("first", 0)));
        assert_eq!(function(0x1f), Some(("first", 0x1f)));
        assert_eq!(function(0x20), Some(("__pfx_second", 0)));
        assert_eq!(function(0x33), Some(("second_too", 3)));
        assert_eq!(function(0x10f), Some(("f0.", 15)));
        assert_eq!(function(0x100 + 0x10 * 3000 - 1), Some(("f2999.", 15)));
        assert_eq!(function(0x1_0000), None, "after all text");
        assert_eq!(function(0x1_0041), None, "data");
        assert_eq!(function(0x1_0101), Some(("f1", 1)));
        assert_eq!(function(0x1_0200), None, "after all symbols");
        assert_eq!(symbols.function(BASE - 1), None);
        assert_eq!(symbols.function(u64::MAX), None);
        assert_eq!(symbols.address("f1."), Some(BASE + 0x110));
        assert_eq!(symbols.address("_end"), Some(BASE + 0x1_0200));
        assert_eq!(symbols.address("absent"), None);
    }

    #[test]
    fn of_equal_names_the_global_one_has_the_address() {
        let mut some = symbols();
        some[2].1 = "tsecond_too".to_owned();
        let read = Symbols::of_image(&x86(&some, Layout::Ordered), Arch::X86_64).unwrap();
        assert_eq!(read.address("second_too"), Some(BASE + 0x30));
    }

    #[test]
    fn what_is_absent_is_said() {
        let image = x86(&symbols(), Layout::Reordered);
        let tokens = Tokens::find(&image).unwrap();
        let names = Names::find(&image, tokens.at).unwrap();
        for (at, text) in [
            (0, "no unpacked x86 kernel"),
            (tokens.end - 1, "no table of tokens"),
            (tokens.at - 5, "no names"),
            (names.at, "no names"),
            (tokens.end + 7, "no addresses"),
        ] {
            let mut broken = image.clone();
            broken[at] ^= 0x40;
            let error = Symbols::of_image(&broken, Arch::X86_64).map(drop).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        assert!(Symbols::of_image(&image, Arch::Aarch64).is_err());
        assert!(Symbols::of_image(b"", Arch::X86_64).is_err());
    }

    /// Damage is either noticed or leaves symbols that can be asked for.
    fn survives(image: &[u8], arch: Arch) {
        if let Ok(symbols) = Symbols::of_image(image, arch) {
            for (address, _, name) in symbols.iter().step_by(97) {
                symbols.function(address);
                symbols.function(address + 1);
                symbols.address(name);
            }
        }
    }

    #[test]
    fn damage_is_survived() {
        // Multiplicative congruential, so that the test is the same each time.
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % below
        };
        for layout in LAYOUTS {
            let images = [
                (x86(&symbols(), layout), Arch::X86_64),
                (arm64(&symbols(), layout, true), Arch::Aarch64),
            ];
            for (image, arch) in images {
                for _ in 0..12 {
                    let mut broken = image.clone();
                    for _ in 0..=random(4) {
                        let at = random(image.len());
                        broken[at] = [0, 0x7f, 0xff, b'0'][random(4)];
                    }
                    survives(&broken, arch);
                    survives(&image[..random(image.len())], arch);
                }
            }
        }
    }

    /// What makes the searches do the most work.
    #[test]
    fn made_up_tables_take_bounded_time() {
        let digits = b"0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0".repeat(50_000);
        assert!(Tokens::find(&digits).is_none());
        // Runs of markers, each with as many numbers of names before it as fit.
        let markers: Vec<u8> = (0..1_u32 << 20).flat_map(|n| (n % 8 * 512).to_le_bytes()).collect();
        assert!(Names::find(&markers, markers.len()).is_none());
        let relocations = [BASE + 8, 1027, BASE].map(u64::to_le_bytes).concat().repeat(50_000);
        assert!(link_address(&relocations, &super::relocations(&relocations)).is_none());
    }
}
