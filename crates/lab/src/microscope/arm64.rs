//! What the code of an arm64 kernel does with its current thread, which it has from `sp_el0`: there it
//! counts why that may not be switched, and looks whether it is to give way
//! (arch/arm64/include/asm/current.h, preempt.h).

use super::btf;
use super::functions::text;
use super::kallsyms::{Image, Symbols};

/// `mrs x0, sp_el0`.
const CURRENT: u32 = 0xd538_4100;

/// `ldr x0, [x0]` and `ldr w0, [x0]`, without their offsets.
const LOAD: u32 = 0xf940_0000;
const LOAD_WORD: u32 = 0xb940_0000;

/// `str x0, [x0]` and `str w0, [x0]`, likewise.
const STORE: u32 = 0xf900_0000;
const STORE_WORD: u32 = 0xb900_0000;

/// `sp`, as the base of a load or a store.
const SP: u32 = 31;

/// How far apart instructions are that belong together.
const NEAR: usize = 4;

/// Bytes from the start of a thread to its count of why it may not be switched: that is the only
/// member without a name of what a thread begins with (arch/arm64/include/asm/thread_info.h).
pub(super) fn count(image: &Image, symbols: &Symbols) -> Option<u64> {
    btf::offsets(btf::of(image, symbols), "thread_info", [""]).map(|[offset]| offset)
}

/// A load or a store of this kind: its register, the base, and the offset in units of its size.
fn access(word: u32, kind: u32) -> Option<(u32, u32, u32)> {
    let parts = (word & 0x1f, word >> 5 & 0x1f, word >> 10 & 0xfff);
    (word & 0xffc0_0000 == kind).then_some(parts)
}

/// The distance of a direct call or jump, in instructions.
fn jump(word: u32) -> Option<i64> {
    let offset = (word << 6).cast_signed() >> 6;
    (word >> 26 & 0x1f == 5).then_some(offset.into())
}

/// The register and the bit of which `tbz` and `tbnz` depend, or `tst` with one bit.
fn tested(word: u32) -> Option<(u32, u32)> {
    match word & 0x7e00_0000 {
        0x3600_0000 => Some((word & 0x1f, word >> 19 & 0x1f | word >> 26 & 0x20)),
        // Of 32 or 64 bits, one of which is set.
        0x7200_0000 if word & 0xfc1f == 31 && word >> 22 & 1 == word >> 31 => {
            let bits = if word >> 31 == 1 { 64 } else { 32 };
            Some((word >> 5 & 0x1f, (bits - (word >> 16 & 0x3f)) % bits))
        }
        _ => None,
    }
}

/// Whether functions leave a register as it was (AAPCS64, 6.1.1).
fn is_kept(register: u32) -> bool {
    (19..=28).contains(&register)
}

/// The instructions of a kernel.
struct Code {
    start: u64,
    words: Vec<u32>,
}

impl Code {
    fn of(image: &Image, symbols: &Symbols) -> Option<Self> {
        let (start, text) = text(image, symbols)?;
        let words = text.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
        Some(Self { start, words: words.collect() })
    }

    fn address(&self, at: usize) -> u64 {
        self.start + 4 * at as u64
    }

    /// The numbers of the instructions of each function.
    fn functions(&self, symbols: &Symbols) -> impl Iterator<Item = std::ops::Range<usize>> {
        let end = |at: usize| {
            let rest = symbols.rest_of_function(self.address(at)) / 4;
            at.saturating_add(usize::try_from(rest).unwrap_or(0).max(1)).min(self.words.len())
        };
        let first = (!self.words.is_empty()).then(|| 0..end(0));
        std::iter::successors(first, move |last| {
            (last.end < self.words.len()).then(|| last.end..end(last.end))
        })
    }

    /// Where the flags of the current thread are loaded that are tested soon, in a function, and
    /// which bit is: their load comes right after that of the thread, or that is in a register which
    /// others keep, or it was on the stack.
    fn flags(&self, function: std::ops::Range<usize>) -> Vec<(usize, u32)> {
        let (mut kept, mut last, mut saved) = (0_u32, None, Vec::new());
        let mut found = Vec::new();
        for at in function.clone() {
            let word = self.words[at];
            let is_last =
                |register| last.is_some_and(|(since, of)| of == register && at - since <= NEAR);
            if word & !0x1f == CURRENT {
                last = Some((at, word & 0x1f));
                kept |= u32::from(is_kept(word & 0x1f)) << (word & 0x1f);
            } else if let Some((register, SP, place)) = access(word, STORE)
                && is_last(register)
            {
                saved.push(place);
            } else if let Some((register, SP, place)) = access(word, LOAD)
                && saved.contains(&place)
            {
                last = Some((at, register));
            } else if let Some((flags, base, 0)) = access(word, LOAD)
                && (is_last(base) || kept >> base & 1 == 1)
            {
                let soon = self.words[at + 1..function.end].iter().take(NEAR);
                let mut tests = soon.filter_map(|word| tested(*word));
                let test = tests.find(|(register, _)| *register == flags);
                found.extend(test.map(|(_, bit)| (at, bit)));
            }
        }
        found
    }

    /// Whether an instruction stores a count of the current thread that something was added to just
    /// before.
    fn adds(&self, at: usize, function_start: usize, count: u64) -> bool {
        let is_count = |offset: u32| u64::from(offset) * 4 == count;
        let Some((sum, base, offset)) = access(self.words[at], STORE_WORD) else { return false };
        let before = &self.words[function_start..at];
        let near = &before[before.len().saturating_sub(NEAR)..];
        // `add w1, w1, #1`, or with a number that is shifted.
        let adds = |word: &u32| word & 0xff80_001f == 0x1100_0000 | sum && word & 0x3f_fc00 != 0;
        let loads = |word: &u32| {
            access(*word, LOAD_WORD).is_some_and(|(_, of, at)| (of, at) == (base, offset))
        };
        is_count(offset)
            && near.iter().any(adds)
            && near.iter().any(loads)
            && before.contains(&(CURRENT | base))
    }
}

/// Where code looks whether the current thread is to give way (`need_resched`). Which bit that is, is
/// learned from `schedule`, which looks as long as it is set (kernel/sched/core.c).
pub(super) fn looks(image: &Image, symbols: &Symbols) -> Vec<u64> {
    let Some(code) = Code::of(image, symbols) else { return Vec::new() };
    let schedule = symbols.address("schedule");
    let functions: Vec<_> = code.functions(symbols).collect();
    let own = functions.iter().find(|range| Some(code.address(range.start)) == schedule);
    let bit = own.and_then(|range| Some(code.flags(range.clone()).first()?.1));
    let Some(bit) = bit else { return Vec::new() };
    let all = functions.into_iter().flat_map(|function| code.flags(function));
    all.filter(|(_, of)| *of == bit).map(|(at, _)| code.address(at)).collect()
}

/// Where functions are called that take locks, and where the count of the current thread grows.
pub(super) fn locking(image: &Image, symbols: &Symbols, locks: &[u64]) -> Vec<u64> {
    let Some(code) = Code::of(image, symbols) else { return Vec::new() };
    let count = count(image, symbols);
    let takes = |at: usize, start: usize| {
        let target = jump(code.words[at])
            .map(|by| code.address(at).wrapping_add_signed(by.saturating_mul(4)));
        target.is_some_and(|target| locks.binary_search(&target).is_ok())
            || count.is_some_and(|count| code.adds(at, start, count))
    };
    let places = code.functions(symbols).flat_map(|function| {
        let start = function.start;
        function.filter(move |at| takes(*at, start))
    });
    places.map(|at| code.address(at)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::btf::EDGES;
    use super::super::btf::tests::made_up_of;
    use super::*;
    use crate::arch::Arch;

    /// Where [`arm64_kernel`] has its code.
    pub(in super::super) const ARM64: u64 = 0xffff_8000_8000_1000;

    /// A kernel with this code, and data after it.
    pub(in super::super) fn arm64_kernel(code: &[u32], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0_u8; 0x1000];
        bytes[56..60].copy_from_slice(b"ARM\x64");
        bytes.extend(code.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(data);
        bytes
    }

    /// What `f` finds in a kernel of these functions, one after the other.
    fn of<T>(functions: &[(&'static str, &[u32])], f: impl Fn(&Image, &Symbols) -> T) -> T {
        let code: Vec<u32> = functions.iter().flat_map(|(_, code)| *code).copied().collect();
        let data = made_up_of("thread_info", &[("flags", 0), ("", 64), ("cpu", 128)]);
        let file = arm64_kernel(&code, &data);
        let image = Image::read(&file, Arch::Aarch64).unwrap();
        let starts = functions.iter().scan(ARM64, |at, (name, code)| {
            let start = *at;
            *at += 4 * code.len() as u64;
            Some((start, 'T', *name))
        });
        let end = ARM64 + 4 * code.len() as u64;
        let data_end = end + data.len() as u64;
        let edges = [(end, 'T', "_etext"), (end, 'D', EDGES[0]), (data_end, 'D', EDGES[1])];
        let all = [(ARM64, 'T', "_stext")].into_iter().chain(starts).chain(edges);
        f(&image, &Symbols::made_up(all))
    }

    fn place(number: u64) -> u64 {
        ARM64 + 4 * number
    }

    const NOP: u32 = 0xd503_201f;

    #[test]
    fn the_count_is_the_member_of_a_thread_without_a_name() {
        assert_eq!(of(&[("read", &[NOP])], count), Some(8));
        // As of a kernel without CONFIG_KALLSYMS_ALL.
        let nameless = Symbols::made_up([(ARM64, 'T', "_stext")].into_iter());
        assert_eq!(of(&[("read", &[NOP])], |image, _| count(image, &nameless)), Some(8));
    }

    #[test]
    fn looks_are_those_at_the_current_thread() {
        // ldr x0, [x19]; tbnz w0, #1
        let test = [0xf940_0260, 0x3708_0040];
        let schedule = [&[0xd538_4113, NOP, NOP, NOP, NOP, NOP, NOP][..], &test].concat();
        // mrs x1, sp_el0; str x1, [sp, #8]; and later ldr x1, [sp, #8]; ldr x0, [x1]; tst w0, #2
        let spilled =
            [0xd538_4101, 0xf900_07e1, NOP, NOP, NOP, NOP, 0xf940_07e1, 0xf940_0020, 0x721f_001f];
        // mrs x1, sp_el0; ldr x0, [x1]; tbz w0, #1; the same test when x1 may be another; bit 2; of
        // another field.
        let plain =
            [0xd538_4101, 0xf940_0020, 0x3608_0040, NOP, NOP, NOP, 0xf940_0020, 0x3608_0040];
        let other_bit = [0xd538_4101, 0xf940_0020, 0x3710_0040];
        let field = [0xd538_4101, 0xf940_0420, 0x3708_0040];
        // In a register that another function has loaded.
        let functions: [(&str, &[u32]); 6] = [
            ("schedule", &schedule),
            ("spilled", &spilled),
            ("plain", &plain),
            ("other_bit", &other_bit),
            ("field", &field),
            ("others", &test),
        ];
        let expected = [7, 9 + 7, 9 + 9 + 1].map(place);
        assert_eq!(of(&functions, looks), expected);
        assert_eq!(of(&functions[1..], looks), [0_u64; 0], "which bit is not known");
    }

    #[test]
    fn locks_are_taken_where_their_functions_are_called_and_the_count_grows() {
        let lock = [NOP; 4];
        // bl and b to the first function, bl into it, and bl to itself.
        let calls = [0x97ff_fffc, 0x17ff_fffb, 0x97ff_fffb, 0x9400_0000];
        // mrs x0, sp_el0; ldr w1, [x0, #8]; add w1, w1, #1; str w1, [x0, #8]; and sub instead of add.
        let adds = [0xd538_4100, 0xb940_0801, 0x1100_0421, 0xb900_0801];
        let subtracts = [0xd538_4100, 0xb940_0801, 0x5100_0421, 0xb900_0801];
        let elsewhere = [0xd538_4100, 0xb940_1001, 0x1100_0421, 0xb900_1001];
        // Of another variable.
        let other = [0xaa00_03e0, 0xb940_0801, 0x1100_0421, 0xb900_0801];
        let functions: [(&str, &[u32]); 6] = [
            ("_raw_spin_lock", &lock),
            ("calls", &calls),
            ("adds", &adds),
            ("subtracts", &subtracts),
            ("elsewhere", &elsewhere),
            ("other", &other),
        ];
        let found = of(&functions, |image, symbols| locking(image, symbols, &[ARM64]));
        assert_eq!(found, [4, 5, 11].map(place));
    }
}
